// Entry points of libFuzzer.
#include "support/log.h"
#include "tests/fuzz/target.h"

// Debian's libraries are not compiled with AddressSanitizer: containers that they and Berth both
// change would have inconsistent annotations.
extern "C" const char* __asan_default_options() {
  return "detect_container_overflow=0:malloc_context_size=8:quarantine_size_mb=32";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return berth::StartLog("error", "/dev/null").ok() ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  berth::fuzz::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
