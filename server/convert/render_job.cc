// From the core to the API (server/convert/job.h).
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/engine/search/verdict.h"
#include "core/model/pauses.h"
#include "server/convert/job.h"
#include "server/convert/series.h"
#include "server/convert/topology.h"
#include "server/convert/values.h"

namespace berth {
namespace {

// The API's enums number the same values from 1, because 0 is UNSPECIFIED.
static_assert(v1::JOB_PENDING == static_cast<int>(JobState::kPending) + 1);
static_assert(v1::JOB_RESTARTING == static_cast<int>(JobState::kRestarting) + 1);
static_assert(v1::Checkpoint::PEER == static_cast<int>(CheckpointPlace::kPeer));
static_assert(v1::Checkpoint::SHARED == static_cast<int>(CheckpointPlace::kShared));
static_assert(v1::JOB_CANCELLED == static_cast<int>(JobState::kCancelled) + 1);

v1::LifecyclePolicy::Event EventToApi(PolicyEvent event) {
  using Policy = v1::LifecyclePolicy;
  switch (event) {
    case PolicyEvent::kAny:
      return Policy::ANY;
    case PolicyEvent::kTaskFailed:
      return Policy::TASK_FAILED;
    case PolicyEvent::kNodeLost:
      return Policy::NODE_LOST;
    case PolicyEvent::kTaskCompleted:
      return Policy::TASK_COMPLETED;
    case PolicyEvent::kTimeout:
      return Policy::TIMEOUT;
    case PolicyEvent::kTaskEvicted:
      return Policy::TASK_EVICTED;
    case PolicyEvent::kTaskPending:
      return Policy::TASK_PENDING;
    case PolicyEvent::kDeviceUnhealthy:
      return Policy::DEVICE_UNHEALTHY;
    case PolicyEvent::kTaskHung:
      return Policy::TASK_HUNG;
  }
  return Policy::EVENT_UNSPECIFIED;
}

v1::LifecyclePolicy::Action ActionToApi(PolicyAction action) {
  using Policy = v1::LifecyclePolicy;
  switch (action) {
    case PolicyAction::kRestartTask:
      return Policy::RESTART_TASK;
    case PolicyAction::kRestartPartition:
      return Policy::RESTART_PARTITION;
    case PolicyAction::kRestartGroup:
      return Policy::RESTART_GROUP;
    case PolicyAction::kRestartJob:
      return Policy::RESTART_JOB;
    case PolicyAction::kAbort:
      return Policy::ABORT;
    case PolicyAction::kComplete:
      return Policy::COMPLETE;
    case PolicyAction::kIgnore:
      return Policy::IGNORE;
  }
  return Policy::ACTION_UNSPECIFIED;
}

template <class Policies>
void RenderPolicies(const Policies& policies,
                    google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* out) {
  for (const LifecyclePolicy& policy : policies) {
    if (policy.rung > 0) continue;  // RenderEscalation
    v1::LifecyclePolicy* added = out->Add();
    added->set_event(EventToApi(policy.event));
    added->set_action(ActionToApi(policy.action));
    for (const int32_t code : policy.exit_codes) added->add_exit_codes(code);
    if (policy.after > absl::ZeroDuration()) ToProto(policy.after, added->mutable_after());
  }
}

void RenderEscalation(absl::Span<const LifecyclePolicy> policies, v1::JobSpec* out) {
  for (const LifecyclePolicy& policy : policies) {
    if (policy.rung == 0 || policy.event != PolicyEvent::kTaskFailed) continue;
    v1::Rung* rung = out->add_escalation();
    rung->set_action(ActionToApi(policy.action));
    if (policy.within > absl::ZeroDuration()) ToProto(policy.within, rung->mutable_for_());
  }
}

void RenderDevice(const DeviceRequest& device, v1::DeviceRequest* out) {
  out->set_kind(device.kind);
  if (!device.by_memory) out->set_count(device.count);
  out->set_memory_bytes(device.min_memory_bytes);
  if (device.share > 0 && !device.by_memory) out->set_share(InUnits(device.share, kWhole));
  out->set_oversubscribe(device.oversubscribe);
  out->set_min_compute_capability(ComputeCapabilityText(device.min_compute_capability));
  for (const auto& model : device.models) out->add_model(model);
  for (const auto& model : device.deny_models) out->add_deny_models(model);
  for (const auto& uuid : device.allow_uuids) out->add_allow_uuids(uuid);
  for (const auto& uuid : device.deny_uuids) out->add_deny_uuids(uuid);
  out->set_min_link(static_cast<v1::LinkClass>(device.min_link));
  out->set_min_bandwidth_gbps(device.min_bandwidth_gbps);
}

void RenderShape(const TaskShape& shape, v1::TaskGroup* out) {
  v1::ResourceRequest* resources = out->mutable_resources();
  resources->set_cpu_millis(shape.cpu_millis);
  resources->set_memory_bytes(shape.memory_bytes);
  for (const DeviceRequest& device : shape.devices) RenderDevice(device, resources->add_devices());
  for (const NamedAmount& entry : shape.extended) {
    if (entry.name == kScratchName) {
      resources->set_scratch_bytes(entry.amount);
      continue;
    }
    (*resources->mutable_extended())[entry.name] = entry.amount / kWhole;
  }
  if (!shape.match_labels.empty() || !shape.exclude_nodes.empty()) {
    v1::NodeSelector* selector = out->mutable_node_selector();
    ToProto(shape.match_labels, selector->mutable_match_labels());
    for (const auto& node : shape.exclude_nodes) selector->add_exclude_nodes(node);
  }
  for (const Toleration& toleration : shape.tolerations) {
    v1::Toleration* added = out->add_tolerations();
    added->set_key(toleration.key);
    added->set_value(toleration.value);
  }
}

void RenderGroup(const ClusterState& state, const Job& job, const Group& group,
                 v1::TaskGroup* out) {
  out->set_name(group.name);
  out->set_replicas(group.replicas);
  out->set_min_available(group.min_available);
  RenderShape(state.interner().Shape(group.shape).shape, out);
  RenderPolicies(group.policies, out->mutable_policies());
  for (const GroupDependency& dependency : group.depends_on) {
    v1::GroupDependency* added = out->add_depends_on();
    added->set_group(job.groups[dependency.group].name);
    added->set_condition(dependency.condition == GroupCondition::kCompleted
                             ? v1::GroupDependency::COMPLETED
                             : v1::GroupDependency::RUNNING);
  }
  out->set_strategy(StrategyToApi(group.strategy));
  out->set_device_strategy(StrategyToApi(group.device_strategy));
  if (group.preemptible) out->set_preemptible(true);
  if (group.priority.has_value()) out->set_priority(PriorityOf(job, group));
  out->set_membership(static_cast<v1::Membership>(group.membership));
  if (group.coordinator) out->set_role(v1::COORDINATOR);
  if (group.spare_of.has_value()) {
    out->set_role(v1::SPARE);
    out->set_spare_of(job.groups[*group.spare_of].name);
  }
  if (group.spread.Any()) {
    out->mutable_spread()->set_tier(group.spread.tier);
    out->mutable_spread()->set_max_skew(group.spread.max_skew);
  }
  if (group.partition_size > 0) {
    out->mutable_partition()->set_size(group.partition_size);
    out->mutable_partition()->set_min_partitions(group.min_available / group.partition_size);
  }
  for (uint32_t other : group.near_groups) {
    out->mutable_affinity()->add_near_groups(job.groups[other].name);
  }
  for (uint32_t other : group.apart_from) {
    out->mutable_affinity()->add_apart_from_groups(job.groups[other].name);
  }
  if (group.affinity_tier > 0) out->mutable_affinity()->set_tier(group.affinity_tier);
  if (group.topology.Any()) ToProto(group.topology, out->mutable_topology());
  if (group.partition_topology.Any()) {
    ToProto(group.partition_topology, out->mutable_partition()->mutable_topology());
  }
}

v1::JobDependency::Condition ConditionToApi(DependencyCondition condition) {
  if (condition == DependencyCondition::kAfterAny) return v1::JobDependency::AFTER_ANY;
  if (condition == DependencyCondition::kAfterNotOk) return v1::JobDependency::AFTER_NOT_OK;
  return v1::JobDependency::AFTER_OK;
}

void RenderTimes(const Job& job, v1::JobSpec* out) {
  if (job.watchdog != absl::InfiniteDuration()) {
    ToProto(job.watchdog, out->mutable_watchdog()->mutable_timeout());
    ToProto(job.dump_wait, out->mutable_watchdog()->mutable_dump_wait());
  }
  if (job.walltime != absl::InfiniteDuration()) ToProto(job.walltime, out->mutable_walltime());
  if (job.start_after != absl::InfinitePast()) ToProto(job.start_after, out->mutable_start_after());
  if (job.deadline != absl::InfiniteFuture()) ToProto(job.deadline, out->mutable_deadline());
  if (job.checkpoint_interval != absl::InfiniteDuration()) {
    ToProto(job.checkpoint_interval, out->mutable_checkpoint()->mutable_interval());
  }
  if (job.walltime_notice > absl::ZeroDuration()) {
    ToProto(job.walltime_notice, out->mutable_checkpoint()->mutable_walltime_notice());
  }
  for (const int32_t code : job.saved_exit_codes) {
    out->mutable_checkpoint()->add_saved_exit_codes(code);
  }
  if (job.ttl_after_finished != absl::InfiniteDuration()) {
    ToProto(job.ttl_after_finished, out->mutable_ttl_after_finished());
  }
  ToProto(job.retry_backoff, out->mutable_retry_backoff());
  ToProto(job.kill_grace, out->mutable_kill_grace());
  ToProto(job.prepare_timeout, out->mutable_prepare_timeout());
}

void RenderSpec(const ClusterState& state, const Job& job, v1::JobSpec* out) {
  out->set_queue(state.queues().At(job.queue).spec.name);
  out->set_priority(job.priority);
  RenderTimes(job, out);
  out->set_min_available(job.min_available);
  for (const Group& group : job.groups) RenderGroup(state, job, group, out->add_groups());
  RenderPolicies(job.policies, out->mutable_policies());
  RenderEscalation(job.policies, out);
  out->set_max_retries(job.max_retries);
  for (const JobDependency& dependency : job.dependencies) {
    v1::JobDependency* added = out->add_dependencies();
    added->set_job(JobNameOf(state, dependency.job));
    added->set_condition(ConditionToApi(dependency.condition));
  }
  out->set_on_node_loss(job.on_node_loss == NodeLossPolicy::kKeep         ? v1::KEEP
                        : job.on_node_loss == NodeLossPolicy::kReplaceNow ? v1::REPLACE_NOW
                                                                          : v1::FENCE);
  ToProto(job.labels, out->mutable_labels());
  out->set_suspended(job.status.suspended);
  out->set_preemptible(job.preemptible);
  if (!job.preempts) out->set_preemption_policy(v1::NEVER);
  if (job.preempt_mode == PreemptMode::kPause) out->set_preempt_mode(v1::PAUSE);
  out->set_strategy(StrategyToApi(job.strategy));
  out->set_device_strategy(StrategyToApi(job.device_strategy));
  if (job.topology->Any()) ToProto(*job.topology, out->mutable_topology());
  for (const AffinityTerm& term : job.affinity) {
    v1::JobAffinity* affinity = out->mutable_affinity();
    v1::JobAffinityTerm* added = term.apart ? affinity->add_apart_from() : affinity->add_near();
    for (const LabelPair& label : term.labels) {
      (*added->mutable_match_labels())[label.first] = label.second;
    }
    added->set_tier(term.tier);
    added->set_all_queues(term.all_queues);
  }
  out->set_user(job.user);
  out->set_min_success(job.min_success);
  if (job.run_limit != absl::InfiniteDuration()) ToProto(job.run_limit, out->mutable_run_limit());
  if (job.checkpoints_devices) out->mutable_pause()->set_devices(v1::PausePolicy::CHECKPOINT);
  if (job.series) RenderSeries(*job.series, out);
  out->set_priority_class(job.priority_class);
}

void RenderEviction(const ClusterState& state, const Eviction& eviction, v1::Eviction* out) {
  ToProto(eviction.time, out->mutable_time());
  out->set_reason(EvictionReasonToApi(eviction.reason));
  out->set_beneficiary(JobNameOf(state, eviction.beneficiary));
  out->set_beneficiary_uid(eviction.beneficiary.value);
  out->set_tasks(eviction.tasks);
  out->set_detail(eviction.detail);
}

void RenderTallies(const Job& job, v1::JobStatus* out) {
  for (size_t i = 0; i < job.groups.size(); ++i) {
    v1::GroupStatus* group = out->add_groups();
    group->set_name(job.groups[i].name);
    for (size_t s = 0; s < kTaskStates; ++s) {
      const int32_t count = job.tallies[i].count[s];
      if (count == 0) continue;
      const auto state = TaskStateToApi(static_cast<TaskState>(s));
      (*group->mutable_tasks())[ShortName(v1::TaskState_Name(state), "TASK_")] = count;
    }
  }
}

void RenderCheckpoint(const Checkpoint& checkpoint, v1::Checkpoint* out) {
  out->set_step(checkpoint.step);
  out->set_where(static_cast<v1::Checkpoint::Where>(checkpoint.place));
  out->set_bytes(checkpoint.bytes);
  ToProto(checkpoint.time, out->mutable_time());
}

void RenderAvoided(const ClusterState& state, const AvoidedNodes& avoided, v1::JobStatus* out) {
  for (const AvoidedNode& one : avoided) {
    const Node* node = state.nodes().Find(one.node);
    if (node == nullptr) continue;
    v1::AvoidedNode& added = *out->add_avoided_nodes();
    added.set_node(node->spec.name);
    ToProto(one.until, added.mutable_until());
  }
}

void RenderHang(const Job& job, v1::Hang* out) {
  const Hang& hang = job.status.hang;
  ToProto(hang.time, out->mutable_time());
  const Group& group = job.groups[GroupOf(job, hang.task)];
  out->set_task(absl::StrCat(group.name, "-", hang.task - group.first_task));
  ToProto(hang.still, out->mutable_still());
  if (hang.step >= 0) out->set_step(hang.step);
}

v1::JobPause::State PauseStateToApi(PauseState state) {
  switch (state) {
    case PauseState::kRuns:
      return v1::JobPause::STATE_UNSPECIFIED;
    case PauseState::kPausing:
      return v1::JobPause::PAUSING;
    case PauseState::kPaused:
      return v1::JobPause::PAUSED;
    case PauseState::kResuming:
      return v1::JobPause::RESUMING;
  }
  return v1::JobPause::STATE_UNSPECIFIED;
}

// Once it is resumed, or the job for which it was paused has its places, it waits as a whole.
v1::JobPause::State PauseOf(const Job& job) {
  if (!IsPaused(job.status)) return v1::JobPause::STATE_UNSPECIFIED;
  const bool resuming = std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.pause == PauseState::kResuming;
  });
  if (!job.status.suspended && (resuming || !Yields(job.status))) return v1::JobPause::RESUMING;
  const bool pausing = std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.state == TaskState::kRunning && !Frozen(task);
  });
  return pausing ? v1::JobPause::PAUSING : v1::JobPause::PAUSED;
}

void RenderPause(const ClusterState& state, const Job& job, v1::JobPause* out) {
  const Pause& pause = job.status.pause;
  out->set_state(PauseOf(job));
  if (pause.since != absl::InfinitePast()) ToProto(pause.since, out->mutable_since());
  if (pause.until != absl::InfiniteFuture()) ToProto(pause.until, out->mutable_until());
  if (pause.total != absl::ZeroDuration()) ToProto(pause.total, out->mutable_total());
  out->set_devices_lent(std::any_of(job.tasks.begin(), job.tasks.end(),
                                    [](const Task& task) { return task.devices_lent; }));
  if (pause.beneficiary == JobId{}) return;
  out->set_beneficiary(JobNameOf(state, pause.beneficiary));
  out->set_beneficiary_uid(pause.beneficiary.value);
  out->set_detail(pause.detail);
}

void RenderStatus(const ClusterState& state, const Job& job, Time now, v1::JobStatus* out) {
  const JobStatus& status = job.status;
  out->set_state(JobStateToApi(status.state));
  for (const WaitReason& reason : WhyWaiting(state, job, now)) {
    RenderReason(state, reason, out->add_reasons());
  }
  out->set_message(status.message);
  if (status.cancelled) out->set_cancel_reason(status.message);
  out->set_cancel_forced(status.forced);
  out->set_retries(status.retries);
  out->set_rung(status.rung);
  RenderAvoided(state, status.avoided, out);
  out->set_start_count(status.starts);
  out->set_epoch(status.epoch);
  if (status.checkpoint_asked != absl::InfinitePast()) {
    ToProto(status.checkpoint_asked, out->mutable_checkpoint_asked());
  }
  if (!(status.checkpoint == Checkpoint{})) {
    RenderCheckpoint(status.checkpoint, out->mutable_checkpoint());
  }
  if (status.state == JobState::kRunning && Hangs(job)) RenderHang(job, out->mutable_hang());
  const bool paused = IsPaused(status) || status.pause.total > absl::ZeroDuration();
  if (paused) RenderPause(state, job, out->mutable_pause());
  ToProto(job.submit, out->mutable_submit_time());
  out->set_owner(job.owner);
  if (status.start != absl::InfinitePast()) ToProto(status.start, out->mutable_start_time());
  if (status.end != absl::InfinitePast()) ToProto(status.end, out->mutable_end_time());
  RenderTallies(job, out);
  RenderSeriesStatus(state, job, out);
  out->set_evictions(status.evictions);
  if (status.evictions > 0) RenderEviction(state, status.eviction, out->mutable_last_eviction());
  if (const auto kept = state.reservations().find(job.id); kept != state.reservations().end()) {
    RenderReservation(state, kept->second, out->mutable_reservation());
  }
}

}  // namespace

v1::WaitReason::Code WaitCodeToApi(WaitCode code) {
  switch (code) {
    case WaitCode::kNone:
      return v1::WaitReason::CODE_UNSPECIFIED;
    case WaitCode::kInsufficientResources:
      return v1::WaitReason::INSUFFICIENT_RESOURCES;
    case WaitCode::kQueueLimit:
      return v1::WaitReason::QUEUE_LIMIT;
    case WaitCode::kQueueClosed:
      return v1::WaitReason::QUEUE_CLOSED;
    case WaitCode::kNoMatchingNode:
      return v1::WaitReason::NO_MATCHING_NODE;
    case WaitCode::kNeverFits:
      return v1::WaitReason::NEVER_FITS;
    case WaitCode::kDependency:
      return v1::WaitReason::DEPENDENCY;
    case WaitCode::kStartTime:
      return v1::WaitReason::START_TIME;
    case WaitCode::kUserHold:
      return v1::WaitReason::USER_HOLD;
    case WaitCode::kRetryBackoff:
      return v1::WaitReason::RETRY_BACKOFF;
    case WaitCode::kNotConsidered:
      return v1::WaitReason::NOT_CONSIDERED;
    case WaitCode::kQueueRunningJobs:
      return v1::WaitReason::QUEUE_RUNNING_JOBS;
    case WaitCode::kGroupDependency:
      return v1::WaitReason::GROUP_DEPENDENCY;
    case WaitCode::kNodeFencing:
      return v1::WaitReason::NODE_FENCING;
    case WaitCode::kNonPreemptibleQuota:
      return v1::WaitReason::NON_PREEMPTIBLE_QUOTA;
    case WaitCode::kGuaranteeKept:
      return v1::WaitReason::GUARANTEE_KEPT;
    case WaitCode::kBehindHead:
      return v1::WaitReason::BEHIND_HEAD;
    case WaitCode::kReserved:
      return v1::WaitReason::RESERVED;
    case WaitCode::kWaitsForBetterTier:
      return v1::WaitReason::WAITS_FOR_BETTER_TIER;
    case WaitCode::kJobAffinity:
      return v1::WaitReason::JOB_AFFINITY;
    case WaitCode::kPauseEnds:
      return v1::WaitReason::PAUSE_ENDS;
    case WaitCode::kNodesBackingOff:
      return v1::WaitReason::NODES_BACKING_OFF;
  }
  return v1::WaitReason::CODE_UNSPECIFIED;
}

std::string JobNameOf(const ClusterState& state, JobId id) {
  const Job* job = state.jobs().Find(id);
  return job != nullptr ? job->name : absl::StrCat("(deleted, uid ", id.value, ")");
}

v1::Eviction::Reason EvictionReasonToApi(ReleaseReason reason) {
  if (reason == ReleaseReason::kReclaimed) return v1::Eviction::RECLAIMED;
  if (reason == ReleaseReason::kPreempted) return v1::Eviction::PREEMPTED;
  if (reason == ReleaseReason::kConsolidated) return v1::Eviction::CONSOLIDATED;
  return v1::Eviction::REASON_UNSPECIFIED;
}

void RenderReservation(const ClusterState& state, const Reservation& reservation,
                       v1::Reservation* out) {
  const Time never = absl::InfiniteFuture();
  if (reservation.start != never) ToProto(reservation.start, out->mutable_start());
  if (reservation.end != never) ToProto(reservation.end, out->mutable_end());
  std::set<std::string> nodes;
  for (const Placement& place : reservation.places) {
    const Node* node = state.nodes().Find(place.node);
    if (node != nullptr) nodes.insert(node->spec.name);
  }
  for (const std::string& node : nodes) out->add_nodes(node);
}

v1::JobState JobStateToApi(JobState state) {
  return static_cast<v1::JobState>(static_cast<int>(state) + 1);
}

v1::TaskState TaskStateToApi(TaskState state) {
  switch (state) {
    case TaskState::kPending:
      return v1::TASK_PENDING;
    case TaskState::kNominated:
      return v1::TASK_NOMINATED;
    case TaskState::kBound:
      return v1::TASK_BOUND;
    case TaskState::kPrepared:
      return v1::TASK_PREPARED;
    case TaskState::kStarting:
      return v1::TASK_STARTING;
    case TaskState::kRunning:
      return v1::TASK_RUNNING;
    case TaskState::kReleasing:
      return v1::TASK_RELEASING;
    case TaskState::kLost:
      return v1::TASK_LOST;
    case TaskState::kSucceeded:
      return v1::TASK_SUCCEEDED;
    case TaskState::kFailed:
      return v1::TASK_FAILED;
  }
  return v1::TASK_STATE_UNSPECIFIED;
}

void RenderJob(const ClusterState& state, const Job& job, Time now, v1::Job* out) {
  out->set_name(job.name);
  out->set_uid(job.id.value);
  RenderSpec(state, job, out->mutable_spec());
  RenderStatus(state, job, now, out->mutable_status());
  out->set_etag(absl::StrCat(job.revision));
}

std::string TaskNameOf(const Job& job, uint32_t index) {
  const Group& group = job.groups[GroupOf(job, index)];
  return absl::StrCat(group.name, "-", index - group.first_task);
}

void RenderTask(const ClusterState& state, const Job& job, uint32_t index, v1::Task* out) {
  const Task& task = job.tasks[index];
  const Group& group = job.groups[GroupOf(job, index)];
  out->set_job(job.name);
  out->set_group(group.name);
  out->set_index(static_cast<int32_t>(index - group.first_task));
  const bool ranked = task.attempt > 0 && !Waits(task.state) && task.rank != kNoRank;
  out->set_rank(ranked ? task.rank : -1);
  out->set_epoch(task.epoch);
  out->set_ready(task.ready);
  if (task.saved != absl::InfinitePast()) ToProto(task.saved, out->mutable_saved_time());
  out->set_world_size(task.world);
  out->set_pause(PauseStateToApi(task.pause));
  out->set_devices_lent(task.devices_lent);
  out->set_state(TaskStateToApi(task.state));
  out->set_attempt(task.attempt);
  out->set_message(std::string(state.TaskMessage({job.id, index})));
  if (task.start != absl::InfinitePast()) ToProto(task.start, out->mutable_start_time());
  if (task.since != absl::InfinitePast()) ToProto(task.since, out->mutable_state_time());
  if (Ended(task.state)) {
    // A start that was refused has no exit code.
    const bool exited =
        task.state != TaskState::kFailed || task.exit_code != 0 || task.exit_signal != 0;
    if (exited) out->set_exit_code(task.exit_code);
    out->set_exit_signal(task.exit_signal);
    ToProto(task.since, out->mutable_end_time());
  }
  if (task.moves) {
    const Node* next = state.nodes().Find(task.next_node);
    if (next != nullptr) out->set_next_node(next->spec.name);
  }
  if (task.attempt == 0 && !Reserves(task.state)) return;
  const Node* node = state.nodes().Find(task.node);
  if (node == nullptr) return;
  out->set_node(node->spec.name);
  RenderUuids(*node, task.devices, out->mutable_devices());
}

void RenderReason(const ClusterState& state, const WaitReason& reason, v1::WaitReason* out) {
  RenderShortage(reason, out);
  out->set_nodes(reason.nodes);
  if (const Queue* queue = state.queues().Find(reason.queue); queue != nullptr) {
    if (reason.queue != kRootQueue) out->set_queue(queue->spec.name);
  }
  if (reason.job != JobId{}) out->set_job(JobNameOf(state, reason.job));
  out->set_never(CanNeverStart(reason));
  for (const RoomAsked& asked : reason.asked) {
    v1::RoomAsked* message = out->add_asked();
    message->set_action(asked.action);
    message->set_barred(asked.barred);
  }
  if (reason.until != absl::InfinitePast() && reason.until != absl::InfiniteFuture()) {
    ToProto(reason.until, out->mutable_until());
  }
}

}  // namespace berth
