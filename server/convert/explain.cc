#include "server/convert/explain.h"

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "support/quantity.h"

namespace berth {
namespace {

void RenderPlace(const ClusterState& state, const JobSpec& spec, const Placement& place,
                 v1::PlannedTask* out) {
  auto index = static_cast<int32_t>(place.task);
  size_t group = 0;
  for (; index >= spec.groups[group].replicas; ++group) index -= spec.groups[group].replicas;
  out->set_group(spec.groups[group].name);
  out->set_index(index);
  const Node& node = state.nodes().At(place.node);
  out->set_node(node.spec.name);
  RenderUuids(node, place.devices, out->mutable_device_uuids());
}

void RenderPlannedEviction(const ClusterState& state, const TasksReleased& released,
                           v1::PlannedEviction* out) {
  const Job& job = state.jobs().At(released.job);
  out->set_job(job.name);
  out->set_queue(state.queues().At(job.queue).spec.name);
  out->set_tasks(static_cast<int32_t>(released.tasks.size()));
  out->set_reason(EvictionReasonToApi(released.reason));
  out->set_detail(released.detail);
}

void RenderPlannedPause(const ClusterState& state, const TasksPaused& paused,
                        v1::PlannedEviction* out) {
  const Job& job = state.jobs().At(paused.job);
  out->set_job(job.name);
  out->set_queue(state.queues().At(job.queue).spec.name);
  out->set_tasks(static_cast<int32_t>(paused.tasks.size()));
  out->set_reason(v1::Eviction::PREEMPTED);
  out->set_detail(paused.detail);
  out->set_paused(true);
}

void RenderConstraints(const ClusterState& state, const Job& job, const GroupConstraints& group,
                       v1::GroupConstraints* out) {
  out->set_group(job.groups[group.group].name);
  out->set_needed_tasks(group.needed_tasks);
  out->set_nodes(group.nodes);
  out->set_devices(group.devices);
  for (const ConstraintCount& count : group.constraints) {
    v1::ConstraintCount* added = out->add_constraints();
    added->set_name(count.name);
    added->set_nodes_alone(count.nodes_alone);
    added->set_devices_alone(count.devices_alone);
    added->set_nodes_in_order(count.nodes_in_order);
    added->set_devices_in_order(count.devices_in_order);
  }
  out->set_nodes_left(group.nodes_left);
  out->set_tasks_left(group.tasks_left);
  out->set_largest_block(group.largest_block);
  for (const std::string& name : group.blocking) out->add_blocking(name);
  const ImageId image = job.groups[group.group].image;
  if (image != ImageId{}) out->set_image_nodes(state.HoldersOf(image));
}

void RenderHolder(const ClusterState& state, const Holder& holder, const std::string& resource,
                  v1::Holder* out) {
  const Job& job = state.jobs().At(holder.job);
  out->set_job(job.name);
  out->set_queue(state.queues().At(job.queue).spec.name);
  out->set_amount(InUnits(holder.amount, UnitOf(resource)));
  if (holder.ends != absl::InfiniteFuture()) ToProto(holder.ends, out->mutable_ends());
}

std::string GroupPath(uint32_t group, absl::string_view field) {
  return absl::StrCat("groups[", group, "].", field);
}

// A group that may grow keeps its replicas.
void RenderFewerTasks(const Job& job, const Remedy& remedy, v1::Remedy* out) {
  const Group& group = job.groups[remedy.group];
  const bool grows = group.replicas != group.min_available;
  out->set_kind(v1::Remedy::FEWER_TASKS);
  out->set_field(GroupPath(remedy.group, grows ? "min_available" : "replicas"));
  out->set_value(absl::StrCat(remedy.value));
  out->set_detail(absl::StrCat(remedy.value, " of ", group.replicas, " tasks ",
                               remedy.starts_now ? "would start now" : "could start", " (",
                               grows ? "" : "replicas and ", "minAvailable ", remedy.value, ")"));
}

using IsMeant = absl::FunctionRef<bool(const DeviceRequest&)>;

// The path of `field` in the first device request that is meant, and the kind of that request.
// There is one, because the engine found the remedy there.
std::string DevicePath(const ClusterState& state, const Job& job, const Remedy& remedy,
                       absl::string_view field, IsMeant meant, std::string* kind) {
  const auto& devices = state.interner().Shape(job.groups[remedy.group].shape).shape.devices;
  size_t index = 0;
  while (index < devices.size() && !meant(devices[index])) ++index;
  BERTH_CHECK(index < devices.size());
  *kind = devices[index].kind;
  return GroupPath(remedy.group, absl::StrCat("resources.devices[", index, "].", field));
}

void RenderDeviceModel(const ClusterState& state, const Job& job, const Remedy& remedy,
                       v1::Remedy* out) {
  const auto of_kind = [&](const DeviceRequest& device) {
    return device.kind == remedy.device_kind;
  };
  std::string kind;
  out->set_kind(v1::Remedy::DEVICE_MODEL);
  out->set_field(DevicePath(state, job, remedy, "model", of_kind, &kind));
  out->set_value(remedy.text);
  out->set_detail(remedy.text.empty() ? absl::StrCat("any model of ", kind, " would do")
                                      : absl::StrCat(kind, " ", remedy.text, " would do"));
}

void RenderAnyLinks(const ClusterState& state, const Job& job, const Remedy& remedy,
                    v1::Remedy* out) {
  bool of_class = false;
  const auto of_kind = [&](const DeviceRequest& device) {
    of_class = device.min_link != LinkClass::kUnknown;
    return device.kind == remedy.device_kind;
  };
  std::string kind;
  const std::string least = DevicePath(state, job, remedy, "min_link", of_kind, &kind);
  out->set_kind(v1::Remedy::ANY_LINKS);
  out->set_field(of_class ? least
                          : DevicePath(state, job, remedy, "min_bandwidth_gbps", of_kind, &kind));
  out->set_detail(absl::StrCat("any ", kind, "s would do, whatever the links between them"));
}

void RenderSmallerTasks(const ClusterState& state, const Job& job, const Remedy& remedy,
                        v1::Remedy* out) {
  out->set_kind(v1::Remedy::SMALLER_TASKS);
  out->set_value(absl::StrCat(remedy.value));
  if (remedy.text == "cpu") {
    out->set_field(GroupPath(remedy.group, "resources.cpu_millis"));
  } else if (remedy.text == "memory") {
    out->set_field(GroupPath(remedy.group, "resources.memory_bytes"));
  } else if (remedy.text == kScratchName) {
    out->set_field(GroupPath(remedy.group, "resources.scratch_bytes"));
  } else {
    const auto of_kind = [&](const DeviceRequest& device) { return device.kind == remedy.text; };
    std::string kind;
    out->set_field(DevicePath(state, job, remedy, "count", of_kind, &kind));
  }
  const std::string amount = AmountText(remedy.text, remedy.value * UnitOf(remedy.text));
  if (remedy.within_quota) {
    out->set_detail(absl::StrCat("tasks of ", remedy.text, " ", amount,
                                 " fit into the quota of queue ",
                                 state.queues().At(remedy.queue).spec.name));
    return;
  }
  out->set_detail(absl::StrCat("a node has at most ", remedy.text, " ", amount));
}

// Rounded down to seconds: shorter is safe.
void RenderShorterWalltime(const Job& job, const Remedy& remedy, v1::Remedy* out) {
  const absl::Duration walltime = remedy.walltime < absl::Seconds(1)
                                      ? remedy.walltime
                                      : absl::Trunc(remedy.walltime, absl::Seconds(1));
  out->set_kind(v1::Remedy::SHORTER_WALLTIME);
  out->set_field("walltime");
  ToProto(walltime, out->mutable_walltime());
  const google::protobuf::Duration& exact = out->walltime();
  out->set_value(FormatDuration({exact.seconds(), exact.nanos()}));
  const bool had_one = job.walltime != absl::InfiniteDuration();
  out->set_detail(absl::StrCat("it would end before reservations of other jobs; now it has ",
                               had_one ? "a longer walltime" : "no walltime"));
}

void RenderOtherQueue(const ClusterState& state, const Remedy& remedy, v1::Remedy* out) {
  const std::string& name = state.queues().At(remedy.queue).spec.name;
  out->set_kind(v1::Remedy::OTHER_QUEUE);
  out->set_field("queue");
  out->set_value(name);
  out->set_detail(
      absl::StrCat("queue ", name, remedy.starts_now ? " has room for it" : " could accept it"));
}

void RenderPreemptible(v1::Remedy* out) {
  out->set_kind(v1::Remedy::PREEMPTIBLE);
  out->set_field("preemptible");
  out->set_value("true");
  out->set_detail("it could borrow beyond its queue's deserved amount, and be evicted for others");
}

// The value is in whole seconds, not before the time.
void RenderWait(const Remedy& remedy, v1::Remedy* out) {
  out->set_kind(v1::Remedy::WAIT);
  const absl::Duration since_epoch = absl::Ceil(remedy.time - absl::UnixEpoch(), absl::Seconds(1));
  out->set_value(
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::UnixEpoch() + since_epoch, absl::UTCTimeZone()));
  out->set_detail("no change needed: it starts by then even if other jobs use up their walltimes");
  ToProto(remedy.time, out->mutable_wait_until());
}

v1::TopologyScope::Level LevelToApi(ScopeFit::Level level) {
  if (level == ScopeFit::Level::kJob) return v1::TopologyScope::JOB;
  return level == ScopeFit::Level::kGroup ? v1::TopologyScope::GROUP : v1::TopologyScope::PARTITION;
}

// "groups[1].partition.topology.mode"
std::string TopologyPath(const Remedy& remedy, absl::string_view field) {
  if (remedy.level == ScopeFit::Level::kJob) return absl::StrCat("topology.", field);
  const bool partition = remedy.level == ScopeFit::Level::kPartition;
  return GroupPath(remedy.group, absl::StrCat(partition ? "partition." : "", "topology.", field));
}

void RenderWiderTier(const Remedy& remedy, v1::Remedy* out) {
  out->set_kind(v1::Remedy::WIDER_TIER);
  out->set_field(TopologyPath(remedy, "highest_tier"));
  out->set_value(absl::StrCat(remedy.value));
  out->set_detail(
      absl::StrCat(remedy.text, remedy.starts_now ? " has room for it" : " could hold it"));
}

void RenderSoftTopology(const Remedy& remedy, v1::Remedy* out) {
  out->set_kind(v1::Remedy::SOFT_TOPOLOGY);
  out->set_field(TopologyPath(remedy, "mode"));
  out->set_value("SOFT");
  out->set_detail("it would be spread over a wider domain than requested");
}

int32_t TierToApi(int32_t tier) { return tier == kRootTier ? 0 : tier; }

void RenderDomain(const ClusterState& state, const DomainCount& domain, v1::DomainFit* out) {
  const HyperNode* hyper_node = state.hyper_nodes().Find(domain.domain);
  if (hyper_node != nullptr) out->set_hyper_node(hyper_node->spec.name);
  out->set_tier(TierToApi(domain.tier));
  out->set_fit_now(domain.fit_now);
  out->set_fit_empty(domain.fit_empty);
  out->set_degraded(domain.degraded);
}

void RenderScope(const ClusterState& state, const Job& job, const ScopeFit& scope,
                 v1::TopologyScope* out) {
  out->set_level(LevelToApi(scope.level));
  if (scope.level != ScopeFit::Level::kJob) out->set_group(job.groups[scope.group].name);
  out->set_kind(scope.kind);
  out->set_highest_tier(TierToApi(scope.highest_tier));
  out->set_needed_tasks(scope.needed_tasks);
  out->set_domains(scope.domains);
  out->set_domains_now(scope.domains_now);
  out->set_domains_empty(scope.domains_empty);
  for (const DomainCount& domain : scope.best) RenderDomain(state, domain, out->add_best());
  if (scope.domains > 0) RenderDomain(state, scope.largest, out->mutable_largest());
  out->set_lowest_tier_empty(TierToApi(scope.lowest_tier_empty.value_or(0)));
}

}  // namespace

void RenderPlan(const ClusterState& state, const JobSpec& spec, const DryRunResult& plan,
                v1::PlanJobResponse* out) {
  out->set_exhausted(plan.exhausted);
  if (plan.exhausted) return;
  out->set_starts_now(plan.StartsNow());
  for (const Placement& place : plan.placements) {
    RenderPlace(state, spec, place, out->add_placements());
  }
  for (const Placement& place : plan.nominated) {
    RenderPlace(state, spec, place, out->add_nominated());
  }
  for (const TasksReleased& released : plan.evictions) {
    RenderPlannedEviction(state, released, out->add_evictions());
  }
  for (const TasksPaused& paused : plan.pauses) {
    RenderPlannedPause(state, paused, out->add_evictions());
  }
  for (const WaitReason& reason : plan.blockers) RenderReason(state, reason, out->add_blockers());
  const bool reserves = plan.reservation.has_value() && !plan.reservation->places.empty();
  if (reserves) {
    RenderReservation(state, *plan.reservation, out->mutable_reservation());
  }
}

void RenderRemedy(const ClusterState& state, const Job& job, const Remedy& remedy,
                  v1::Remedy* out) {
  out->set_starts_now(remedy.starts_now && remedy.kind != RemedyKind::kWait);
  switch (remedy.kind) {
    case RemedyKind::kFewerTasks:
      return RenderFewerTasks(job, remedy, out);
    case RemedyKind::kDeviceModel:
      return RenderDeviceModel(state, job, remedy, out);
    case RemedyKind::kShorterWalltime:
      return RenderShorterWalltime(job, remedy, out);
    case RemedyKind::kOtherQueue:
      return RenderOtherQueue(state, remedy, out);
    case RemedyKind::kPreemptible:
      return RenderPreemptible(out);
    case RemedyKind::kSmallerTasks:
      return RenderSmallerTasks(state, job, remedy, out);
    case RemedyKind::kWiderTier:
      return RenderWiderTier(remedy, out);
    case RemedyKind::kAnyLinks:
      return RenderAnyLinks(state, job, remedy, out);
    case RemedyKind::kSoftTopology:
      return RenderSoftTopology(remedy, out);
    case RemedyKind::kWait:
      return RenderWait(remedy, out);
  }
}

void RenderEstimate(const StartEstimate& estimate, v1::EstimateJobResponse* out) {
  const Time never = absl::InfiniteFuture();
  if (estimate.likely != never) ToProto(estimate.likely, out->mutable_likely());
  if (estimate.earliest != never) ToProto(estimate.earliest, out->mutable_earliest());
  if (estimate.latest != never) ToProto(estimate.latest, out->mutable_latest());
  out->set_jobs_before(estimate.jobs_before);
  out->set_history_jobs(estimate.history_jobs);
  out->set_predicted(estimate.predicted);
  out->set_unknown(estimate.unknown);
}

void RenderExplanation(const ClusterState& state, const Job& job, const Explanation& explanation,
                       v1::ExplainJobResponse* out) {
  out->set_job(job.name);
  out->set_state(JobStateToApi(job.status.state));
  for (const WaitReason& reason : explanation.reasons) {
    RenderReason(state, reason, out->add_reasons());
  }
  out->set_position(explanation.position);
  out->set_queue_jobs(explanation.queue_jobs);
  for (const GroupConstraints& group : explanation.groups) {
    RenderConstraints(state, job, group, out->add_groups());
  }
  for (const ScopeFit& scope : explanation.topology) {
    RenderScope(state, job, scope, out->add_topology());
  }
  for (const Holder& holder : explanation.holders) {
    RenderHolder(state, holder, explanation.reasons.front().resource, out->add_holders());
  }
  for (const Remedy& remedy : explanation.remedies) {
    RenderRemedy(state, job, remedy, out->add_remedies());
  }
  RenderEstimate(explanation.estimate, out->mutable_estimate());
  const auto kept = state.reservations().find(job.id);
  if (kept != state.reservations().end()) {
    RenderReservation(state, kept->second, out->mutable_reservation());
  }
}

}  // namespace berth
