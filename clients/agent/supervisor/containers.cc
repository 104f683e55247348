#include "clients/agent/supervisor/containers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "clients/agent/supervisor/child.h"
#include "clients/agent/supervisor/output_pipes.h"

namespace berth {
namespace {

constexpr int64_t kFirstWaitNs = 1'000'000'000;  // before a sidecar is started again
constexpr int64_t kLongestWaitNs = 64 * kFirstWaitNs;
constexpr int64_t kNsPerMilli = 1'000'000;
constexpr int64_t kKillAgainNs = 50 * kNsPerMilli;
constexpr int kCannotStart = 126;

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

std::string ContainerTitle(const SupervisorSpec& spec) {
  const char* kind = spec.kind == SupervisorSpec::kInit      ? "init "
                     : spec.kind == SupervisorSpec::kSidecar ? "sidecar "
                                                             : "container ";
  return kind + spec.name;
}

struct TaskContainers::Container {
  std::string directory;
  SupervisorSpec spec;
  SupervisorStatus status;
  std::unique_ptr<LogWriter> log;
  OutputPipes pipes;
  pid_t pid = 0;         // leader of its process group; 0: it does not run
  pid_t init = 0;        // of its PID namespace; 0: there is none
  bool over = false;     // a step or a peer has ended as it should
  bool started = false;  // at least once
  bool timed_out = false;
  int64_t kill_at_ns = 0;   // of a step; 0: never
  int64_t start_at_ns = 0;  // of a sidecar that has ended; 0: it waits for nothing
  int64_t wait_ns = kFirstWaitNs;

  bool Is(SupervisorSpec::Kind kind) const { return spec.kind == kind; }
  void WriteStatus() { ReplaceFile(directory, "status", EncodeStatus(status)); }
};

TaskContainers::TaskContainers() = default;
TaskContainers::~TaskContainers() = default;

int TaskContainers::Open(const std::string& task_directory, const SupervisorSpec& task) {
  for (const std::string& name : task.container_names) {
    auto one = std::make_unique<Container>();
    one->directory = task_directory + kContainers + name;
    std::string text;
    if (const int error = ReadWholeFile(one->directory + "/spec", &text); error != 0) return error;
    if (!DecodeSpec(text, &one->spec)) return EINVAL;
    one->status.supervisor_pid = getpid();
    one->log = std::make_unique<LogWriter>(one->directory, task.log_file_bytes, task.log_files);
    if (const int error = one->pipes.Open(); error != 0) return error;
    all_.push_back(std::move(one));
  }
  return 0;
}

std::optional<ContainerFailure> TaskContainers::Advance(int64_t now_ns) {
  for (const auto& one : all_) {
    if (one->Is(SupervisorSpec::kPeer)) continue;
    if (!one->started) {
      if (auto failure = Start(*one, now_ns)) return failure;
    }
    if (one->Is(SupervisorSpec::kInit) && !one->over) return std::nullopt;
  }
  for (const auto& one : all_) {
    if (!one->Is(SupervisorSpec::kPeer) || one->started) continue;
    if (auto failure = Start(*one, now_ns)) return failure;
  }
  return std::nullopt;
}

bool TaskContainers::Ready() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& one) {
    return one->started && (!one->Is(SupervisorSpec::kInit) || one->over);
  });
}

std::optional<ContainerFailure> TaskContainers::Start(Container& one, int64_t now_ns) {
  const ChildResult child = StartChild(one.spec, one.pipes.out_end(), one.pipes.err_end());
  one.init = child.init_pid;
  if (child.pid <= 0) {
    ContainerFailure failure;
    failure.refused = child.refused && !began_;
    failure.own_fault = child.own_fault;
    failure.exit_code = child.exit_code != 0 ? child.exit_code : kCannotStart;
    failure.message = ContainerTitle(one.spec) + ": " + child.message;
    return failure;
  }
  began_ = one.started = true;
  one.pid = child.pid;
  one.start_at_ns = 0;
  if (one.spec.timeout_ms > 0) one.kill_at_ns = now_ns + one.spec.timeout_ms * kNsPerMilli;
  one.status.pid = child.pid;
  one.status.started_ns = now_ns;
  one.status.phase = SupervisorStatus::kRunning;
  one.WriteStatus();
  return std::nullopt;
}

TaskContainers::Container* TaskContainers::Find(pid_t pid) const {
  for (const auto& one : all_) {
    if (pid > 0 && one->pid == pid) return one.get();
  }
  return nullptr;
}

bool TaskContainers::Owns(pid_t pid) const { return Find(pid) != nullptr; }

std::optional<ContainerFailure> TaskContainers::OnExit(pid_t pid, int wait_status, int64_t now_ns,
                                                       bool ending) {
  Container& one = *Find(pid);
  one.pid = 0;
  one.kill_at_ns = 0;
  if (one.init > 0) kill(one.init, SIGKILL);  // with all that the container left in its namespace
  one.status.exit_code = ExitCodeOf(wait_status);
  one.status.exit_signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  one.status.phase = SupervisorStatus::kExited;
  one.WriteStatus();
  if (one.Is(SupervisorSpec::kSidecar)) {
    if (ending) return std::nullopt;
    one.start_at_ns = now_ns + one.wait_ns;
    one.wait_ns = std::min(2 * one.wait_ns, kLongestWaitNs);
    return std::nullopt;
  }
  one.over = true;
  if (one.status.exit_code == 0 && !one.timed_out) return std::nullopt;
  ContainerFailure failure;
  failure.exit_code = static_cast<int>(one.status.exit_code);
  failure.exit_signal = static_cast<int>(one.status.exit_signal);
  failure.message = ContainerTitle(one.spec);
  if (one.timed_out)
    failure.message += " took longer than " + std::to_string(one.spec.timeout_ms / 1000) + " s";
  else if (failure.exit_signal != 0)
    failure.message += " was killed by signal " + std::to_string(failure.exit_signal);
  else
    failure.message += " exited with " + std::to_string(failure.exit_code);
  return failure;
}

void TaskContainers::Forget(pid_t pid) {
  for (const auto& one : all_) {
    if (one->init == pid) one->init = 0;
  }
}

std::optional<ContainerFailure> TaskContainers::CheckTime(int64_t now_ns, bool ending) {
  for (const auto& one : all_) {
    if (one->kill_at_ns != 0 && now_ns >= one->kill_at_ns) {
      one->timed_out = true;
      if (one->init > 0) kill(one->init, SIGKILL);
      kill(-one->pid, SIGKILL);
      one->kill_at_ns = now_ns + kKillAgainNs;
    }
    if (one->start_at_ns == 0 || now_ns < one->start_at_ns) continue;
    one->start_at_ns = 0;
    if (ending) continue;
    if (auto failure = Start(*one, now_ns)) return failure;
  }
  return std::nullopt;
}

int64_t TaskContainers::NextNs() const {
  int64_t next = 0;
  for (const auto& one : all_) {
    for (const int64_t at : {one->kill_at_ns, one->start_at_ns}) {
      if (at != 0) next = next == 0 ? at : std::min(next, at);
    }
  }
  return next;
}

bool TaskContainers::PeersRun() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& one) {
    return one->Is(SupervisorSpec::kPeer) && one->pid > 0;
  });
}

bool TaskContainers::AnyRuns() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& one) { return one->pid > 0; });
}

void TaskContainers::Signal(int signal) const {
  for (const auto& one : all_) {
    if (one->pid > 0) kill(-one->pid, signal);
  }
}

void TaskContainers::SignalPeers(int signal) const {
  for (const auto& one : all_) {
    if (one->Is(SupervisorSpec::kPeer) && one->pid > 0) kill(-one->pid, signal);
  }
}

void TaskContainers::AddTo(std::vector<pollfd>* fds) const {
  for (const auto& one : all_) one->pipes.AddTo(fds);
}

void TaskContainers::ReadOutput(int64_t unix_ms) {
  for (const auto& one : all_) one->pipes.Read(*one->log, unix_ms);
}

void TaskContainers::Close(int64_t unix_ms) {
  ReadOutput(unix_ms);
  for (const auto& one : all_) {
    one->status.has_output = one->log->written();
    one->status.phase = SupervisorStatus::kExited;
    one->WriteStatus();
  }
}

}  // namespace berth
