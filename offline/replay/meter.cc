#include "offline/replay/meter.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "offline/replay/network_tier.h"

namespace berth::replay {
namespace {

std::vector<int32_t> Ones(size_t count) { return std::vector<int32_t>(count, 1); }

std::vector<NodeId> NodesOf(const Job& job) {
  std::vector<NodeId> nodes;
  for (const Task& task : job.tasks) {
    if (Occupies(task.state)) nodes.push_back(task.node);
  }
  return nodes;
}

}  // namespace

// Owners by queue if given, otherwise by user; sorted by name.
Meter::OwnerSet Meter::OwnersOf(const Workload& workload, const std::vector<std::string>* queues) {
  OwnerSet set;
  const auto name = [&](size_t i) -> const std::string& {
    return queues != nullptr ? (*queues)[i] : workload.jobs[i].user;
  };
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < workload.jobs.size(); ++i) index[name(i)] = 0;
  for (auto& [text, at] : index) {
    at = set.names.size();
    set.names.push_back(text);
  }
  for (size_t i = 0; i < workload.jobs.size(); ++i) set.of_job.push_back(index[name(i)]);
  set.lost.resize(set.names.size());
  set.lost_to_failures.resize(set.names.size());
  return set;
}

std::vector<int32_t> Meter::WeightsOf(const OwnerSet& queues, const ClusterState& state) {
  std::vector<int32_t> weights;
  for (const std::string& name : queues.names) {
    const Queue* queue = state.FindQueue(name);
    weights.push_back(queue == nullptr ? 1 : queue->spec.weight);
  }
  return weights;
}

Meter::Meter(const Workload& workload, const std::vector<std::string>& queue_of,
             const ClusterState& state, const ReplayOptions& options, ReplayRun* run)
    : state_(state),
      progress_(options.progress),
      run_(*run),
      queues_(OwnersOf(workload, &queue_of)),
      users_(OwnersOf(workload, nullptr)),
      queue_shares_(WeightsOf(queues_, state), state.capacity()),
      user_shares_(Ones(users_.names.size()), state.capacity()),
      total_(Ones(1), state.capacity()),
      rooms_(workload),
      first_job_(state.next_job_id().value),
      recorder_(state, options.record) {
  run_.outcomes.resize(workload.jobs.size());
  state.nodes().ForEach([&](NodeId id, const Node&) { Touch(id); });
}

void Meter::Submitted(JobId id) {
  const size_t job = IndexOf(id);
  ++waiting_;
  queue_shares_.Demand(queues_.of_job[job], 1, 1);
  user_shares_.Demand(users_.of_job[job], 1, 1);
  jobs_.push_back(id);
}

void Meter::Touch(JobId id) {
  if (jobs_.empty() || jobs_.back() != id) jobs_.push_back(id);
}
void Meter::Touch(NodeId id) {
  if (nodes_.empty() || nodes_.back() != id) nodes_.push_back(id);
}

void Meter::TouchTasksOf(NodeId id) {
  Touch(id);
  for (const TaskKey& key : state_.nodes().At(id).tasks) Touch(key.job);
}

// The run time of a task that is lost: since its last checkpoint, or all of it. For a task that was
// told to stop: the time since then.
void Meter::Lose(const Job& job, uint32_t index, Time now, bool failure) {
  const Task& task = job.tasks[index];
  const TaskState state = task.state == TaskState::kLost ? task.before_lost : task.state;
  const auto stopped = stopped_.find({job.id, index});
  const bool stops = state == TaskState::kReleasing && stopped != stopped_.end();
  if (state != TaskState::kRunning && !stops) return;
  Time since = stops ? stopped->second : task.start;
  if (!stops && progress_ != nullptr) {
    since = std::max(since, now - progress_->Unsaved(job.id, now));
  } else if (!stops && job.checkpoint_interval != absl::InfiniteDuration()) {
    since += absl::Floor(now - since, job.checkpoint_interval);
  }
  stopped_[{job.id, index}] = now;
  AddLost(job, index, now - since, failure);
}

void Meter::AddLost(const Job& job, uint32_t index, Duration lost, bool failure) {
  const ShapeId shape = job.groups[GroupOf(job, index)].shape;
  const Resources& amounts = state_.interner().Shape(shape).resources;
  const double seconds = absl::ToDoubleSeconds(lost);
  const size_t at = IndexOf(job.id);
  OwnerSet* const sets[] = {&queues_, &users_};
  for (OwnerSet* set : sets) {
    (failure ? set->lost_to_failures : set->lost)[set->of_job[at]].Add(amounts, seconds);
  }
  (failure ? lost_to_failures_ : lost_).Add(amounts, seconds);
}

// The tasks of the node are lost at once. The rest of their gangs is then released by decisions.
void Meter::NodeFails(NodeId id, Time now) {
  absl::flat_hash_set<JobId> seen;
  for (const TaskKey& key : state_.nodes().At(id).tasks) {
    const Job& job = state_.jobs().At(key.job);
    Lose(job, key.task, now, /*failure=*/true);
    if (seen.insert(key.job).second) ++run_.outcomes[IndexOf(key.job)].failures;
  }
}

void Meter::Fails(JobId id, const TaskReported* failed, Time now) {
  ++run_.outcomes[IndexOf(id)].failures;
  if (failed == nullptr) return;
  Lose(state_.jobs().At(id), failed->task.task, now, /*failure=*/true);
}

void Meter::Released(const TasksReleased& released, Time now) {
  const bool evicted = released.beneficiary != JobId{};
  if (!evicted && !released.requeue) return;
  const Job& job = state_.jobs().At(released.job);
  for (uint32_t task : released.tasks) Lose(job, task, now, /*failure=*/!evicted);
  if (!evicted) return;
  evicted_ = {job.id, now};
  Outcome& outcome = run_.outcomes[IndexOf(job.id)];
  outcome.evicted_tasks += static_cast<int64_t>(released.tasks.size());
  ++outcome.preemptions;
}

// For a restarted gang, the tasks that had already succeeded.
void Meter::Requeued(const TasksRequeued& requeued, Time now) {
  const Job& job = state_.jobs().At(requeued.job);
  const bool evicted = evicted_ == std::pair(job.id, now);
  for (uint32_t index : requeued.tasks) {
    const Task& task = job.tasks[index];
    if (task.state != TaskState::kSucceeded) continue;
    AddLost(job, index, task.since - task.start, /*failure=*/!evicted);
  }
}

void Meter::Before(const EventBody& event, Time now) {
  if (const auto* fenced = std::get_if<NodeFenced>(&event)) NodeFails(fenced->id, now);
  if (const auto* released = std::get_if<TasksReleased>(&event)) Released(*released, now);
  if (const auto* requeued = std::get_if<TasksRequeued>(&event)) Requeued(*requeued, now);
}

void Meter::After(const EventBody& event) {
  if (const auto* report = std::get_if<TaskReported>(&event)) {
    if (report->state != ReportState::kExited) return;
    Touch(report->task.job);
    Touch(state_.jobs().At(report->task.job).tasks[report->task.task].node);
  } else if (const auto* bound = std::get_if<TasksBound>(&event)) {
    Touch(bound->job);
    for (const Placement& place : bound->placements) Touch(place.node);
    Outcome& outcome = run_.outcomes[IndexOf(bound->job)];
    const Job& job = state_.jobs().At(bound->job);
    if (job.tasks.size() > 1) outcome.tier = CommonTier(state_, NodesOf(job));
    recorder_.Bound(now_, IndexOf(bound->job), *bound);
  } else if (const auto* changed = std::get_if<JobStatusChanged>(&event)) {
    if (Ended(changed->status.state)) Touch(changed->job);
  } else if (const auto* registered = std::get_if<NodeRegistered>(&event)) {
    TouchTasksOf(registered->id);
  } else if (const auto* silenced = std::get_if<NodeSilenced>(&event)) {
    TouchTasksOf(silenced->id);
  } else if (const auto* fenced = std::get_if<NodeFenced>(&event)) {
    TouchTasksOf(fenced->id);
  }
}

Resources Meter::HeldBy(const Job& job) const {
  Resources held;
  for (size_t i = 0; i < job.groups.size(); ++i) {
    const Resources& each = state_.interner().Shape(job.groups[i].shape).resources;
    held += each.Times(job.tallies[i].Occupying());
  }
  return held;
}

void Meter::Move(size_t job, const Resources& amounts, int64_t times, int waiting) {
  waiting_ += waiting;
  total_.Hold(0, amounts, times);
  queue_shares_.Hold(queues_.of_job[job], amounts, times);
  user_shares_.Hold(users_.of_job[job], amounts, times);
  if (waiting == 0) return;
  queue_shares_.Demand(queues_.of_job[job], 0, waiting);
  user_shares_.Demand(users_.of_job[job], 0, waiting);
}

// Updates the counts of the job to what it holds now. Jobs that have ended hold nothing and do not
// wait; the end in their outcome shows whether this was already counted.
void Meter::Look(size_t at) {
  const Job* job = state_.jobs().Find(
      JobId{static_cast<decltype(JobId::value)>(first_job_ + static_cast<int64_t>(at))});
  const bool over = job == nullptr || Ended(job->status.state);
  const Resources now = job == nullptr ? Resources{} : HeldBy(*job);
  const auto found = held_.find(at);
  const Resources before = found == held_.end() ? Resources{} : found->second;
  recorder_.LookAtJob(now_, at, job);
  Outcome& outcome = run_.outcomes[at];
  const bool waited = !outcome.over && before.IsZero();
  const bool waits = !over && now.IsZero();
  if (!(now == before) || waited != waits) {
    Move(at, now - before, 1, static_cast<int>(waits) - static_cast<int>(waited));
    if (now.IsZero()) {
      held_.erase(at);
    } else {
      held_[at] = now;
    }
    if (recorder_.on()) {
      const size_t queue = queues_.of_job[at], user = users_.of_job[at];
      recorder_.Share(now_, OwnerKind::kQueue, queue, queue_shares_.ShareOf(queue));
      recorder_.Share(now_, OwnerKind::kUser, user, user_shares_.ShareOf(user));
    }
  }
  if (!over || outcome.over) return;
  outcome.over = true;
  queue_shares_.Demand(queues_.of_job[at], -1, 0);
  user_shares_.Demand(users_.of_job[at], -1, 0);
}

void Meter::Look() {
  if (jobs_.empty() && nodes_.empty()) return;
  for (JobId id : jobs_) Look(IndexOf(id));
  for (NodeId id : nodes_) {
    const Node& node = state_.nodes().At(id);
    rooms_.Look(node);
    recorder_.Look(now_, node);
  }
  jobs_.clear();
  nodes_.clear();
  if (!recorder_.on()) return;
  const double gpus = rooms_.capacity();
  recorder_.Happens({.time = now_,
                     .held = recorder_.HeldPart(total_.HeldBy(0)),
                     .unusable = gpus > 0 ? rooms_.unusable() / gpus : 0,
                     .waiting = waiting_});
}

void Meter::Pass(double seconds) {
  Look();
  now_ += seconds;
  queue_shares_.Pass(seconds);
  user_shares_.Pass(seconds);
  total_.Pass(seconds);
  rooms_.Pass(seconds);
}

std::vector<OwnerSum> Meter::SumsOf(const OwnerSet& owners, const ShareMeter& shares) const {
  const std::vector<ShareSum> sums = shares.Sums();
  std::vector<OwnerSum> result;
  for (size_t i = 0; i < owners.names.size(); ++i) {
    result.push_back({.name = owners.names[i],
                      .share = sums[i],
                      .lost = owners.lost[i],
                      .lost_to_failures = owners.lost_to_failures[i],
                      .jobs = {}});
  }
  for (size_t job = 0; job < owners.of_job.size(); ++job) {
    result[owners.of_job[job]].jobs.push_back(job);
  }
  return result;
}

void Meter::Finish() {
  Look();
  run_.queues = SumsOf(queues_, queue_shares_);
  run_.users = SumsOf(users_, user_shares_);
  run_.total = {.name = {},
                .share = total_.Sums().front(),
                .lost = lost_,
                .lost_to_failures = lost_to_failures_,
                .jobs = {}};
  for (size_t i = 0; i < run_.outcomes.size(); ++i) run_.total.jobs.push_back(i);
  run_.queue_fairness = queue_shares_.Fairness();
  run_.user_fairness = user_shares_.Fairness();
  run_.fragmentation = rooms_.Fragmentation();
  if (recorder_.on()) run_.record = recorder_.Take();
}

}  // namespace berth::replay
