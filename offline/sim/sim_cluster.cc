#include "offline/sim/sim_cluster.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/apply.h"
#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "offline/sim/reload.h"

namespace berth {
namespace {

TaskReported ReportOf(TaskKey key, uint32_t attempt, ReportState state) {
  TaskReported report;
  report.task = key;
  report.attempt = attempt;
  report.state = state;
  return report;
}

absl::Status AsInternalError(const char* what, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::Status SimCluster::Happen(EventBody body) {
  const auto* registered = std::get_if<NodeRegistered>(&body);
  const NodeId node = registered == nullptr ? NodeId{} : registered->id;
  if (auto status = ApplyAt(now_, std::move(body)); !status.ok()) return status;
  if (node == NodeId{}) return absl::OkStatus();
  for (EventBody& event : membership_.Follow(state_, {node})) {
    if (auto status = ApplyAt(now_, std::move(event)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SimCluster::ChangeHyperNodes(absl::Span<const HyperNodeSpec> changed,
                                          absl::Span<const std::string> deleted) {
  auto events = membership_.Plan(state_, changed, deleted);
  if (!events.ok()) return events.status();
  for (EventBody& event : *events) {
    if (auto status = ApplyAt(now_, std::move(event)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SimCluster::ApplyAt(Time time, EventBody body) {
  const Event event{time, std::move(body)};
  if (auto status = berth::Apply(state_, event); !status.ok()) return status;
  Note(event.body);
  if (observer_) observer_(event.body);
  return absl::OkStatus();
}

void SimCluster::SetPolicies(Policies policies) {
  policies_ = std::move(policies);
  StateEditor editor(state_);
  editor.ForgetVerdicts();
  editor.ForgetMissed();
  wake_at_ = now_;
}

int64_t SimCluster::tasks() const {
  int64_t count = 0;
  for (size_t i = 0; i < kTaskStates; ++i) count += state_.tasks_in(static_cast<TaskState>(i));
  return count;
}

void SimCluster::SetUsage(QueueId queue, std::vector<NamedAmount> usage) {
  StateEditor editor(state_);
  editor.SetQueueUsage(queue, std::move(usage));
  editor.SetUsageCharged(now_);
}

// Notes the tasks whose agents may have work because of an event.
void SimCluster::Note(const EventBody& body) {
  if (const auto* bound = std::get_if<TasksBound>(&body)) {
    for (const Placement& place : bound->placements) NoteTask({bound->job, place.task});
  } else if (const auto* started = std::get_if<TasksStarted>(&body)) {
    for (uint32_t task : started->tasks) NoteTask({started->job, task});
  } else if (const auto* released = std::get_if<TasksReleased>(&body)) {
    for (uint32_t task : released->tasks) NoteTask({released->job, task});
  } else if (const auto* paused = std::get_if<TasksPaused>(&body)) {
    for (uint32_t task : paused->tasks) NoteTask({paused->job, task});
  } else if (const auto* resumed = std::get_if<TasksResumed>(&body)) {
    for (uint32_t task : resumed->tasks) NoteTask({resumed->job, task});
  } else if (const auto* report = std::get_if<TaskReported>(&body)) {
    NoteTask(report->task);
  } else if (const auto* node = std::get_if<NodeRegistered>(&body)) {
    ResumeAgent(node->id);
  }
}

void SimCluster::NoteTask(TaskKey key) {
  const Task& task = state_.jobs().At(key.job).tasks[key.task];
  const auto add = [&](Time due, Duty duty) { errands_.insert({due, key, duty, task.attempt}); };
  if (task.state == TaskState::kReleasing) {
    add(task.since + options_.release_delay, Duty::kStop);
  } else if (options_.auto_start && task.state == TaskState::kBound) {
    add(task.since, Duty::kPrepare);
  } else if (options_.auto_start && task.state == TaskState::kStarting) {
    add(task.since, Duty::kRun);
  } else if (task.state == TaskState::kRunning && task.pause == PauseState::kPausing) {
    add(now_, Duty::kFreeze);
  } else if (task.state == TaskState::kRunning) {
    const Time end = EndOf(task, key.job);
    if (end != absl::InfiniteFuture()) add(end, Duty::kEnd);
  }
}

// A frozen task does not end.
Time SimCluster::EndOf(const Task& task, JobId job) const {
  const JobStatus& status = state_.jobs().At(job).status;
  if (task.pause != PauseState::kRuns) return absl::InfiniteFuture();
  const auto end = ends_.find(job);
  if (end != ends_.end()) return end->second;
  auto run_time = run_times_.find(job);
  const Job* member = state_.jobs().Find(job);
  if (run_time == run_times_.end() && member != nullptr && member->member) {
    run_time = run_times_.find(member->member->series);
  }
  return run_time == run_times_.end() ? absl::InfiniteFuture()
                                      : task.start + run_time->second + status.pause.total;
}

void SimCluster::RunsUntil(JobId id, Time end) {
  const Job& job = state_.jobs().At(id);
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.state != TaskState::kRunning) continue;
    errands_.erase({EndOf(task, id), {id, i}, Duty::kEnd, task.attempt});
  }
  ends_[id] = end;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state == TaskState::kRunning) NoteTask({id, i});
  }
}

void SimCluster::Adopt(ClusterState state) {
  state_ = std::move(state);
  state_.nodes().ForEach([&](NodeId id, const Node& node) {
    if (node.status.state == NodeState::kReady) ResumeAgent(id);
  });
}

void SimCluster::ResumeAgent(NodeId id) {
  std::vector<TaskKey> tasks = state_.nodes().At(id).tasks;
  std::sort(tasks.begin(), tasks.end());
  for (TaskKey key : tasks) NoteTask(key);
}

bool SimCluster::Valid(const Errand& errand) const {
  const Job* job = state_.jobs().Find(errand.task.job);
  if (job == nullptr) return false;
  const Task& task = job->tasks[errand.task.task];
  if (task.attempt != errand.attempt) return false;
  switch (errand.duty) {
    case Duty::kPrepare:
      return task.state == TaskState::kBound;
    case Duty::kRun:
      return task.state == TaskState::kStarting;
    case Duty::kStop:
      return task.state == TaskState::kReleasing;
    case Duty::kEnd:  // its end may have moved
      return task.state == TaskState::kRunning && EndOf(task, job->id) <= errand.due;
    case Duty::kFreeze:
      return task.state == TaskState::kRunning && task.pause == PauseState::kPausing;
  }
  return false;
}

absl::Status SimCluster::Answer() {
  std::vector<Errand> due;
  while (!errands_.empty() && errands_.begin()->due <= now_) {
    if (Valid(*errands_.begin())) due.push_back(*errands_.begin());
    errands_.erase(errands_.begin());
  }
  for (const Errand& errand : due) {
    ReportState what = ReportState::kExited;
    if (errand.duty == Duty::kPrepare) what = ReportState::kPrepared;
    if (errand.duty == Duty::kRun) what = ReportState::kRunning;
    if (errand.duty == Duty::kFreeze) what = ReportState::kPaused;
    TaskReported report = ReportOf(errand.task, errand.attempt, what);
    if (errand.duty == Duty::kFreeze) {
      const Job& job = state_.jobs().At(errand.task.job);
      report.devices_lent = MayLend(state_, job, errand.task.task);
    }
    if (errand.duty == Duty::kStop) {
      report.cause = ExitCause::kKilled;
      report.exit_signal = 15;
    }
    auto status = Happen(std::move(report));
    if (!status.ok()) return AsInternalError("an agent's report", status);
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> SimCluster::Cycle(absl::FunctionRef<void(const EventBody&)> tell) {
  if (cycles_ > 0) {
    if (auto status = Answer(); !status.ok()) return status;
  }
  ++cycles_;
  Plan plan = PlanCycle(state_, policies_, now_, options_.budget);
  for (const EventBody& decision : plan.decisions) {
    tell(decision);
    auto status = Happen(decision);
    if (!status.ok()) return AsInternalError("a decision", status);
  }
  wake_at_ = plan.wake_at;
  const bool answers_due = !errands_.empty() && errands_.begin()->due <= now_;
  quiet_ = !answers_due && plan.decisions.empty() && !plan.exhausted;
  if (options_.check_consistency) {
    if (auto status = CheckConsistency(state_); !status.ok()) return status;
  }
  return plan;
}

Time SimCluster::NextDue() const {
  Time next = wake_at_;
  for (const Errand& errand : errands_) {
    if (errand.due <= now_) continue;  // of nodes that do not report, or due now
    next = std::min(next, errand.due);
    break;
  }
  return next;
}

absl::Status SimCluster::Reload(uint64_t seed) {
  ClusterState loaded;
  if (auto status = LoadShuffled(state_, seed, &loaded); !status.ok()) return status;
  if (Fingerprint(loaded) != Fingerprint(state_)) {
    return absl::InternalError("loading the facts and applying the events give different states");
  }
  state_ = std::move(loaded);
  return CheckConsistency(state_);
}

}  // namespace berth
