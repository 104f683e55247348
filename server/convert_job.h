// Jobs through the API's door: berth.v1 messages that passed validation become core values, and
// what the core holds is rendered as berth.v1 messages. The cold fields go through
// server/convert_cold.h.
#ifndef BERTH_SERVER_CONVERT_JOB_H_
#define BERTH_SERVER_CONVERT_JOB_H_

#include <optional>
#include <string>

#include "berth/v1/job.pb.h"
#include "core/engine/plan.h"
#include "core/model/cluster_state.h"
#include "core/model/job.h"
#include "core/model/queue.h"
#include "core/topology/gang_topology.h"

namespace berth {

// No limits.kill_grace is above this.
inline constexpr absl::Duration kMaxKillGrace = absl::Hours(24);

// What a field that was left out means, and the operator's bound for one that was not.
struct JobDefaults {
  absl::Duration finished_job_ttl = absl::Hours(24);
  // Jobs of lower priority are preemptible; absent: none are.
  std::optional<int32_t> preemptible_below_priority = std::nullopt;
  GangTopology gangs = {};
  QueueDefaults of_queues = {};  // where neither the queue nor one above it says it
  absl::Duration greatest_kill_grace = kMaxKillGrace;  // limits.kill_grace
};

// What a job's tasks are, or would be; 0 or less if that is what it says.
int32_t ReplicasOf(const v1::TaskGroup& group);

// Tasks that a group starts with.
int32_t MinAvailableOf(const v1::JobSpec& spec, const v1::TaskGroup& group);

// The hot part, without name, queue and dependencies: these need the state (server/submission.h).
JobSpec JobSpecFrom(const v1::JobSpec& spec, const JobDefaults& defaults);

// The queue it goes to.
std::string QueueNameOf(const v1::JobSpec& spec);

DependencyCondition ConditionFrom(v1::JobDependency::Condition condition);

v1::JobState JobStateToApi(JobState state);
v1::TaskState TaskStateToApi(TaskState state);
v1::Eviction::Reason EvictionReasonToApi(ReleaseReason reason);

// All that memory holds of the job: spec without its cold fields, status, etag. Reads the state:
// reader lock.
void RenderJob(const ClusterState& state, const Job& job, Time now, v1::Job* out);

// Task `index` of the job. Reader lock.
void RenderTask(const ClusterState& state, const Job& job, uint32_t index, v1::Task* out);

void RenderReason(const ClusterState& state, const WaitReason& reason, v1::WaitReason* out);
void RenderReservation(const ClusterState& state, const Reservation& reservation,
                       v1::Reservation* out);

// The job's name, or a hint at one that is no longer there.
std::string JobNameOf(const ClusterState& state, JobId id);

// "worker-3"
std::string ApiTaskName(const Job& job, uint32_t index);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_JOB_H_
