#include "clients/agent/cuda_checkpoint.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/agent/device_access.h"
#include "clients/agent/discovery/child.h"

namespace berth {
namespace {

constexpr absl::Duration kHelpTimeout = absl::Seconds(5);
constexpr size_t kMaxHelp = 64 << 10;
constexpr const char* kUsualPlaces[] = {"/usr/bin", "/usr/local/bin", "/usr/local/cuda/bin",
                                        "/opt/cuda/bin"};

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string Search(const std::string& path) {
  std::vector<std::string> places = absl::StrSplit(path, ':', absl::SkipEmpty());
  places.insert(places.end(), std::begin(kUsualPlaces), std::end(kUsualPlaces));
  for (const std::string& place : places) {
    const std::string program = absl::StrCat(place, "/cuda-checkpoint");
    if (place.front() == '/' && IsProgram(program)) return program;
  }
  return "";
}

// Until the end of the output, or in vain.
std::string ReadUntil(int fd, absl::Time end) {
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxHelp) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

// What `program --help` writes; empty if it does not start, or writes nothing in time.
std::string HelpOf(std::string program) {
  discovery::Pipe pipe;
  if (!pipe.Open()) return "";
  discovery::SpawnSetup setup;
  setup.Describe(-1, pipe.write.get(), pipe.write.get());
  std::string flag = "--help";
  char* arguments[] = {program.data(), flag.data(), nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &setup.files, &setup.attributes, arguments, environ);
  pipe.write.Close();
  if (error != 0) return "";
  std::string text = ReadUntil(pipe.read.get(), absl::Now() + kHelpTimeout);
  kill(pid, SIGKILL);  // if it still runs
  waitpid(pid, nullptr, 0);
  return text;
}

}  // namespace

absl::StatusOr<std::string> FindCudaCheckpoint(const std::string& configured,
                                               const std::string& path) {
  if (configured == kNoCudaCheckpoint) return "";
  const std::string program = configured.empty() ? Search(path) : configured;
  if (program.empty()) return "";
  if (!IsProgram(program)) {
    return absl::FailedPreconditionError(absl::StrCat(program, " cannot be executed"));
  }
  const std::string help = HelpOf(program);
  for (const char* word : {"--get-state", "--action", "--timeout"}) {
    if (absl::StrContains(help, word)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(program, " does not know ", word, ": the one of NVIDIA's driver 570 does"));
  }
  return program;
}

std::vector<std::string> GpuFiles(const config::v1::Agent& config) {
  std::vector<std::string> files = {"/dev/nvidia"};
  if (!config.device_access().contains("gpu")) return files;
  const std::vector<DeviceAccess> all = AccessOf(config, config.devices(), {}, false);
  for (const v1::Device& device : config.devices()) {
    if (device.kind() != "gpu") continue;
    for (const DeviceAccess& access : all) {
      const auto found = access.devices.find(device.uuid());
      if (found == access.devices.end()) continue;
      files.insert(files.end(), found->second.files.begin(), found->second.files.end());
    }
  }
  return files;
}

}  // namespace berth
