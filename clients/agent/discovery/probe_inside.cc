#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/agent/discovery/nvml_divide.h"
#include "clients/agent/discovery/nvml_library.h"
#include "clients/agent/discovery/nvml_watch.h"
#include "clients/agent/discovery/probe.h"
#include "clients/agent/discovery/probe_protocol.h"
#include "clients/agent/discovery/wire.h"

namespace berth::discovery {
namespace {

constexpr rlim_t kCpuSeconds = 30;
constexpr absl::Duration kWatchStep = absl::Milliseconds(200);  // the maximum delay of a request
constexpr rlim_t kFileMemoryBytes = rlim_t{1} << 30;            // more than any topology needs

void Limit(int resource, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// The address space in use: sanitizers reserve a lot.
rlim_t AddressSpace() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void StayChild() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  Limit(RLIMIT_CORE, 0);
}

// Drivers may map as much as they like; reading a file does not need to.
void LockDown(bool reads_file) {
  StayChild();
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

int Answer(const absl::Status& failed) {
  WriteAll(failed.message());
  return kFirstErrorExit + static_cast<int>(failed.code());
}

// A driver needs about a second per instance, nearly none of it CPU time.
int Divide(int argc, char** argv) {
  LockDown(false);
  std::string uuid;
  std::string name = kNvmlLibraryName;
  std::vector<GpuPart> parts;
  for (int i = 1; i + 1 < argc; i += 2) {
    const absl::string_view flag = argv[i];
    if (flag == kDivideFlag) uuid = argv[i + 1];
    if (flag == kNvmlFlag) name = argv[i + 1];
    if (flag != kPartFlag) continue;
    if (!ParsePart(argv[i + 1], &parts.emplace_back())) return 2;
  }
  const auto library = NvmlLibrary::Open(name);
  if (!library.ok()) return Answer(library.status());
  const absl::Status divided = DivideGpu(**library, uuid, parts);
  return divided.ok() ? 0 : Answer(divided);
}

// Whether a report is requested now; XIDs are collected in the meantime. -1: the agent is gone.
int Wanted(NvmlWatch* watch) {
  const bool waited = watch->Wait(kWatchStep);
  pollfd in = {STDIN_FILENO, POLLIN, 0};
  const int step = waited ? 0 : static_cast<int>(absl::ToInt64Milliseconds(kWatchStep));
  const int ready = poll(&in, 1, step);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return 0;
  char byte = 0;
  return ready > 0 && read(STDIN_FILENO, &byte, 1) == 1 ? 1 : -1;
}

int Watch(const std::string& name) {
  StayChild();
  const auto library = NvmlLibrary::Open(name.empty() ? kNvmlLibraryName : name);
  if (!library.ok()) {
    const uint64_t none = 0;
    WriteAll({reinterpret_cast<const char*>(&none), sizeof none});
    WriteAll(library.status().message());
    return kFirstErrorExit + static_cast<int>(library.status().code());
  }
  NvmlWatch watch(**library);
  for (;;) {
    const int wanted = Wanted(&watch);
    if (wanted < 0) return 0;
    if (wanted == 0) continue;
    const std::string report = EncodeReport(watch.Read());
    const uint64_t size = report.size();
    if (!WriteAll({reinterpret_cast<const char*>(&size), sizeof size}) || !WriteAll(report))
      return 1;
  }
}

}  // namespace

int ProbeMain(int argc, char** argv) {
  if (argc == 3 && absl::string_view(argv[1]) == kWatchFlag) return Watch(argv[2]);
  if (argc >= 3 && absl::string_view(argv[1]) == kDivideFlag) return Divide(argc, argv);
  DiscoverOptions options;
  if (!ReadArguments(argc, argv, &options)) {
    fputs("berth-probe: started by berth-agent only; use berth-agent --discover\n", stderr);
    return 2;
  }
  LockDown(!options.from.empty());
  const absl::StatusOr<Machine> machine = Discover(options);
  if (machine.ok()) return WriteAll(EncodeMachine(*machine)) ? 0 : 1;
  return Answer(machine.status());
}

}  // namespace berth::discovery
