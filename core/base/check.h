// BERTH_CHECK: a bug in Berth ends the process, in every build. Bad input must never reach one.
#ifndef BERTH_CORE_BASE_CHECK_H_
#define BERTH_CORE_BASE_CHECK_H_

namespace berth {

// Prints "FILE:LINE: check failed: TEXT" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* text);

}  // namespace berth

#define BERTH_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::berth::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // BERTH_CORE_BASE_CHECK_H_
