// Supervisor: a task with containers.
#include <signal.h>
#include <unistd.h>

#include "clients/agent/supervisor/supervisor.h"

namespace berth {
namespace {

constexpr int64_t kNsOfGraceMs = 1'000'000;
const ContainerFailure kStoppedBefore = {
    .exit_code = 128 + SIGTERM, .exit_signal = SIGTERM, .message = ""};

}  // namespace

void Supervisor::AdvanceContainers() {
  if (const auto failure = containers_.Advance(BoottimeNs())) return FailBy(*failure);
  if (containers_.Ready()) StartCommand();
}

bool Supervisor::IsUnderWay() const {
  return phase_ == Phase::kStarting || phase_ == Phase::kRunning;
}

void Supervisor::OnContainerExit(pid_t pid, int wait_status) {
  const auto failure = containers_.OnExit(pid, wait_status, BoottimeNs(), !IsUnderWay());
  if (!IsUnderWay()) {
    if (phase_ == Phase::kEnding && main_pid_ == 0 && !containers_.AnyRuns()) EndContainers();
    return;
  }
  if (failure) return FailBy(*failure);
  const bool stops = stop_cause_ != 0 || !failure_.empty();
  if (phase_ == Phase::kStarting && stops) return FailBy(kStoppedBefore);
  if (phase_ == Phase::kStarting) return AdvanceContainers();
  if (main_pid_ == 0 && !containers_.PeersRun()) EndContainers();
}

// A container has ended the task, or it is stopped before its command began.
void Supervisor::FailBy(const ContainerFailure& failure) {
  if (stop_cause_ == 0 && failure_.empty()) Note(failure.message);
  status_.own_fault = failure.own_fault;
  if (phase_ == Phase::kStarting && !failure.refused) {  // the task has run, in a step
    status_.pid = getpid();
    status_.started_ns = BoottimeNs();
  }
  if (failure.refused) end_phase_ = SupervisorStatus::kRefused;
  if (!failure.refused) RecordEnd(failure.exit_code, failure.exit_signal);
  const int signal = static_cast<int>(spec_.stop_signal);
  SendSignal(signal > 0 ? signal : SIGTERM);
  EndContainers();
}

// How the task ends is known: what still runs gets SIGTERM, and the grace that is left.
void Supervisor::EndContainers() {
  const bool runs = main_pid_ > 0 || containers_.AnyRuns();
  if (!runs || phase_ == Phase::kEnding) {
    if (runs) return;
    kill_at_ns_ = 0;
    return Clean(Phase::kCleaning);
  }
  phase_ = Phase::kEnding;
  containers_.Signal(SIGTERM);
  if (kill_at_ns_ == 0) kill_at_ns_ = BoottimeNs() + spec_.grace_ms * kNsOfGraceMs;
}

}  // namespace berth
