#include "server/controllers/launch.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/model/drains.h"
#include "core/model/pauses.h"
#include "core/model/transitions.h"
#include "server/convert/job.h"
#include "server/convert/values.h"

namespace berth {
namespace {

// What tells the members of a series apart.
void AddSeriesVariables(const ClusterState& state, const Job& job, std::vector<v1::EnvVar>* out) {
  const Job* series = state.SeriesOf(job);
  if (series == nullptr) return;
  AddSeriesVariables(state, *series, out);  // of a schedule of arrays
  const auto add = [&](const char* name, const std::string& value) {
    v1::EnvVar& variable = out->emplace_back();
    variable.set_name(name);
    variable.set_value(value);
  };
  if (series->series->IsSchedule()) {
    add("BERTH_SCHEDULE_JOB", series->name);
    add("BERTH_SCHEDULE_TIME",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(job.member->index),
                         absl::UTCTimeZone()));
    return;
  }
  add("BERTH_ARRAY_JOB", series->name);
  add("BERTH_ARRAY_INDEX", absl::StrCat(job.member->index));
  add("BERTH_ARRAY_SIZE", absl::StrCat(CountOf(series->series->indexes)));
}

// Members have the cold part of their series.
JobId ColdOf(const ClusterState& state, const Job& job) {
  const Job* series = &job;
  while (series->member) {
    const Job* above = state.SeriesOf(*series);
    if (above == nullptr) return series->member->series;
    series = above;
  }
  return series->id;
}

bool SavesNow(const Job& job, uint32_t task) { return AskedToSave(job, job.tasks[task]); }
bool WritesStacks(const Job& job, uint32_t task) {
  return job.dump_wait > absl::ZeroDuration() && HangsWith(job, task);
}

}  // namespace

void LaunchCapture::Add(const Event& event) {
  if (const auto* paused = std::get_if<TasksPaused>(&event.body)) {
    AddTasks(OrderKind::kFreeze, paused->job, paused->tasks);
  } else if (const auto* resumed = std::get_if<TasksResumed>(&event.body)) {
    if (!resumed->waits) AddTasks(OrderKind::kThaw, resumed->job, resumed->tasks);
  } else if (const auto* bound = std::get_if<TasksBound>(&event.body)) {
    const Job& job = state_.jobs().At(bound->job);
    for (const Placement& placement : bound->placements) {
      AddTask(OrderKind::kPrepare, job, placement.task, {});
    }
  } else if (const auto* started = std::get_if<TasksStarted>(&event.body)) {
    const Job& job = state_.jobs().At(started->job);
    for (uint32_t task : started->tasks) AddTask(OrderKind::kStart, job, task, {});
  } else if (const auto* released = std::get_if<TasksReleased>(&event.body)) {
    const Job& job = state_.jobs().At(released->job);
    for (uint32_t task : released->tasks) AddTask(OrderKind::kKill, job, task, released->reason);
  } else if (const auto* cancelled = std::get_if<JobCancelled>(&event.body)) {
    if (cancelled->force) AddForced(cancelled->id);
  } else if (const auto* changed = std::get_if<JobStatusChanged>(&event.body)) {
    if (changed->status.checkpoint_asked != event.time) return;
    const Job* job = state_.jobs().Find(changed->job);
    if (job != nullptr) AskRunning(OrderKind::kAskCheckpoint, *job, SavesNow);
  } else if (const auto* hung = std::get_if<TaskHung>(&event.body)) {
    const Job* job = state_.jobs().Find(hung->task.job);
    if (job != nullptr && !hung->over) AskRunning(OrderKind::kAskStacks, *job, WritesStacks);
  } else if (const auto* steered = std::get_if<NodeSteered>(&event.body)) {
    AskLeaving(steered->id);
  }
}

// As they are at the end of the turn: one that was paused and resumed in it gets two orders.
void LaunchCapture::AddTasks(OrderKind kind, JobId id, const std::vector<uint32_t>& tasks) {
  const Job* job = state_.jobs().Find(id);
  if (job == nullptr) return;
  for (const uint32_t task : tasks) {
    if (job->tasks[task].state == TaskState::kRunning) AddTask(kind, *job, task, {});
  }
}

// Those that were asked before get the same request, which their agents ignore.
void LaunchCapture::AskLeaving(NodeId id) {
  const Node* node = state_.nodes().Find(id);
  if (node == nullptr || DrainModeOf(node->status) != DrainMode::kCheckpoint) return;
  std::set<JobId> jobs;
  for (const TaskKey& key : node->tasks) {
    const Job& job = state_.jobs().At(key.job);
    if (MustLeave(node->status, job.tasks[key.task].devices)) jobs.insert(key.job);
  }
  for (JobId job : jobs) AskLeaving(id, state_.jobs().At(job));
}

void LaunchCapture::AskLeaving(NodeId id, const Job& job) {
  if (!job.saves_before_drain) return;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.state != TaskState::kRunning || (RunsAlone(job, i) && task.node != id)) continue;
    if (AskedToSaveAt(job, i) != absl::InfinitePast()) {
      AddTask(OrderKind::kAskCheckpoint, job, i, ReleaseReason::kDrain);
    }
  }
}

absl::Time LaunchCapture::AskedToSaveAt(const Job& job, uint32_t task) {
  absl::Time asked = SavesNow(job, task) ? job.status.checkpoint_asked : absl::InfinitePast();
  if (!job.saves_before_drain || state_.drain_ends().empty()) return asked;
  const auto [of_gang, fresh] = gang_drains_.try_emplace(job.id);
  if (fresh) of_gang->second = DrainOfGang(state_, job);
  const absl::Time by_drain = AskedByDrain(state_, job, task, of_gang->second);
  return by_drain == absl::InfiniteFuture() ? asked : std::max(asked, by_drain);
}

void LaunchCapture::AskRunning(OrderKind kind, const Job& job,
                               bool (*test)(const Job& job, uint32_t task)) {
  for (uint32_t task = 0; task < job.tasks.size(); ++task) {
    if (job.tasks[task].state == TaskState::kRunning && test(job, task)) {
      AddTask(kind, job, task, ReleaseReason::kTimeout);
    }
  }
}

// Tasks that are already stopping lose their grace; the lifecycle releases the rest. The job may
// have ended, and be deleted, in the same turn.
void LaunchCapture::AddForced(JobId id) {
  const Job* job = state_.jobs().Find(id);
  if (job == nullptr) return;
  for (uint32_t task = 0; task < job->tasks.size(); ++task) {
    if (job->tasks[task].state != TaskState::kReleasing) continue;
    AddTask(OrderKind::kKill, *job, task, ReleaseReason::kCancelled);
  }
}

void LaunchCapture::AddByState(TaskKey key) {
  const Job& job = state_.jobs().At(key.job);
  switch (job.tasks.at(key.task).state) {
    case TaskState::kBound:
      return AddTask(OrderKind::kPrepare, job, key.task, {});
    case TaskState::kStarting:
      return AddTask(OrderKind::kStart, job, key.task, {});
    case TaskState::kReleasing:
      return AddTask(OrderKind::kKill, job, key.task, ReasonByState(job, job.tasks[key.task]));
    case TaskState::kRunning: {
      if (const absl::Time asked = AskedToSaveAt(job, key.task); asked != absl::InfinitePast()) {
        const bool by_drain = !SavesNow(job, key.task) || asked != job.status.checkpoint_asked;
        AddTask(OrderKind::kAskCheckpoint, job, key.task,
                by_drain ? ReleaseReason::kDrain : ReleaseReason::kTimeout);
      }
      if (WritesStacks(job, key.task)) AddTask(OrderKind::kAskStacks, job, key.task, {});
      const bool runs = job.tasks[key.task].pause == PauseState::kRuns;
      if (!runs) AddTask(OrderKind::kFreeze, job, key.task, {});
      if (runs && job.status.pause.total > absl::ZeroDuration()) {
        AddTask(OrderKind::kThaw, job, key.task, {});
      }
      return;
    }
    default:
      return;
  }
}

// A task that is gone at the end of the turn (released and gone in one turn) needs nothing. One
// that was bound and released in one turn needs only the Kill, because it is no longer a member.
void LaunchCapture::AddTask(OrderKind kind, const Job& job, uint32_t index, ReleaseReason reason) {
  const Task& task = job.tasks.at(index);
  if (!Occupies(task.state) || (kind != OrderKind::kKill && Releasing(task))) return;
  const Node& node = state_.nodes().At(task.node);
  const uint32_t group = GroupOf(job, index);
  // Only a rigid gang must be launched as it was bound. Tasks of other groups are bound one by one,
  // so that each would have an epoch, and a list of members, of its own.
  const bool launches = kind == OrderKind::kPrepare || kind == OrderKind::kStart;
  const bool rigid = MembershipOf(job.groups[group]) == GangMembership::kRigid;
  LaunchOrder order{.kind = kind,
                    .node = task.node,
                    .epoch = node.status.epoch,
                    .task = index,
                    .attempt = task.attempt,
                    .group = group,
                    .gang_epoch = task.epoch,
                    .world = task.world,
                    .job = Shared(job, launches && rigid ? task.epoch : 0),
                    .preferred_port = task.port,
                    .reason = reason};
  if (kind == OrderKind::kAskStacks) order.asked = job.status.hang.time;
  if (kind == OrderKind::kAskCheckpoint) order.asked = AskedToSaveAt(job, index);
  if (kind == OrderKind::kFreeze) {
    order.asked = job.status.pause.since;
    order.lends_devices = node.spec.checkpoints_devices && MayLend(state_, job, index);
  }
  if (kind == OrderKind::kPrepare) FillPrepare(job, node, &order);
  if (kind == OrderKind::kKill && IsEviction(reason)) order.detail = EvictionDetail(job);
  orders_.push_back(std::move(order));
}

void LaunchCapture::AddPrefetch(const Job& job, uint32_t task, const Node& node) {
  orders_.push_back({.kind = OrderKind::kPrefetch,
                     .node = node.id,
                     .epoch = node.status.epoch,
                     .task = task,
                     .group = GroupOf(job, task),
                     .job = Shared(job, 0)});
}

std::string LaunchCapture::EvictionDetail(const Job& job) const {
  const Eviction& eviction = job.status.eviction;
  const Job* winner = state_.jobs().Find(eviction.beneficiary);
  const std::string name =
      winner != nullptr ? winner->name : absl::StrCat("uid ", eviction.beneficiary.value);
  return absl::StrCat(", for job ", name, eviction.detail.empty() ? "" : ": ", eviction.detail);
}

HostUse LaunchCapture::UseOf(TaskKey key) const {
  const Job& job = state_.jobs().At(key.job);
  const TaskShape& shape = state_.interner().Shape(job.groups[GroupOf(job, key.task)].shape).shape;
  return {.devices = job.tasks[key.task].devices,
          .cpu_millis = shape.cpu_millis,
          .memory_bytes = shape.memory_bytes};
}

std::vector<HostUse> LaunchCapture::UsesOfOthers(const Node& node, TaskKey self) const {
  std::vector<HostUse> uses;
  for (const TaskKey& key : node.tasks) {
    if (!(key == self)) uses.push_back(UseOf(key));
  }
  return uses;
}

void LaunchCapture::FillPrepare(const Job& job, const Node& node, LaunchOrder* order) {
  const ShapeEntry& entry = state_.interner().Shape(job.groups[order->group].shape);
  const TaskShape& shape = entry.shape;
  order->cpu_millis = shape.cpu_millis;
  order->memory_bytes = shape.memory_bytes;
  order->scratch_bytes = entry.resources[kScratch];
  const DeviceSet& devices = job.tasks[order->task].devices;
  if (!node.spec.topology.numa_nodes.empty() && !devices.Empty()) {
    const TaskKey self{job.id, order->task};
    order->near = HostNear(node.spec, UseOf(self), UsesOfOthers(node, self));
  }
  for (size_t i : OrderOf(node, devices)) {
    order->device_uuids.push_back(node.spec.devices[i].uuid);
    order->device_kinds.push_back(node.spec.devices[i].kind);
    if (entry.share == 0) continue;
    const DeviceRequest& request = shape.devices[entry.share_at];
    const bool shared = node.spec.devices[i].kind == request.kind;
    constexpr auto kAll = static_cast<int32_t>(kWhole);
    order->device_shares.push_back(shared && !request.by_memory ? entry.share : kAll);
    order->device_memory_shares.push_back(shared ? ShareOn(node.spec.devices[i], request) : kAll);
  }
}

const std::vector<size_t>& LaunchCapture::OrderOf(const Node& node, const DeviceSet& devices) {
  if (node.layout == nullptr) return order_ = OrderOfDevices(node, devices);
  const auto [known, fresh] = orders_of_.try_emplace({node.layout, devices.bits});
  if (fresh) known->second = OrderOfDevices(node, devices);
  return known->second;
}

std::shared_ptr<const LaunchJob> LaunchCapture::Shared(const Job& job, uint32_t epoch) {
  std::shared_ptr<const LaunchJob>& known = jobs_[{job.id, epoch}];
  if (known != nullptr) return known;
  auto shared = std::make_shared<LaunchJob>();
  shared->id = job.id;
  shared->cold_of = ColdOf(state_, job);
  AddSeriesVariables(state_, job, &shared->env);
  shared->name = job.name;
  shared->queue = state_.queues().At(job.queue).spec.name;
  shared->least_world = job.min_available;
  shared->most_world = static_cast<int32_t>(job.tasks.size());
  for (const Group& group : job.groups) {
    if (group.coordinator) {
      shared->coordinator = static_cast<uint32_t>(shared->group_names.size());
      shared->least_world -= group.min_available;
      shared->most_world -= group.replicas;
    }
    if (IsSpare(group)) shared->most_world -= group.replicas;
    shared->group_names.push_back(group.name);
    shared->group_sizes.push_back(group.replicas);
    shared->group_rigid.push_back(MembershipOf(group) == GangMembership::kRigid);
  }
  shared->fence = job.on_node_loss == NodeLossPolicy::kFence;
  shared->kill_grace = job.kill_grace;
  shared->forced = job.status.forced;
  shared->walltime = job.walltime;
  shared->watchdog = job.watchdog;
  shared->restart_count = job.status.starts == 0 ? 0 : static_cast<int32_t>(job.status.starts - 1);
  shared->task_count = job.tasks.size();
  if (images_ != nullptr) shared->images = images_->DigestsOf(state_, job.id);
  shared->ranks = ComputeRanks(job, epoch);
  for (NodeId id : shared->ranks.nodes) {
    const Node* node = state_.nodes().Find(id);  // the node of an ended task may be deleted
    shared->node_names.push_back(node == nullptr ? "" : node->spec.name);
    shared->node_addresses.push_back(node == nullptr ? "" : node->spec.address);
  }
  if (shared->ranks.master.has_value()) {
    const Task& master = job.tasks[*shared->ranks.master];
    const Node* node = state_.nodes().Find(master.node);
    shared->master_address = node == nullptr ? "" : node->spec.address;
    shared->master_port = master.port;
  }
  return known = std::move(shared);
}

// A repeated Kill must not shorten the grace of the first.
ReleaseReason ReasonByState(const Job& job, const Task& task) {
  if (job.status.cancelled) return ReleaseReason::kCancelled;
  if (task.epoch > 0) return task.released;
  const bool evicted = job.status.evictions > 0 && job.status.eviction.time == task.since;
  return evicted ? job.status.eviction.reason : ReleaseReason::kCancelled;
}

std::string ReleaseReasonText(ReleaseReason reason) {
  switch (reason) {
    case ReleaseReason::kCancelled:
      return "the job was cancelled";
    case ReleaseReason::kSuspended:
      return "the job was suspended";
    case ReleaseReason::kRestart:
      return "the job restarts";
    case ReleaseReason::kGangBroken:
      return "its gang is no longer complete";
    case ReleaseReason::kDrain:
      return "the node is drained";
    case ReleaseReason::kTimeout:
      return "its walltime has expired";
    case ReleaseReason::kCompleted:
      return "the job is complete";
    case ReleaseReason::kFailed:
      return "the job has failed";
    case ReleaseReason::kPrepareTimeout:
      return "its gang was not prepared in time";
    case ReleaseReason::kReclaimed:
      return "its resources are reclaimed for another queue";
    case ReleaseReason::kPreempted:
      return "a job of higher priority preempts it";
    case ReleaseReason::kConsolidated:
      return "it is moved to make room in one place";
    case ReleaseReason::kGangExpired:
      return "its gang was below its minimum for too long";
  }
  return "";
}

}  // namespace berth
