// Internal to Apply: one overload per event, by subject in apply_*.cc. Each first checks everything
// and then edits, or undoes what it tried; on an error the state is unchanged.
#ifndef BERTH_CORE_MODEL_APPLY_INTERNAL_H_
#define BERTH_CORE_MODEL_APPLY_INTERNAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {
class StateEditor;
}

namespace berth::apply_internal {

absl::Status ApplyBody(ClusterState& state, const QueueCreated& event, Time now);
absl::Status ApplyBody(ClusterState& state, const QueueUpdated& event, Time now);
absl::Status ApplyBody(ClusterState& state, const QueueOpened& event, Time now);
absl::Status ApplyBody(ClusterState& state, const QueueDeleted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeRegistered& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeSilenced& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeFenced& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeSteered& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeRefused& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeDeleted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobSubmitted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobUpdated& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobCancelled& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobSuspended& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobDeleted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobStatusChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TaskReported& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksBound& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksStarted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksReleased& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksRequeued& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksNominated& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksUnnominated& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobReserved& event, Time now);
absl::Status ApplyBody(ClusterState& state, const UsageCharged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const HyperNodeChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const HyperNodeDeleted& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodesJoined& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodesLeft& event, Time now);
absl::Status ApplyBody(ClusterState& state, const RequestMixChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const JobRunRecorded& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TaskReady& event, Time now);
absl::Status ApplyBody(ClusterState& state, const CheckpointRecorded& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TaskHung& event, Time now);
absl::Status ApplyBody(ClusterState& state, const AccessChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const PriorityClassesChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const NodeImagesChanged& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksPaused& event, Time now);
absl::Status ApplyBody(ClusterState& state, const TasksResumed& event, Time now);

// The tasks exist in the job, without repeats, each in a state that `allowed` accepts.
absl::Status CheckTasks(const ClusterState& state, JobId id, std::vector<uint32_t> tasks,
                        const char* what, absl::FunctionRef<bool(TaskState)> allowed);

// Builds a status from the pieces of a message.
template <class... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(absl::StrCat(parts...));
}
template <class... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}
template <class... Parts>
absl::Status Exists(const Parts&... parts) {
  return absl::AlreadyExistsError(absl::StrCat(parts...));
}
template <class... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Names of objects in messages: "job train (7)".
std::string NameOf(const Job& job);
std::string NameOf(const Node& node);
std::string NameOf(const Queue& queue);
std::string NameOf(const HyperNode& domain);
std::string TaskName(const Job& job, uint32_t task);  // "task worker-3 of job train (7)"
const char* NameOf(TaskState state);
const char* NameOf(JobState state);

// Ends a task of a force-cancelled job on a silent node. It may still run, but the user asked to
// treat it as ended, and it is not restarted.
void EndByForce(StateEditor& editor, TaskKey key, const Task& task, Time now);

// Amounts are named, distinct and in [0, kMaxAmount].
absl::Status CheckAmounts(const std::vector<NamedAmount>& amounts, const std::string& whose);

}  // namespace berth::apply_internal

#endif  // BERTH_CORE_MODEL_APPLY_INTERNAL_H_
