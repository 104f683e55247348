#include "server/controllers/launch.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/model/drains.h"
#include "core/model/transitions.h"
#include "server/convert/job.h"
#include "server/convert/values.h"

namespace berth {
namespace {

void SetKey(const LaunchOrder& order, v1::TaskKey* key) {
  key->set_job_uid(order.job->id.value);
  key->set_task(order.task);
  key->set_attempt(order.attempt);
}

void SetRanks(const LaunchOrder& order, v1::TaskLaunch* launch) {
  const Ranks& ranks = order.job->ranks;
  const TaskRank& rank = ranks.tasks[order.task];
  launch->set_epoch(order.gang_epoch);
  launch->set_rigid(order.job->group_rigid[order.group]);
  launch->set_coordinator(order.job->coordinator == order.group);
  launch->set_elsewhere(order.job->coordinator.has_value() && !launch->coordinator());
  launch->set_hosts(rank.rank > 0 && ranks.master == order.task);
  launch->set_least_world(order.job->least_world);
  launch->set_most_world(order.job->most_world);
  launch->set_world_size(order.world > 0 ? order.world : ranks.world_size);
  launch->set_rank(rank.rank);
  if (rank.rank < 0) return;
  launch->set_node_rank(rank.node_rank);
  launch->set_node_count(static_cast<int32_t>(ranks.nodes.size()));
  launch->set_local_rank(rank.local_rank);
  launch->set_local_world_size(ranks.node_members[static_cast<size_t>(rank.node_rank)]);
}

void SetWatchdog(absl::Duration timeout, const v1::Watchdog& cold, v1::Watchdog* watchdog) {
  ToProto(timeout, watchdog->mutable_timeout());
  ToProto(cold.has_start() ? DurationFrom(cold.start()) : std::max(timeout, kDefaultWatchdogStart),
          watchdog->mutable_start());
}

void SetIdleRule(const v1::IdleRule& cold, v1::IdleRule* idle) {
  idle->set_devices(cold.devices() > 0 ? cold.devices() : kDefaultIdlePercent);
  ToProto(cold.has_for_() ? DurationFrom(cold.for_()) : kDefaultIdleTime, idle->mutable_for_());
}

void SetImage(const LaunchJob& job, const v1::TaskGroup& group, v1::TaskLaunch* launch) {
  launch->set_image(group.image());
  launch->set_image_pull_policy(group.image_pull_policy());
  launch->set_registry_auth(group.registry_auth());
  const auto digest = job.images.find(group.image());
  if (digest != job.images.end()) launch->set_image_digest(digest->second);
}

void SetContainers(const LaunchJob& job, const v1::TaskGroup& group, v1::TaskLaunch* launch) {
  *launch->mutable_containers() = group.containers();
  for (const v1::Container& container : group.containers()) {
    const auto digest = job.images.find(container.image());
    if (digest == job.images.end()) continue;
    v1::ImageDigest& image = *launch->add_container_images();
    image.set_image(digest->first);
    image.set_digest(digest->second);
  }
}

void SetPrefetch(const LaunchOrder& order, const v1::JobSpec& cold, v1::Prefetch* prefetch) {
  prefetch->set_job_uid(order.job->id.value);
  v1::TaskLaunch* launch = prefetch->mutable_launch();
  launch->set_job(order.job->name);
  launch->set_queue(order.job->queue);
  launch->set_run_as(cold.run_as());
  SetImage(*order.job, cold.groups(static_cast<int>(order.group)), launch);
}

void SetInteractive(const v1::Interactive& cold, v1::Interactive* interactive) {
  *interactive = cold;
  if (cold.action() == v1::Interactive::ACTION_UNSPECIFIED)
    interactive->set_action(v1::Interactive::END);
}

void SetHostNames(const LaunchJob& job, const v1::JobSpec& cold, v1::TaskLaunch* launch) {
  uint32_t first_task = 0;
  for (int g = 0; g < cold.groups_size(); ++g) {
    if (!cold.groups(g).host_names().empty()) {
      v1::HostNames& names = *launch->add_host_names();
      names.set_first_task(first_task);
      *names.mutable_names() = cold.groups(g).host_names();
    }
    first_task += static_cast<uint32_t>(job.group_sizes[static_cast<size_t>(g)]);
  }
}

// Where the members are; a coordinator, who is none, has the place behind all others.
void SetTaskNodes(const LaunchJob& job, v1::Start* start) {
  uint32_t coordinator = UINT32_MAX;
  if (job.coordinator.has_value()) {
    coordinator = 0;
    for (uint32_t g = 0; g < *job.coordinator; ++g)
      coordinator += static_cast<uint32_t>(job.group_sizes[g]);
  }
  for (uint32_t i = 0; i < job.ranks.tasks.size(); ++i) {
    const TaskRank& rank = job.ranks.tasks[i];
    uint32_t place = rank.rank < 0 ? 0 : static_cast<uint32_t>(rank.node_rank) + 1;
    if (i == coordinator && !job.master_address.empty())
      place = static_cast<uint32_t>(job.node_names.size()) + 1;
    start->add_task_nodes(place);
  }
}

bool HaveHostNames(const v1::JobSpec& cold) {
  return std::any_of(cold.groups().begin(), cold.groups().end(),
                     [](const v1::TaskGroup& group) { return !group.host_names().empty(); });
}

void SetLaunch(const LaunchOrder& order, const v1::JobSpec& cold, uint32_t first_task,
               v1::TaskLaunch* launch) {
  const LaunchJob& job = *order.job;
  launch->set_job(job.name);
  launch->set_queue(job.queue);
  launch->set_group(job.group_names[order.group]);
  launch->set_index(static_cast<int32_t>(order.task - first_task));
  launch->set_group_size(job.group_sizes[order.group]);
  SetRanks(order, launch);
  launch->set_cpu_millis(order.cpu_millis);
  launch->set_memory_bytes(order.memory_bytes);
  launch->mutable_device_uuids()->Assign(order.device_uuids.begin(), order.device_uuids.end());
  launch->mutable_device_kinds()->Assign(order.device_kinds.begin(), order.device_kinds.end());
  launch->mutable_device_shares()->Assign(order.device_shares.begin(), order.device_shares.end());
  launch->mutable_device_memory_shares()->Assign(order.device_memory_shares.begin(),
                                                 order.device_memory_shares.end());
  launch->set_scratch_bytes(order.scratch_bytes);
  launch->set_cpuset(order.near.cpus);
  launch->mutable_memory_nodes()->Assign(order.near.memory_nodes.begin(),
                                         order.near.memory_nodes.end());
  launch->set_fence(job.fence);
  if (job.walltime != absl::InfiniteDuration()) {
    ToProto(job.walltime, launch->mutable_walltime());
  }
  launch->set_restart_count(job.restart_count);
  launch->set_kill_signal(cold.kill_signal());
  const v1::TaskGroup& group = cold.groups(static_cast<int>(order.group));
  *launch->mutable_command() = group.command();
  for (const v1::EnvVar& variable : job.env) *launch->add_env() = variable;
  launch->mutable_env()->MergeFrom(group.env());
  launch->set_working_dir(group.working_dir());
  *launch->mutable_args() = group.args();
  SetImage(job, group, launch);
  SetContainers(job, group, launch);
  SetHostNames(job, cold, launch);
  *launch->mutable_volumes() = group.volumes();
  launch->set_terminal(group.terminal());
  launch->set_run_as(cold.run_as());
  launch->set_keep_memory(cold.keep().memory());
  launch->set_keep_disk(cold.keep().disk());
  if (cold.has_idle() && !order.device_uuids.empty()) {
    SetIdleRule(cold.idle(), launch->mutable_idle());
  }
  if (cold.has_interactive()) SetInteractive(cold.interactive(), launch->mutable_interactive());
  if (job.watchdog != absl::InfiniteDuration() && !launch->coordinator()) {
    SetWatchdog(job.watchdog, cold.watchdog(), launch->mutable_watchdog());
  }
}

void SetPrepare(const LaunchOrder& order, const v1::JobSpec& cold, absl::Duration greatest_grace,
                v1::Prepare* prepare) {
  uint32_t first_task = 0;
  for (uint32_t g = 0; g < order.group; ++g) {
    first_task += static_cast<uint32_t>(order.job->group_sizes[g]);
  }
  SetKey(order, prepare->mutable_key());
  SetLaunch(order, cold, first_task, prepare->mutable_launch());
  ToProto(std::min(order.job->kill_grace, greatest_grace),
          prepare->mutable_launch()->mutable_kill_grace());
  prepare->set_start_at_once(order.job->task_count == 1);
  const LaunchJob& job = *order.job;
  const bool hosts = job.coordinator.has_value()
                         ? job.coordinator == order.group
                         : job.ranks.tasks[order.task].rank == 0 || job.ranks.master == order.task;
  prepare->set_reserve_port(hosts);
  if (hosts) prepare->set_preferred_port(order.preferred_port);
}

void SetStart(const LaunchOrder& order, const v1::JobSpec& cold, v1::Start* start) {
  const LaunchJob& job = *order.job;
  SetKey(order, start->mutable_key());
  start->set_master_address(job.master_address);
  start->set_master_port(job.master_port);
  start->set_epoch(order.gang_epoch);
  start->mutable_nodes()->Assign(job.node_names.begin(), job.node_names.end());
  start->mutable_node_addresses()->Assign(job.node_addresses.begin(), job.node_addresses.end());
  if (HaveHostNames(cold)) SetTaskNodes(job, start);
}

// What tells the members of a series apart.
void AddSeriesVariables(const ClusterState& state, const Job& job, std::vector<v1::EnvVar>* out) {
  const Job* series = state.SeriesOf(job);
  if (series == nullptr) return;
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

// The stop as a job's checkpoint policy calls it; nullopt: it is not foreseen by it.
std::optional<v1::CheckpointPolicy::Stop> StopOf(ReleaseReason reason) {
  switch (reason) {
    case ReleaseReason::kReclaimed:
    case ReleaseReason::kPreempted:
    case ReleaseReason::kConsolidated:
    case ReleaseReason::kGangExpired:
      return v1::CheckpointPolicy::EVICTION;
    case ReleaseReason::kDrain:
      return v1::CheckpointPolicy::DRAIN;
    case ReleaseReason::kSuspended:
      return v1::CheckpointPolicy::SUSPEND;
    case ReleaseReason::kCancelled:
      return v1::CheckpointPolicy::CANCEL;
    default:
      return std::nullopt;
  }
}

void SetKill(const LaunchOrder& order, const v1::JobSpec& cold, absl::Duration greatest_grace,
             v1::Kill* kill) {
  SetKey(order, kill->mutable_key());
  if (order.job->forced) {
    ToProto(absl::ZeroDuration(), kill->mutable_grace());
    kill->set_signal("SIGKILL");
    kill->set_reason("the job was cancelled by force");
    return;
  }
  ToProto(std::min(order.job->kill_grace, greatest_grace), kill->mutable_grace());
  kill->set_signal(cold.kill_signal());
  kill->set_reason(absl::StrCat(ReleaseReasonText(order.reason), order.detail));
  const v1::CheckpointPolicy& checkpoint = cold.checkpoint();
  const auto stop = StopOf(order.reason);
  if (!stop.has_value() || !SavesBefore(checkpoint, *stop)) return;
  kill->set_checkpoint(!checkpoint.signal().empty());
  if (!checkpoint.signal().empty()) kill->set_signal(checkpoint.signal());
  if (!checkpoint.has_grace()) return;
  ToProto(std::min(DurationFrom(checkpoint.grace()), greatest_grace), kill->mutable_grace());
}

void SetAskCheckpoint(const LaunchOrder& order, const v1::JobSpec& cold, v1::SignalTask* ask) {
  SetKey(order, ask->mutable_key());
  ask->set_signal(cold.checkpoint().signal());
  ask->set_reason(order.reason == ReleaseReason::kDrain ? "its gang must leave a node"
                                                        : "its walltime ends soon");
  ask->set_request(absl::ToUnixNanos(order.asked));
}

void SetAskStacks(const LaunchOrder& order, const v1::JobSpec& cold, v1::SignalTask* ask) {
  SetKey(order, ask->mutable_key());
  const std::string& signal = cold.watchdog().dump_signal();
  ask->set_signal(signal.empty() ? "SIGABRT" : signal);
  ask->set_reason("it hangs");
  ask->set_request(absl::ToUnixNanos(order.asked));
}

void SetFreeze(const LaunchOrder& order, v1::FreezeTask* freeze) {
  SetKey(order, freeze->mutable_key());
  if (order.kind == OrderKind::kFreeze) freeze->set_request(absl::ToUnixNanos(order.asked));
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
  if (kind == OrderKind::kFreeze) order.asked = job.status.pause.since;
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
  shared->cold_of = job.member ? job.member->series : job.id;
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

v1::ServerMessage ToMessage(const LaunchOrder& order, const v1::JobSpec& cold,
                            absl::Duration greatest_grace) {
  v1::ServerMessage message;
  switch (order.kind) {
    case OrderKind::kPrepare:
      SetPrepare(order, cold, greatest_grace, message.mutable_prepare());
      break;
    case OrderKind::kStart:
      SetStart(order, cold, message.mutable_start());
      break;
    case OrderKind::kKill:
      SetKill(order, cold, greatest_grace, message.mutable_kill());
      break;
    case OrderKind::kAskCheckpoint:
      SetAskCheckpoint(order, cold, message.mutable_signal_task());
      break;
    case OrderKind::kAskStacks:
      SetAskStacks(order, cold, message.mutable_signal_task());
      break;
    case OrderKind::kPrefetch:
      SetPrefetch(order, cold, message.mutable_prefetch());
      break;
    case OrderKind::kFreeze:
    case OrderKind::kThaw:
      SetFreeze(order, message.mutable_freeze_task());
      break;
  }
  return message;
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
