// Jobs between the API and the core: validated berth.v1 messages become core values, and core
// values are rendered as berth.v1 messages. server/convert/cold.h handles the cold fields.
#ifndef BERTH_SERVER_CONVERT_JOB_H_
#define BERTH_SERVER_CONVERT_JOB_H_

#include <google/protobuf/repeated_field.h>

#include <optional>
#include <string>
#include <vector>

#include "berth/v1/job.pb.h"
#include "core/engine/plan.h"
#include "core/model/cluster_state.h"
#include "core/model/job.h"
#include "core/model/queue.h"
#include "core/topology/gang_topology.h"

namespace berth {

// Upper limit for limits.kill_grace.
inline constexpr absl::Duration kMaxKillGrace = absl::Hours(24);
inline constexpr int32_t kDefaultIdlePercent = 5;                      // IdleRule.devices
inline constexpr absl::Duration kDefaultIdleTime = absl::Minutes(15);  // IdleRule.for
// Watchdog.start, unless the timeout is longer.
inline constexpr absl::Duration kDefaultWatchdogStart = absl::Minutes(30);

// Defaults for fields that are not set, and the operator's limits for those that are.
struct JobDefaults {
  absl::Duration finished_job_ttl = absl::Hours(24);
  // Jobs of lower priority are preemptible; absent: none are.
  std::optional<int32_t> preemptible_below_priority = std::nullopt;
  GangTopology gangs = {};
  QueueDefaults queue_defaults = {};  // for queues without defaults, if no queue above has any
  absl::Duration greatest_kill_grace = kMaxKillGrace;  // limits.kill_grace
  int32_t array_parallelism = 1000;                    // limits.array_parallelism
};

// Number of the group's tasks; 0 or less if the group specifies that.
int32_t ReplicasOf(const v1::TaskGroup& group);

// The stops before which tasks are asked to save their work.
bool SavesBefore(const v1::CheckpointPolicy& checkpoint, v1::CheckpointPolicy::Stop stop);

// Tasks with which a group starts.
void AddEscalation(const google::protobuf::RepeatedPtrField<v1::Rung>& escalation,
                   std::vector<LifecyclePolicy>* policies);
// Some group has `spares` or `copies_of`.
bool AnyShorthand(const v1::JobSpec& spec);
// Replaces each TaskGroup.copies_of by the affinity that it means, and each TaskGroup.spares by a
// group with role SPARE, at the end.
inline constexpr char kSparesSuffix[] = "-spares";
void ExpandShorthand(v1::JobSpec* spec);

int32_t MinAvailableOf(const v1::JobSpec& spec, const v1::TaskGroup& group);

// The hot part without name, queue and dependencies, which need the state
// (server/commands/submission.h).
JobSpec JobSpecFrom(const v1::JobSpec& spec, const JobDefaults& defaults);

// Sets the priority, and what depends on it: whether the job is preemptible, and may be moved.
// `preemptible_below`: of JobDefaults.
void SetPriority(const v1::JobSpec& spec, int32_t priority,
                 std::optional<int32_t> preemptible_below, JobSpec* result);

// The queue of the job.
std::string QueueNameOf(const v1::JobSpec& spec);

// Parts of jobs, validated.
TaskShape ShapeFrom(const v1::ResourceRequest& resources, const v1::NodeSelector& selector,
                    const google::protobuf::RepeatedPtrField<v1::Toleration>& tolerations);
std::vector<LifecyclePolicy> PoliciesFrom(
    const google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>& policies);
std::vector<AffinityTerm> AffinityFrom(const v1::JobAffinity& affinity);
GroupCondition ConditionFrom(v1::GroupDependency::Condition condition);
DependencyCondition ConditionFrom(v1::JobDependency::Condition condition);
NodeLossPolicy NodeLossFrom(v1::NodeLossPolicy policy);

v1::JobState JobStateToApi(JobState state);
v1::TaskState TaskStateToApi(TaskState state);
v1::Eviction::Reason EvictionReasonToApi(ReleaseReason reason);
// A code of the core without a counterpart in the API does not compile.
v1::WaitReason::Code WaitCodeToApi(WaitCode code);

// Everything about the job that is in memory: spec without its cold fields, status, etag. Reads the
// state: reader lock.
void RenderJob(const ClusterState& state, const Job& job, Time now, v1::Job* out);

// Task `index` of the job. Reader lock.
void RenderTask(const ClusterState& state, const Job& job, uint32_t index, v1::Task* out);

// What a reason is about, and how much of it is missing. For v1.WaitReason and sim.v1.WaitReason.
template <class Message>
void RenderShortage(const WaitReason& reason, Message* out) {
  const int64_t unit = reason.resource.empty() ? 1 : UnitOf(reason.resource);
  out->set_code(WaitCodeToApi(reason.code));
  out->set_resource(reason.resource);
  out->set_needed(InUnits(reason.needed, unit));
  out->set_free(InUnits(reason.free, unit));
  out->set_limit(InUnits(reason.limit, unit));
  out->set_detail(reason.detail);
}

void RenderReason(const ClusterState& state, const WaitReason& reason, v1::WaitReason* out);
void RenderReservation(const ClusterState& state, const Reservation& reservation,
                       v1::Reservation* out);

// The job's name, or a hint that it was deleted.
std::string JobNameOf(const ClusterState& state, JobId id);

// "worker-3"
std::string TaskNameOf(const Job& job, uint32_t index);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_JOB_H_
