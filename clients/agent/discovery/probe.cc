#include "clients/agent/discovery/probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/discovery/child.h"
#include "clients/agent/discovery/probe_protocol.h"
#include "clients/agent/discovery/wire.h"

namespace berth::discovery {
namespace {

constexpr size_t kMaxNoiseBytes = 8 << 10;  // the rest is dropped
constexpr size_t kMaxNoiseLine = 300;

using Clock = std::chrono::steady_clock;

// The source that the probe reads, for messages.
std::string Subject(const DiscoverOptions& options) {
  if (!options.from.empty()) return options.from;
  return options.topology_file.empty() ? "this machine" : options.topology_file;
}

std::vector<std::string> Arguments(const std::string& program, const DiscoverOptions& options) {
  std::vector<std::string> arguments = {program};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add(kFromFlag, options.from);
  add(kTopologyFlag, options.topology_file);
  add(kNvmlFlag, options.nvml_library);
  return arguments;
}

class Probe {
 public:
  absl::Status Start(std::vector<std::string> arguments) {
    if (!out_.Open() || !err_.Open())
      return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
    SpawnSetup setup;
    setup.Describe(-1, out_.write.get(), err_.write.get());
    const std::string program = arguments.front();
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error =
        posix_spawn(&pid_, program.c_str(), &setup.files, &setup.attributes, argv.data(), environ);
    out_.write.Close();
    err_.write.Close();
    if (error == 0) return absl::OkStatus();
    pid_ = -1;
    return absl::UnavailableError(absl::StrCat(program, ": ", strerror(error)));
  }

  ~Probe() {
    if (pid_ > 0) End();
  }

  // Reads until both pipes end. Returns false on timeout or if the response is too long.
  bool Collect(Clock::time_point deadline, const std::atomic<bool>* stop) {
    while (out_.read.get() >= 0 || err_.read.get() >= 0) {
      if (stop != nullptr && *stop) return false;
      std::array<pollfd, 2> polled = {{{out_.read.get(), POLLIN, 0}, {err_.read.get(), POLLIN, 0}}};
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      const int ready =
          poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left, 200)));
      if (ready < 0 && errno != EINTR) return false;
      if (ready <= 0) continue;
      if (polled[0].revents != 0) Read(&out_.read, kMaxWireBytes + 1, &answer);
      if (polled[1].revents != 0) Read(&err_.read, kMaxNoiseBytes, &noise);
      if (answer.size() > kMaxWireBytes) return false;
    }
    return true;
  }

  // Kills the process if it still runs; returns the wait status.
  int End() {
    int status = 0;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  // Call after both pipes ended: the process is about to exit, or closed them and hangs.
  absl::optional<int> Wait(Clock::time_point deadline) {
    int status = 0;
    while (Clock::now() < deadline) {
      const pid_t done = waitpid(pid_, &status, WNOHANG);
      if (done == pid_) return pid_ = -1, status;
      if (done < 0 && errno != EINTR) return pid_ = -1, absl::nullopt;
      poll(nullptr, 0, 2);
    }
    return absl::nullopt;
  }

  std::string answer;
  std::string noise;

 private:
  static void Read(Fd* from, size_t most, std::string* to) {
    std::array<char, 64 << 10> block;
    const ssize_t n = read(from->get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return from->Close();
    to->append(block.data(), std::min(static_cast<size_t>(n), most - std::min(most, to->size())));
  }

  Pipe out_;
  Pipe err_;
  pid_t pid_ = -1;
};

// The first line that is not empty.
std::string NoiseLine(const std::string& noise) {
  for (absl::string_view line : absl::StrSplit(noise, '\n')) {
    if (line.find_first_not_of("*# \t") == absl::string_view::npos) continue;
    return absl::StrCat(" (", line.substr(0, kMaxNoiseLine), ")");
  }
  return "";
}

// For messages: "GPU-1: dividing it crashed", "GPU-1: not divided after 1m".
struct Work {
  std::string subject;
  absl::string_view doing;
  absl::string_view done;
};

// The response, if the probe succeeded.
absl::StatusOr<std::string> Judge(int status, const Probe& probe, const Work& work) {
  if (WIFSIGNALED(status)) {
    return absl::InternalError(absl::StrCat(work.subject, ": ", work.doing, " it crashed: ",
                                            strsignal(WTERMSIG(status)), NoiseLine(probe.noise)));
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return probe.answer;
  if (code > kFirstErrorExit && code <= kLastErrorExit) {
    return absl::Status(static_cast<absl::StatusCode>(code - kFirstErrorExit),
                        absl::StrCat(probe.answer, NoiseLine(probe.noise)));
  }
  return absl::InternalError(absl::StrCat(work.subject, ": the probe ended with exit code ", code,
                                          NoiseLine(probe.noise)));
}

absl::StatusOr<std::string> Run(std::vector<std::string> arguments, const Work& work,
                                absl::Duration timeout, const std::atomic<bool>* stop) {
  const auto deadline = Clock::now() + absl::ToChronoMilliseconds(timeout);
  Probe probe;
  if (absl::Status status = probe.Start(std::move(arguments)); !status.ok()) return status;
  const bool collected = probe.Collect(deadline, stop);
  if (stop != nullptr && *stop) return absl::CancelledError("stopped");
  if (!collected && probe.answer.size() > kMaxWireBytes)
    return absl::InternalError(absl::StrCat(work.subject, ": the probe's response is too long"));
  const absl::optional<int> status = collected ? probe.Wait(deadline) : absl::nullopt;
  if (status) return Judge(*status, probe, work);
  return absl::DeadlineExceededError(
      absl::StrCat(work.subject, ": not ", work.done, " after ", absl::FormatDuration(timeout)));
}

}  // namespace

absl::StatusOr<Machine> RunProbe(const std::string& program, const DiscoverOptions& options,
                                 absl::Duration timeout, const std::atomic<bool>* stop) {
  const Work work = {Subject(options), "reading", "read"};
  const absl::StatusOr<std::string> answer = Run(Arguments(program, options), work, timeout, stop);
  if (!answer.ok()) return answer.status();
  absl::StatusOr<Machine> machine = DecodeMachine(*answer);
  if (machine.ok()) return machine;
  return absl::InternalError(absl::StrCat(work.subject, ": ", machine.status().message()));
}

absl::Status RunDivision(const std::string& program, const std::string& nvml_library,
                         const std::string& uuid, const std::vector<GpuPart>& parts,
                         absl::Duration timeout, const std::atomic<bool>* stop) {
  std::vector<std::string> arguments = {program, kDivideFlag, uuid};
  if (!nvml_library.empty()) arguments.insert(arguments.end(), {kNvmlFlag, nvml_library});
  for (const GpuPart& part : parts) arguments.insert(arguments.end(), {kPartFlag, ToString(part)});
  return Run(std::move(arguments), {uuid, "dividing", "divided"}, timeout, stop).status();
}

}  // namespace berth::discovery
