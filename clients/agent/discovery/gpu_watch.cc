#include "clients/agent/discovery/gpu_watch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/discovery/probe_protocol.h"
#include "clients/agent/discovery/wire.h"

namespace berth::discovery {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(50);
constexpr int kReapTries = 20;
constexpr size_t kMaxMessage = 512;

}  // namespace

GpuWatch::GpuWatch(std::string program, std::string nvml_library)
    : program_(std::move(program)), library_(std::move(nvml_library)) {}

GpuWatch::~GpuWatch() { End(); }

absl::Status GpuWatch::Start() {
  if (!Reap()) return absl::DeadlineExceededError("the driver hangs; the probe cannot be killed");
  if (!in_.Open() || !out_.Open())
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  SpawnSetup setup;
  setup.Describe(in_.read.get(), out_.write.get(), -1);
  std::string program = program_;
  std::string flag = kWatchFlag;
  std::string library = library_;
  char* argv[] = {program.data(), flag.data(), library.data(), nullptr};
  const int error =
      posix_spawn(&pid_, program.c_str(), &setup.files, &setup.attributes, argv, environ);
  in_.read.Close();
  out_.write.Close();
  answer_.clear();
  if (error == 0) return absl::OkStatus();
  pid_ = -1;
  return absl::UnavailableError(absl::StrCat(program_, ": ", strerror(error)));
}

// If the probe has exited, its output shows it. Avoids SIGPIPE, which only main() ignores.
void GpuWatch::Send() {
  pollfd in = {in_.write.get(), POLLOUT, 0};
  if (poll(&in, 1, 0) != 1 || (in.revents & POLLERR) != 0) return;
  (void)!write(in_.write.get(), "?", 1);
}

// Reads until the response has `size` bytes.
absl::Status GpuWatch::Fill(size_t size, absl::Time deadline, const std::atomic<bool>& stop) {
  while (answer_.size() < size) {
    if (stop.load()) return absl::CancelledError("the agent is stopping");
    if (absl::Now() > deadline) return absl::DeadlineExceededError("the driver does not respond");
    pollfd out = {out_.read.get(), POLLIN, 0};
    const int ready = poll(&out, 1, static_cast<int>(absl::ToInt64Milliseconds(kStep)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char block[4096];
    const ssize_t n = read(out_.read.get(), block, std::min(sizeof block, size - answer_.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ExitError();
    answer_.append(block, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// The probe closed its output: it exited with a code and a message, or crashed.
absl::Status GpuWatch::ExitError() {
  int status = 0;
  for (int i = 0; i < kReapTries; ++i) {
    const pid_t done = waitpid(pid_, &status, WNOHANG);
    if (done == 0) {
      absl::SleepFor(kStep);
      continue;
    }
    pid_ = -1;
    if (done < 0) return absl::InternalError("the probe that queries the driver is gone");
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code > kFirstErrorExit && code <= kLastErrorExit) {
      return absl::Status(static_cast<absl::StatusCode>(code - kFirstErrorExit),
                          answer_.substr(0, kMaxMessage));
    }
    if (WIFSIGNALED(status))
      return absl::InternalError(
          absl::StrCat("the driver query crashed: ", strsignal(WTERMSIG(status))));
    return absl::InternalError(absl::StrCat("the driver query ended with code ", code));
  }
  return absl::InternalError("the probe closed its output but does not exit");
}

absl::StatusOr<GpuReport> GpuWatch::Ask(absl::Duration timeout, const std::atomic<bool>& stop) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::Status status = pid_ > 0 && out_.read.get() >= 0 ? absl::OkStatus() : Start();
  uint64_t size = 0;
  answer_.clear();
  if (status.ok()) Send();
  if (status.ok()) status = Fill(sizeof size, deadline, stop);
  if (status.ok()) {
    std::memcpy(&size, answer_.data(), sizeof size);
    answer_.clear();
    if (size == 0) status = Fill(kMaxMessage, deadline, stop);
    if (size > kMaxWireBytes) status = absl::InternalError("the probe's response is too long");
  }
  if (status.ok()) status = Fill(size, deadline, stop);
  if (status.ok()) {
    absl::StatusOr<GpuReport> report = DecodeReport(answer_);
    if (report.ok()) return report;
    status = report.status();
  }
  End();
  return status;
}

// A process that hangs inside the kernel survives even SIGKILL: it is reaped later.
void GpuWatch::End() {
  in_.write.Close();
  out_.read.Close();
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  for (int i = 0; i < kReapTries && !Reap(); ++i) absl::SleepFor(kStep / 10);
}

bool GpuWatch::Reap() {
  if (pid_ <= 0) return true;
  kill(pid_, SIGKILL);
  const pid_t done = waitpid(pid_, nullptr, WNOHANG);
  if (done == 0) return false;
  pid_ = -1;
  return true;
}

}  // namespace berth::discovery
