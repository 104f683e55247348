// From the API to the core. The other direction: server/convert/render_job.cc.
#include "server/convert/job.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/model/image_id.h"
#include "server/convert/queue.h"
#include "server/convert/series.h"
#include "server/convert/topology.h"
#include "server/convert/values.h"

namespace berth {
namespace {

static_assert(static_cast<int>(GangMembership::kRigid) == v1::RIGID);
static_assert(static_cast<int>(GangMembership::kRendezvous) == v1::RENDEZVOUS);
static_assert(static_cast<int>(GangMembership::kIndependent) == v1::INDEPENDENT);

template <class Repeated>
std::vector<std::string> SortedStrings(const Repeated& values) {
  std::vector<std::string> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// In thousandths; validated.
int32_t RequestedShare(const v1::DeviceRequest& device) {
  if (device.cores() > 0) return device.cores() * 10;
  return static_cast<int32_t>(std::lround(device.share() * kWhole));
}

DeviceRequest DeviceFrom(const v1::DeviceRequest& device) {
  DeviceRequest request;
  request.kind = device.kind();
  request.share = RequestedShare(device);
  request.by_memory = RequestsByMemory(device);
  if (request.by_memory) request.share = kWhole;  // until ShareCounter decides
  request.oversubscribe = device.oversubscribe();
  request.count = request.share > 0 ? 1 : device.count();
  request.min_compute_capability =
      ComputeCapabilityFrom(device.min_compute_capability()).value_or(0);
  request.min_memory_bytes = device.memory_bytes();
  request.models = SortedStrings(device.model());
  if (!device.mig().empty()) {  // short form
    request.kind = kMigKind;
    request.models = {device.mig()};
  }
  request.deny_models = SortedStrings(device.deny_models());
  request.allow_uuids = SortedStrings(device.allow_uuids());
  request.deny_uuids = SortedStrings(device.deny_uuids());
  request.min_link = static_cast<LinkClass>(device.min_link());
  request.min_bandwidth_gbps = device.min_bandwidth_gbps();
  return request;
}

PolicyEvent EventFrom(v1::LifecyclePolicy::Event event) {
  using Policy = v1::LifecyclePolicy;
  switch (event) {
    case Policy::TASK_FAILED:
      return PolicyEvent::kTaskFailed;
    case Policy::NODE_LOST:
      return PolicyEvent::kNodeLost;
    case Policy::TASK_COMPLETED:
      return PolicyEvent::kTaskCompleted;
    case Policy::TIMEOUT:
      return PolicyEvent::kTimeout;
    case Policy::TASK_EVICTED:
      return PolicyEvent::kTaskEvicted;
    case Policy::TASK_PENDING:
      return PolicyEvent::kTaskPending;
    case Policy::DEVICE_UNHEALTHY:
      return PolicyEvent::kDeviceUnhealthy;
    case Policy::TASK_HUNG:
      return PolicyEvent::kTaskHung;
    default:
      return PolicyEvent::kAny;
  }
}

PolicyAction ActionFrom(v1::LifecyclePolicy::Action action) {
  using Policy = v1::LifecyclePolicy;
  switch (action) {
    case Policy::RESTART_TASK:
      return PolicyAction::kRestartTask;
    case Policy::RESTART_PARTITION:
      return PolicyAction::kRestartPartition;
    case Policy::RESTART_GROUP:
      return PolicyAction::kRestartGroup;
    case Policy::RESTART_JOB:
      return PolicyAction::kRestartJob;
    case Policy::COMPLETE:
      return PolicyAction::kComplete;
    case Policy::IGNORE:
      return PolicyAction::kIgnore;
    default:
      return PolicyAction::kAbort;
  }
}

std::vector<GroupDependency> GroupDependenciesFrom(const v1::JobSpec& spec,
                                                   const v1::TaskGroup& group) {
  std::vector<GroupDependency> result;
  for (const auto& dependency : group.depends_on()) {
    const auto found =
        std::find_if(spec.groups().begin(), spec.groups().end(),
                     [&](const v1::TaskGroup& g) { return g.name() == dependency.group(); });
    BERTH_CHECK(found != spec.groups().end());
    result.push_back({static_cast<uint32_t>(found - spec.groups().begin()),
                      ConditionFrom(dependency.condition())});
  }
  return result;
}

// Indexes of groups by name, sorted, so that equal requests are one class.
std::vector<uint32_t> GroupIndexes(const v1::JobSpec& spec,
                                   const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<uint32_t> indexes;
  for (int g = 0; g < spec.groups_size(); ++g) {
    const bool named = std::find(names.begin(), names.end(), spec.groups(g).name()) != names.end();
    if (named) indexes.push_back(static_cast<uint32_t>(g));
  }
  return indexes;
}

uint32_t IndexOfGroup(const v1::JobSpec& spec, const std::string& name) {
  const auto found = std::find_if(spec.groups().begin(), spec.groups().end(),
                                  [&](const v1::TaskGroup& g) { return g.name() == name; });
  BERTH_CHECK(found != spec.groups().end());
  return static_cast<uint32_t>(found - spec.groups().begin());
}

GroupSpec GroupFrom(const v1::JobSpec& spec, const v1::TaskGroup& group) {
  GroupSpec result;
  result.name = group.name();
  result.replicas = ReplicasOf(group);
  result.min_available = MinAvailableOf(spec, group);
  result.shape = ShapeFrom(group.resources(), group.node_selector(), group.tolerations());
  result.policies = PoliciesFrom(group.policies());
  result.depends_on = GroupDependenciesFrom(spec, group);
  result.partition_size = group.partition().size();
  result.strategy = StrategyFrom(group.strategy());
  result.near_groups = GroupIndexes(spec, group.affinity().near_groups());
  result.apart_from = GroupIndexes(spec, group.affinity().apart_from_groups());
  result.affinity_tier = group.affinity().tier();
  result.topology = TopologyFrom(group.topology());
  result.partition_topology = TopologyFrom(group.partition().topology());
  result.communication = CommunicationFrom(group.communication());
  result.has_image = !group.image().empty();
  result.image = ImageIdOf(group.image());
  result.preemptible = group.preemptible();
  result.device_strategy = StrategyFrom(group.device_strategy());
  if (group.has_priority()) result.priority = group.priority();
  result.membership = static_cast<GangMembership>(group.membership());
  result.coordinator = group.role() == v1::COORDINATOR;
  if (group.role() == v1::SPARE) result.spare_of = IndexOfGroup(spec, group.spare_of());
  result.spread = {.tier = group.spread().tier(), .max_skew = group.spread().max_skew()};
  return result;
}

// Between the checkpoint signal and the end of the walltime; by default as long as before other
// stops, if the walltime is longer than that.
Duration WalltimeNoticeOf(const v1::JobSpec& spec, Duration kill_grace, Duration walltime) {
  const v1::CheckpointPolicy& checkpoint = spec.checkpoint();
  if (checkpoint.signal().empty() || !SavesBefore(checkpoint, v1::CheckpointPolicy::WALLTIME)) {
    return absl::ZeroDuration();
  }
  if (checkpoint.has_walltime_notice()) return DurationFrom(checkpoint.walltime_notice());
  const Duration grace = checkpoint.has_grace() ? DurationFrom(checkpoint.grace()) : kill_grace;
  return grace < walltime ? grace : absl::ZeroDuration();
}

Duration DumpWaitOf(const v1::Watchdog& watchdog) {
  return watchdog.has_dump_wait() ? DurationFrom(watchdog.dump_wait()) : kDefaultDumpWait;
}

void SetTimes(const v1::JobSpec& spec, const JobDefaults& defaults, JobSpec& result) {
  result.ttl_after_finished = defaults.finished_job_ttl;
  if (spec.has_walltime()) result.walltime = DurationFrom(spec.walltime());
  if (spec.has_start_after()) result.start_after = TimeFrom(spec.start_after());
  if (spec.has_deadline()) result.deadline = TimeFrom(spec.deadline());
  if (spec.checkpoint().has_interval()) {
    result.checkpoint_interval = DurationFrom(spec.checkpoint().interval());
  }
  if (spec.has_retry_backoff()) result.retry_backoff = DurationFrom(spec.retry_backoff());
  if (spec.has_kill_grace()) result.kill_grace = DurationFrom(spec.kill_grace());
  result.kill_grace = std::min(result.kill_grace, defaults.greatest_kill_grace);
  result.walltime_notice = WalltimeNoticeOf(spec, result.kill_grace, result.walltime);
  if (spec.has_watchdog()) {
    result.watchdog = DurationFrom(spec.watchdog().timeout());
    result.dump_wait = DumpWaitOf(spec.watchdog());
  }
  if (spec.has_run_limit()) result.run_limit = DurationFrom(spec.run_limit());
  result.suspends_idle = spec.idle().action() == v1::IdleRule::SUSPEND;
  result.checkpoints_devices = spec.pause().devices() == v1::PausePolicy::CHECKPOINT;
  result.saves_before_drain = !spec.checkpoint().signal().empty() &&
                              SavesBefore(spec.checkpoint(), v1::CheckpointPolicy::DRAIN);
  const auto& codes = spec.checkpoint().saved_exit_codes();
  const std::set<int32_t> saved(codes.begin(), codes.end());
  result.saved_exit_codes = {saved.begin(), saved.end()};
  const bool has_image = std::any_of(spec.groups().begin(), spec.groups().end(),
                                     [](const auto& group) { return !group.image().empty(); });
  if (has_image) result.prepare_timeout = kImagePrepareTimeout;
  if (spec.has_prepare_timeout()) result.prepare_timeout = DurationFrom(spec.prepare_timeout());
  if (spec.has_ttl_after_finished()) {
    result.ttl_after_finished = DurationFrom(spec.ttl_after_finished());
  }
}

}  // namespace

bool SavesBefore(const v1::CheckpointPolicy& checkpoint, v1::CheckpointPolicy::Stop stop) {
  if (checkpoint.before().empty()) return stop != v1::CheckpointPolicy::CANCEL;
  return std::find(checkpoint.before().begin(), checkpoint.before().end(), stop) !=
         checkpoint.before().end();
}

int32_t ReplicasOf(const v1::TaskGroup& group) {
  return group.has_replicas() ? group.replicas() : 1;
}

namespace {

// Set by the group itself; nullopt: not set.
std::optional<int32_t> ExplicitMinAvailable(const v1::TaskGroup& group) {
  if (group.has_min_available()) return group.min_available();
  const int64_t partitioned =
      int64_t{group.partition().min_partitions()} * group.partition().size();
  if (partitioned <= 0 || partitioned > ReplicasOf(group)) return std::nullopt;
  return static_cast<int32_t>(partitioned);
}

// The job requests fewer tasks than the sum of its groups that set no minimum: any of them count.
bool AllowsAnyTasks(const v1::JobSpec& spec) {
  if (spec.min_available() <= 0) return false;
  int64_t of_groups = 0;
  for (const v1::TaskGroup& group : spec.groups()) {
    if (group.role() == v1::SPARE) continue;
    of_groups += ExplicitMinAvailable(group).value_or(ReplicasOf(group));
  }
  return spec.min_available() < of_groups;
}

}  // namespace

bool AnyShorthand(const v1::JobSpec& spec) {
  return std::any_of(spec.groups().begin(), spec.groups().end(), [](const v1::TaskGroup& group) {
    return group.spares() > 0 || group.has_copies_of();
  });
}

void ExpandShorthand(v1::JobSpec* spec) {
  for (v1::TaskGroup& group : *spec->mutable_groups()) {
    if (!group.has_copies_of()) continue;
    group.mutable_affinity()->add_apart_from_groups(group.copies_of().group());
    group.mutable_affinity()->set_tier(group.copies_of().apart_tier());
    group.clear_copies_of();
  }
  const int groups = spec->groups_size();
  for (int g = 0; g < groups; ++g) {
    if (spec->groups(g).spares() <= 0) continue;
    v1::TaskGroup spare = spec->groups(g);
    spec->mutable_groups(g)->clear_spares();
    spare.set_replicas(spare.spares());
    spare.set_name(absl::StrCat(spare.name(), kSparesSuffix));
    spare.set_spare_of(spec->groups(g).name());
    spare.set_role(v1::SPARE);
    spare.set_min_available(0);
    spare.clear_spares();
    spare.clear_membership();
    spare.clear_policies();
    spare.clear_partition();  // refused for groups with spares
    spare.clear_spread();
    spare.clear_affinity();
    spare.clear_topology();
    *spec->add_groups() = std::move(spare);
  }
}

int32_t MinAvailableOf(const v1::JobSpec& spec, const v1::TaskGroup& group) {
  if (group.role() == v1::SPARE) return 0;
  const std::optional<int32_t> says = ExplicitMinAvailable(group);
  if (says.has_value()) return *says;
  return AllowsAnyTasks(spec) ? 0 : ReplicasOf(group);
}

std::vector<AffinityTerm> AffinityFrom(const v1::JobAffinity& affinity) {
  std::vector<AffinityTerm> terms;
  const auto add = [&](const auto& from, bool apart) {
    for (const v1::JobAffinityTerm& term : from) {
      const std::map<std::string, std::string> labels = LabelsFrom(term.match_labels());
      terms.push_back({.apart = apart,
                       .labels = {labels.begin(), labels.end()},
                       .tier = term.tier(),
                       .all_queues = term.all_queues()});
    }
  };
  add(affinity.near(), false);
  add(affinity.apart_from(), true);
  return terms;
}

std::string QueueNameOf(const v1::JobSpec& spec) {
  return spec.queue().empty() ? std::string(kDefaultQueueName) : spec.queue();
}

// Lists are sorted, so that equal requests have one shape.
TaskShape ShapeFrom(const v1::ResourceRequest& resources, const v1::NodeSelector& selector,
                    const google::protobuf::RepeatedPtrField<v1::Toleration>& tolerations) {
  TaskShape shape;
  shape.cpu_millis = resources.cpu_millis();
  shape.memory_bytes = resources.memory_bytes();
  shape.devices.reserve(static_cast<size_t>(resources.devices_size()));
  for (const auto& device : resources.devices()) shape.devices.push_back(DeviceFrom(device));
  std::sort(shape.devices.begin(), shape.devices.end(),
            [](const DeviceRequest& a, const DeviceRequest& b) { return a.kind < b.kind; });
  shape.extended = AmountsFrom(resources.extended());
  AddScratch(resources.scratch_bytes(), &shape.extended);
  shape.match_labels = LabelsFrom(selector.match_labels());
  shape.exclude_nodes = SortedStrings(selector.exclude_nodes());
  for (const auto& toleration : tolerations) {
    shape.tolerations.push_back({toleration.key(), toleration.value()});
  }
  return shape;
}

std::vector<LifecyclePolicy> PoliciesFrom(
    const google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>& policies) {
  std::vector<LifecyclePolicy> result;
  result.reserve(static_cast<size_t>(policies.size()));
  for (const auto& policy : policies) {
    result.push_back({EventFrom(policy.event()),
                      {policy.exit_codes().begin(), policy.exit_codes().end()},
                      ActionFrom(policy.action()),
                      DurationFrom(policy.after())});
  }
  return result;
}

// Each rung answers failures, and hangs.
void AddEscalation(const google::protobuf::RepeatedPtrField<v1::Rung>& escalation,
                   std::vector<LifecyclePolicy>* policies) {
  for (int i = 0; i < escalation.size(); ++i) {
    const v1::Rung& rung = escalation[i];
    for (const PolicyEvent event : {PolicyEvent::kTaskFailed, PolicyEvent::kTaskHung}) {
      policies->push_back({.event = event,
                           .exit_codes = {},
                           .action = ActionFrom(rung.action()),
                           .rung = i + 1,
                           .within = DurationFrom(rung.for_())});
    }
  }
}

NodeLossPolicy NodeLossFrom(v1::NodeLossPolicy policy) {
  if (policy == v1::KEEP) return NodeLossPolicy::kKeep;
  if (policy == v1::REPLACE_NOW) return NodeLossPolicy::kReplaceNow;
  return NodeLossPolicy::kFence;
}

GroupCondition ConditionFrom(v1::GroupDependency::Condition condition) {
  return condition == v1::GroupDependency::COMPLETED ? GroupCondition::kCompleted
                                                     : GroupCondition::kRunning;
}

DependencyCondition ConditionFrom(v1::JobDependency::Condition condition) {
  if (condition == v1::JobDependency::AFTER_ANY) return DependencyCondition::kAfterAny;
  if (condition == v1::JobDependency::AFTER_NOT_OK) return DependencyCondition::kAfterNotOk;
  return DependencyCondition::kAfterOk;
}

void SetPriority(const v1::JobSpec& spec, int32_t priority,
                 std::optional<int32_t> preemptible_below, JobSpec* result) {
  result->priority = priority;
  const bool low = preemptible_below.has_value() && priority < *preemptible_below;
  result->preemptible =
      spec.has_preemptible() ? spec.preemptible() : low || spec.preempt_mode() == v1::PAUSE;
  const bool migrates = result->preemptible && spec.has_checkpoint();
  result->may_migrate = spec.migration() == v1::MIGRATION_ALLOWED ||
                        (spec.migration() == v1::MIGRATION_UNSPECIFIED && migrates);
}

JobSpec JobSpecFrom(const v1::JobSpec& spec, const JobDefaults& defaults) {
  JobSpec result;
  SetPriority(spec, spec.priority(), defaults.preemptible_below_priority, &result);
  int32_t least = 0;
  result.groups.reserve(static_cast<size_t>(spec.groups_size()));
  for (const v1::TaskGroup& group : spec.groups()) {
    result.groups.push_back(GroupFrom(spec, group));
    least += result.groups.back().min_available;
  }
  result.min_available = spec.min_available() > 0 ? spec.min_available() : std::max(least, 1);
  result.policies = PoliciesFrom(spec.policies());
  AddEscalation(spec.escalation(), &result.policies);
  result.labels = LabelsFrom(spec.labels());
  result.max_retries = spec.max_retries();
  result.on_node_loss = NodeLossFrom(spec.on_node_loss());
  result.suspended = spec.suspended();
  result.preempts = spec.preemption_policy() != v1::NEVER;
  if (spec.preempt_mode() == v1::PAUSE) result.preempt_mode = PreemptMode::kPause;
  result.strategy = StrategyFrom(spec.strategy());
  result.device_strategy = StrategyFrom(spec.device_strategy());
  result.topology = TopologyFrom(spec.topology());
  result.affinity = AffinityFrom(spec.affinity());
  result.user = spec.user();
  result.min_success = spec.min_success();
  if (spec.has_array() || spec.has_schedule()) result.series = SeriesFrom(spec, defaults);
  SetTimes(spec, defaults, result);
  return result;
}

}  // namespace berth
