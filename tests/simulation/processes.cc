#include "tests/simulation/processes.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "support/proto_time.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kLongestStart = absl::Milliseconds(50);
constexpr absl::Duration kDefaultRunTime = absl::Seconds(30);
constexpr absl::Duration kLookAtLonger = absl::Milliseconds(250);  // like the supervisor
constexpr absl::Duration kMeanObedience = absl::Milliseconds(300);

}  // namespace

int64_t VariableOf(const v1::TaskLaunch& launch, absl::string_view name, int64_t otherwise) {
  for (const v1::EnvVar& variable : launch.env()) {
    int64_t value = 0;
    if (variable.name() == name && absl::SimpleAtoi(variable.value(), &value)) return value;
  }
  return otherwise;
}

Processes::Processes(Scheduler* scheduler, Observer* observer, size_t node, uint64_t seed,
                     std::function<absl::Duration()> local,
                     std::function<void(const TaskId&)> changed)
    : scheduler_(scheduler),
      observer_(observer),
      node_(node),
      dice_(seed, 0x70726f63 + node),
      hang_dice_(seed, 0x68616e67 + node),
      local_(std::move(local)),
      changed_(std::move(changed)) {}

bool Processes::Spawn(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) {
  const auto [entry, fresh] = processes_.try_emplace(id);
  Process& process = entry->second;
  if (!fresh && process.actor != nullptr && !process.actor->dead) return false;
  process = Process();
  process.launch = launch;
  process.start = start;
  process.actor = machine;
  process.obeys = dice_.Chance(0.8);
  process.run_time = absl::Milliseconds(
      VariableOf(launch, kRunTimeVariable, absl::ToInt64Milliseconds(kDefaultRunTime)));
  process.own_exit =
      dice_.Chance(static_cast<double>(VariableOf(launch, kFailVariable, 0)) / 100) ? 1 : 0;
  if (process.own_exit != 0) process.run_time *= dice_.Unit();  // it may fail at any time
  process.step = absl::Milliseconds(VariableOf(launch, kStepVariable, 0));
  process.will_hang =
      process.step > absl::ZeroDuration() &&
      hang_dice_.Chance(static_cast<double>(VariableOf(launch, kHangVariable, 0)) / 100);
  scheduler_->After(dice_.Between(absl::ZeroDuration(), kLongestStart), machine,
                    [this, id] { Exec(id); });
  return true;
}

void Processes::Exec(const TaskId& id) {
  Process& process = processes_.at(id);
  process.status.phase = Phase::kRunning;
  process.status.ran = true;
  process.status.began = local_();
  ++alive_;
  observer_->OnStarted(node_, id, process.launch, process.start);
  process.launch.clear_env();
  if (process.step > absl::ZeroDuration()) {
    scheduler_->After(process.step, machine, [this, id] { MakeStep(id); });
  }
  if (process.will_hang) {
    scheduler_->After(process.run_time * hang_dice_.Unit(), machine, [this, id] { Hang(id); });
  } else {
    scheduler_->After(process.run_time, machine, [this, id, code = process.own_exit] {
      ExitByItself(id, code, absl::ZeroDuration());
    });
  }
  changed_(id);
  if (process.launch.fence()) WatchLease(id);
  if (process.kill_at) {  // stopped before it ran
    const absl::Duration left = *process.kill_at - local_();
    Stop(id, std::max(left, absl::ZeroDuration()), process.stop_cause);
  }
}

void Processes::MakeStep(const TaskId& id) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  Process& process = found->second;
  if (process.hangs) return;
  if (process.status.frozen != 0) {
    return scheduler_->After(process.step, machine, [this, id] { MakeStep(id); });
  }
  process.notices.Add(absl::StrCat("X_BERTH_STEP=", ++process.steps), local_());
  scheduler_->After(process.step, machine, [this, id] { MakeStep(id); });
}

void Processes::Hang(const TaskId& id) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  found->second.hangs = true;
}

bool Processes::Hangs(const TaskId& id) const {
  const auto found = processes_.find(id);
  return found != processes_.end() && found->second.hangs &&
         found->second.status.phase == Phase::kRunning;
}

void Processes::WatchLease(const TaskId& id) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  const absl::Duration near_end = lease.value_or(absl::ZeroDuration());
  const absl::Duration end = std::max(near_end, longer_lease.value_or(absl::ZeroDuration()));
  const absl::Duration left = end - local_();
  if (left > absl::ZeroDuration()) {
    const absl::Duration look = end > near_end ? std::min(left, kLookAtLonger) : left;
    return scheduler_->After(look, machine, [this, id] { WatchLease(id); });
  }
  const absl::Duration grace = DurationFrom(found->second.launch.kill_grace()) + left;
  Stop(id, std::max(grace, absl::ZeroDuration()), v1::TaskReport::LEASE_LAPSED);
}

void Processes::Freeze(const TaskId& id, int64_t request, bool saves) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  Process& process = found->second;
  if (process.status.frozen == request || process.kill_at) return;
  if (process.status.frozen == 0) process.frozen_at = local_();
  const bool changes = (process.status.frozen != 0) != (request != 0);
  if (request == 0) Thaw(process);
  process.status.frozen = request;
  process.status.lends = request != 0 && saves && id.job_uid % 4 != 0;
  if (changes) observer_->OnTaskFrozen(node_, id, request != 0, process.status.lends);
  changed_(id);
}

void Processes::Thaw(Process& process) {
  process.frozen_for += local_() - process.frozen_at;
  process.status.thawed = local_();
  process.status.frozen = 0;
}

// Later by what it stood still since this was scheduled, when its pauses were `paused` long.
void Processes::ExitByItself(const TaskId& id, int code, absl::Duration paused) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  const Process& process = found->second;
  constexpr absl::Duration kLook = absl::Seconds(1);
  const bool frozen = process.status.frozen != 0;
  const absl::Duration late = frozen ? kLook : process.frozen_for - paused;
  if (!frozen && late <= absl::ZeroDuration()) return Exit(id, code, 0);
  const absl::Duration counted = frozen ? paused : process.frozen_for;
  scheduler_->After(late, machine, [this, id, code, counted] { ExitByItself(id, code, counted); });
}

void Processes::Stop(const TaskId& id, absl::Duration grace, v1::TaskReport::Cause cause) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Process& process = found->second;
  if (process.status.phase != Phase::kSpawned && process.status.phase != Phase::kRunning) return;
  if (process.stop_cause == v1::TaskReport::CAUSE_UNSPECIFIED) process.stop_cause = cause;
  if (process.status.frozen != 0) Thaw(process);  // to end; nobody is told
  const absl::Duration at = local_() + grace;
  process.kill_at = process.kill_at ? std::min(*process.kill_at, at) : at;
  if (process.status.phase == Phase::kSpawned) return;
  if (process.obeys && grace > absl::ZeroDuration()) {
    scheduler_->After(std::min(grace, dice_.Around(kMeanObedience)), machine,
                      [this, id] { Exit(id, 128 + SIGTERM, SIGTERM); });
  }
  scheduler_->After(grace, machine, [this, id] { Exit(id, 128 + SIGKILL, SIGKILL); });
}

void Processes::Exit(const TaskId& id, int code, int signal) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || found->second.status.phase != Phase::kRunning) return;
  Status& status = found->second.status;
  status.phase = Phase::kExited;
  status.exit_code = code;
  status.exit_signal = signal;
  status.cause = found->second.stop_cause;
  found->second.actor = nullptr;
  --alive_;
  observer_->OnEnded(node_, id, code == 0);
  changed_(id);
}

void Processes::FailLater(const TaskId& id, absl::Duration delay) {
  scheduler_->After(delay, machine, [this, id] { Exit(id, 1, 0); });
}

Processes::Status Processes::Look(const TaskId& id) const {
  const auto found = processes_.find(id);
  return found == processes_.end() ? Status{.phase = Phase::kLost} : found->second.status;
}

std::optional<TaskNotices> Processes::Read(const TaskId& id, NoticesVersion* version) {
  const auto found = processes_.find(id);
  return found == processes_.end() ? std::nullopt : found->second.notices.Read(version);
}

void Processes::Remove(const TaskId& id) {
  const auto found = processes_.find(id);
  if (found != processes_.end() && found->second.status.phase == Phase::kExited) {
    processes_.erase(found);
  }
}

void Processes::PowerCut() {
  machine->dead = true;
  machine = std::make_shared<Actor>();
  for (const auto& [id, process] : std::exchange(processes_, {})) {
    if (process.status.phase == Phase::kRunning) observer_->OnEnded(node_, id, false);
  }
  alive_ = 0;
  lease.reset();
  longer_lease.reset();
}

}  // namespace berth::simulation
