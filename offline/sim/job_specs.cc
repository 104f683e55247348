// ToJobSpec: converts jobs of scenarios to those of the core.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/cron.h"
#include "core/devices/share_counter.h"
#include "core/model/image_id.h"
#include "offline/sim/names.h"
#include "offline/sim/specs.h"
#include "server/convert/job.h"
#include "server/convert/series.h"
#include "server/convert/topology.h"
#include "server/convert/values.h"

namespace berth {
namespace {

absl::Status CheckDeviceRequest(const v1::DeviceRequest& from, const std::string& path) {
  const bool says_part = from.share() != 0 || from.cores() != 0;
  const bool shares = RequestsShare(from);
  if (shares && (from.count() > 1 || (from.share() != 0 && from.cores() != 0))) {
    return Wrong(path, "share or cores, of one device");
  }
  const double thousandths = std::round(from.share() * kWhole);
  const bool in_steps = std::abs(thousandths - from.share() * kWhole) < 1e-6;
  const bool is_part = in_steps && thousandths >= 1 && thousandths < kWhole;
  if ((from.share() != 0 && !is_part) || from.cores() < 0 || from.cores() > 99) {
    return Wrong(path, "share is 0.001 to 0.999 in steps of 0.001, cores 1 to 99");
  }
  if (shares && from.kind() == "nic") return Wrong(path, "a NIC has no shares");
  if (!from.mig().empty() && (from.kind() != "gpu" || shares || from.model_size() > 0)) {
    return Wrong(path, "mig is a profile of a GPU, without models or a share");
  }
  const bool links = from.min_link() != 0 || from.min_bandwidth_gbps() != 0;
  if (links && (from.count() < 2 || from.kind() == "nic")) {
    return Wrong(path, "minLink and minBandwidthGbps are for two or more devices, not for NICs");
  }
  if (from.min_bandwidth_gbps() < 0) return Wrong(path, "minBandwidthGbps is negative");
  if (from.oversubscribe() && !says_part) {
    return Wrong(path, "oversubscribe is for share or cores");
  }
  if (!ComputeCapabilityFrom(from.min_compute_capability()).has_value()) {
    return Wrong(path, "minComputeCapability is MAJOR.MINOR");
  }
  return absl::OkStatus();
}

// Fields that Job (without groups) and Group have in common.
template <class Message>
absl::StatusOr<TaskShape> ToShape(const Message& from, const std::string& path) {
  const v1::ResourceRequest& resources = from.resources();
  if (resources.scratch_bytes() < 0) return Wrong(path + ".resources", "scratch is negative");
  for (const v1::DeviceRequest& one : resources.devices()) {
    auto status = CheckDeviceRequest(one, path + ".resources");
    if (!status.ok()) return status;
  }
  TaskShape shape = ShapeFrom(resources, from.node_selector(), from.tolerations());
  if (from.gpus() != 0) {
    DeviceRequest& gpus = shape.devices.emplace_back();
    gpus.kind = "gpu";
    gpus.count = from.gpus();
  }
  std::sort(shape.devices.begin(), shape.devices.end(),
            [](const DeviceRequest& a, const DeviceRequest& b) { return a.kind < b.kind; });
  auto excluded = ExpandPlaces(shape.exclude_nodes);  // patterns
  if (!excluded.ok()) return Under(path + ".node_selector", excluded.status());
  shape.exclude_nodes = *std::move(excluded);
  std::sort(shape.exclude_nodes.begin(), shape.exclude_nodes.end());
  return shape;
}

absl::StatusOr<std::vector<LifecyclePolicy>> ToPolicies(
    const RepeatedPtrField<v1::LifecyclePolicy>& policies, const std::string& path) {
  using Policy = v1::LifecyclePolicy;
  for (int i = 0; i < policies.size(); ++i) {
    const std::string here = absl::StrCat(path, ".policies[", i, "]");
    const Policy& policy = policies[i];
    if (policy.event() == Policy::EVENT_UNSPECIFIED) return Wrong(here + ".event", "is missing");
    if (policy.action() == Policy::ACTION_UNSPECIFIED) return Wrong(here + ".action", "is missing");
    if (policy.event() == Policy::TASK_PENDING &&
        DurationFrom(policy.after()) <= absl::ZeroDuration()) {
      return Wrong(here + ".after", "is required with TASK_PENDING");
    }
  }
  return PoliciesFrom(policies);
}

// The only group of a job without groups.
sim::v1::Group MainGroup(const sim::v1::Job& job) {
  sim::v1::Group group;
  group.set_name("main");
  group.set_replicas(job.replicas());
  if (job.has_min_available()) group.set_min_available(job.min_available());
  group.set_gpus(job.gpus());
  *group.mutable_resources() = job.resources();
  *group.mutable_node_selector() = job.node_selector();
  *group.mutable_tolerations() = job.tolerations();
  group.set_partition_size(job.partition_size());
  *group.mutable_partition_topology() = job.partition_topology();
  group.set_communication(job.communication());
  *group.mutable_spread() = job.spread();
  group.set_membership(job.membership());
  group.set_image(job.image());
  return group;
}

absl::Status CheckNoMainFields(const sim::v1::Job& job, const std::string& path) {
  const bool both = job.replicas() != 0 || job.has_min_available() || job.gpus() != 0 ||
                    job.has_resources() || job.has_node_selector() || job.tolerations_size() > 0 ||
                    job.partition_size() != 0 || job.has_partition_topology() ||
                    job.communication() != 0 || job.has_spread() ||
                    job.membership() != v1::MEMBERSHIP_UNSPECIFIED || !job.image().empty();
  if (!both) return absl::OkStatus();
  return Wrong(path, "in a job with groups, describe the tasks in the groups");
}

absl::StatusOr<uint32_t> GroupNamed(const std::vector<sim::v1::Group>& groups,
                                    const std::string& name, const std::string& path) {
  for (uint32_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name() == name) return i;
  }
  return Wrong(path, "no group \"", name, "\"");
}

absl::Status LinkGroup(const std::vector<sim::v1::Group>& groups, const sim::v1::Group& from,
                       const std::string& path, GroupSpec* to) {
  const auto find = [&](const auto& names, std::vector<uint32_t>* indexes) -> absl::Status {
    for (const std::string& name : names) {
      const auto index = GroupNamed(groups, name, path);
      if (!index.ok()) return index.status();
      indexes->push_back(*index);
    }
    return absl::OkStatus();
  };
  if (auto status = find(from.near_groups(), &to->near_groups); !status.ok()) return status;
  if (auto status = find(from.apart_from_groups(), &to->apart_from); !status.ok()) return status;
  for (const v1::GroupDependency& one : from.depends_on()) {
    const auto index = GroupNamed(groups, one.group(), path + ".depends_on");
    if (!index.ok()) return index.status();
    to->depends_on.push_back({*index, ConditionFrom(one.condition())});
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupSpec> ToGroupSpec(const std::vector<sim::v1::Group>& groups, size_t index,
                                      const std::string& path) {
  const sim::v1::Group& from = groups[index];
  GroupSpec group;
  group.name = from.name();
  if (group.name.empty()) return Wrong(path, "a group needs a name");
  group.replicas = from.replicas() == 0 ? 1 : from.replicas();
  group.min_available = from.has_min_available() ? from.min_available() : group.replicas;
  group.partition_size = from.partition_size();
  group.strategy = StrategyFrom(from.strategy());
  group.device_strategy = StrategyFrom(from.device_strategy());
  group.preemptible = from.preemptible();
  if (from.has_priority()) group.priority = from.priority();
  group.spread = {.tier = from.spread().tier(), .max_skew = from.spread().max_skew()};
  group.topology = TopologyFrom(from.topology());
  group.partition_topology = TopologyFrom(from.partition_topology());
  group.affinity_tier = from.affinity_tier();
  group.communication = from.communication();
  group.membership = static_cast<GangMembership>(from.membership());
  group.coordinator = from.role() == v1::COORDINATOR;
  group.has_image = !from.image().empty();
  group.image = ImageIdOf(from.image());
  if (from.role() == v1::SPARE) group.min_available = 0;
  auto shape = ToShape(from, path);
  if (!shape.ok()) return shape.status();
  group.shape = *std::move(shape);
  auto policies = ToPolicies(from.policies(), path);
  if (!policies.ok()) return policies.status();
  group.policies = *std::move(policies);
  auto status = LinkGroup(groups, from, path, &group);
  return status.ok() ? absl::StatusOr<GroupSpec>(std::move(group)) : status;
}

absl::Status LinkSpare(const std::vector<sim::v1::Group>& groups, const sim::v1::Group& from,
                       const std::string& path, GroupSpec* group) {
  if (from.role() != v1::SPARE) {
    if (from.spare_of().empty()) return absl::OkStatus();
    return Wrong(path + ".spareOf", "only with role SPARE");
  }
  for (uint32_t g = 0; g < groups.size(); ++g) {
    if (groups[g].name() == from.spare_of() && groups[g].role() != v1::SPARE) group->spare_of = g;
  }
  if (group->spare_of.has_value()) return absl::OkStatus();
  return Wrong(path + ".spareOf", "names no group of workers");
}

absl::Status AddGroups(const sim::v1::Job& job, const std::string& path, JobSpec* spec) {
  std::vector<sim::v1::Group> groups(job.groups().begin(), job.groups().end());
  if (!groups.empty()) {
    if (auto status = CheckNoMainFields(job, path); !status.ok()) return status;
  } else {
    groups.push_back(MainGroup(job));
  }
  int32_t of_groups = 0;
  for (const sim::v1::Group& group : groups) {
    if (group.role() == v1::SPARE) continue;
    of_groups += group.has_min_available() ? group.min_available() : std::max(group.replicas(), 1);
  }
  const bool any = job.job_min_available() > 0 && job.job_min_available() < of_groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string here = job.groups_size() > 0 ? absl::StrCat(path, ".groups[", i, "]") : path;
    auto group = ToGroupSpec(groups, i, here);
    if (!group.ok()) return group.status();
    if (groups[i].has_preemptible() && !groups[i].preemptible() && job.preemptible()) {
      return Wrong(here + ".preemptible", "a gang that is preemptible is stopped as a whole");
    }
    if (groups[i].has_priority() && groups[i].priority() > job.priority()) {
      return Wrong(here + ".priority", "it is above the job's");
    }
    if (any && !groups[i].has_min_available()) group->min_available = 0;
    const bool whole = group->min_available == group->replicas;
    if (group->membership == GangMembership::kRigid && !whole) {
      return Wrong(here + ".membership", "a rigid group needs all its tasks");
    }
    if (group->coordinator && (group->replicas != 1 || !whole || groups.size() == 1)) {
      return Wrong(here + ".role", "a coordinator is one task, for other groups");
    }
    if (auto status = LinkSpare(groups, groups[i], here, &*group); !status.ok()) return status;
    spec->min_available += group->min_available;
    spec->groups.push_back(*std::move(group));
  }
  if (job.job_min_available() != 0) spec->min_available = job.job_min_available();
  spec->min_available = std::max(spec->min_available, 1);
  return absl::OkStatus();
}

absl::Status AddDependencies(const sim::v1::Job& job, const ClusterState& state,
                             const std::string& path, JobSpec* spec) {
  for (int i = 0; i < job.dependencies_size(); ++i) {
    const v1::JobDependency& one = job.dependencies(i);
    const Job* before = state.FindJob(one.job());
    if (before == nullptr) {
      return Wrong(absl::StrCat(path, ".dependencies[", i, "]"), "no job \"", one.job(),
                   "\" before this one in age and name");
    }
    spec->dependencies.push_back({before->id, ConditionFrom(one.condition())});
  }
  return absl::OkStatus();
}

absl::Status AddSeries(const sim::v1::Job& job, const std::string& path, JobSpec* spec) {
  std::string error;
  if (job.has_array()) {
    const v1::Array& array = job.array();
    const bool good = array.indexes().empty()
                          ? array.size() > 0
                          : ParseIndexRanges(array.indexes(), kMaxIndex, &error).has_value();
    if (!good) return Wrong(path + ".array", "needs a size, or indexes; ", error);
  }
  if (job.has_schedule()) {
    const bool good = Cron::Parse(job.schedule().cron(), &error).has_value() &&
                      FindTimeZone(job.schedule().time_zone()).has_value();
    if (!good) return Wrong(path + ".schedule", "needs times and a time zone; ", error);
  }
  if (!job.has_array() && !job.has_schedule()) return absl::OkStatus();
  v1::JobSpec both;
  if (job.has_array()) *both.mutable_array() = job.array();
  if (job.has_schedule()) *both.mutable_schedule() = job.schedule();
  spec->series = SeriesFrom(both, JobDefaults());
  return absl::OkStatus();
}

void SetTimes(const sim::v1::Job& job, Time start, JobSpec* spec) {
  const auto set = [](bool has, const google::protobuf::Duration& from, Duration* to) {
    if (has) *to = DurationFrom(from);
  };
  set(job.has_walltime(), job.walltime(), &spec->walltime);
  set(job.has_checkpoint_interval(), job.checkpoint_interval(), &spec->checkpoint_interval);
  set(job.has_walltime_notice(), job.walltime_notice(), &spec->walltime_notice);
  set(job.has_run_limit(), job.run_limit(), &spec->run_limit);
  set(job.has_dump_wait(), job.dump_wait(), &spec->dump_wait);
  set(job.has_retry_backoff(), job.retry_backoff(), &spec->retry_backoff);
  set(job.has_prepare_timeout(), job.prepare_timeout(), &spec->prepare_timeout);
  set(job.has_kill_grace(), job.kill_grace(), &spec->kill_grace);
  set(job.has_ttl_after_finished(), job.ttl_after_finished(), &spec->ttl_after_finished);
  if (job.has_start_in()) spec->start_after = start + DurationFrom(job.start_in());
  if (job.has_deadline_in()) spec->deadline = start + DurationFrom(job.deadline_in());
}

}  // namespace

absl::StatusOr<JobSpec> ToJobSpec(const sim::v1::Job& job, const std::string& name,
                                  const ClusterState& state, Time start, const std::string& path) {
  const std::string queue_name = job.queue().empty() ? "default" : job.queue();
  const Queue* queue = state.FindQueue(queue_name);
  if (queue == nullptr) return Wrong(path + ".queue", "no queue \"", queue_name, "\"");
  JobSpec spec;
  spec.name = name;
  spec.queue = queue->id;
  spec.priority = job.priority();
  spec.preemptible = job.preemptible();
  spec.preempts = job.preemption_policy() != v1::NEVER;
  if (job.preempt_mode() == v1::PAUSE) spec.preempt_mode = PreemptMode::kPause;
  spec.user = job.user();
  spec.max_retries = job.max_retries();
  spec.on_node_loss = NodeLossFrom(job.on_node_loss());
  spec.suspended = job.suspended();
  spec.strategy = StrategyFrom(job.strategy());
  spec.device_strategy = StrategyFrom(job.device_strategy());
  spec.affinity = AffinityFrom(job.affinity());
  spec.topology = TopologyFrom(job.topology());
  spec.labels = LabelsFrom(job.labels());
  const std::set<int32_t> saved(job.saved_exit_codes().begin(), job.saved_exit_codes().end());
  spec.saved_exit_codes = {saved.begin(), saved.end()};
  spec.saves_before_drain = job.saves_before_drain();
  spec.may_migrate = job.may_migrate();
  spec.checkpoints_devices = job.lends_devices();
  spec.min_success = job.min_success();
  if (auto status = AddSeries(job, path, &spec); !status.ok()) return status;
  SetTimes(job, start, &spec);
  if (auto status = AddGroups(job, path, &spec); !status.ok()) return status;
  auto policies = ToPolicies(job.policies(), path);
  if (!policies.ok()) return policies.status();
  spec.policies = *std::move(policies);
  AddEscalation(job.escalation(), &spec.policies);
  ShareCounter(state).Count(&spec);
  auto status = AddDependencies(job, state, path, &spec);
  return status.ok() ? absl::StatusOr<JobSpec>(std::move(spec)) : status;
}

}  // namespace berth
