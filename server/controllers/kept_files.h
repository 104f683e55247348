// Which files that jobs keep on a node for their next attempt (JobSpec.keep) can go.
#ifndef BERTH_SERVER_CONTROLLERS_KEPT_FILES_H_
#define BERTH_SERVER_CONTROLLERS_KEPT_FILES_H_

#include "berth/v1/agent.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/ids.h"

namespace berth {

// After the end of an attempt that the job will repeat.
inline constexpr Duration kKeptForRestart = absl::Minutes(5);

// Those of jobs that have ended, or of which no task is on the node, has its place there, or ended
// there within kKeptForRestart and was not sent away. In the order of the message. O(tasks of the
// jobs). Pure.
v1::DropFiles FilesToDrop(const ClusterState& state, NodeId node, const v1::KeptFiles& kept,
                          Time now);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_KEPT_FILES_H_
