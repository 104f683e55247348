#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/string_view.h"
#include "clients/discovery/probe.h"
#include "clients/discovery/probe_protocol.h"
#include "clients/discovery/wire.h"

namespace berth::discovery {
namespace {

constexpr rlim_t kCpuSeconds = 30;
constexpr rlim_t kFileMemoryBytes = rlim_t{1} << 30;  // more than any topology takes

void Limit(int resource, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// What the process has already: sanitizers reserve a lot.
rlim_t AddressSpace() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Drivers may map as much as they like; a file has no business to.
void LockDown(bool reads_file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, kCpuSeconds);
  if (reads_file) Limit(RLIMIT_AS, AddressSpace() + kFileMemoryBytes);
}

bool WriteAll(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool ReadArguments(int argc, char** argv, DiscoverOptions* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const absl::string_view flag = argv[i];
    if (flag == kFromFlag) {
      options->from = argv[i + 1];
    } else if (flag == kTopologyFlag) {
      options->topology_file = argv[i + 1];
    } else if (flag == kNvmlFlag) {
      options->nvml_library = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

}  // namespace

int ProbeMain(int argc, char** argv) {
  DiscoverOptions options;
  if (!ReadArguments(argc, argv, &options)) {
    fputs("berth-probe is started by berth-agent; see berth-agent --discover\n", stderr);
    return 2;
  }
  LockDown(!options.from.empty());
  const absl::StatusOr<Machine> machine = Discover(options);
  if (machine.ok()) return WriteAll(EncodeMachine(*machine)) ? 0 : 1;
  WriteAll(machine.status().message());
  return kFirstErrorExit + static_cast<int>(machine.status().code());
}

}  // namespace berth::discovery
