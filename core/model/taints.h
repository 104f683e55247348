// What keeps tasks off a node, besides a lack of room: taints, what they select, and what happened
// to their job there.
#ifndef BERTH_CORE_MODEL_TAINTS_H_
#define BERTH_CORE_MODEL_TAINTS_H_

#include <vector>

#include "core/model/job.h"
#include "core/model/node.h"

namespace berth {

// The node has all labels that the shape requests, and is not one that it excludes.
bool Selects(const TaskShape& shape, const NodeSpec& node);
// The node refused the job, or a device of the job failed there.
bool IsKeptOut(const JobStatus& status, NodeId node);

bool Tolerated(const Taint& taint, const std::vector<Toleration>& tolerations);

// True if a taint of the node makes tasks leave it that do not tolerate it.
bool HasEvictingTaint(const NodeSpec& spec);
// True if tasks may have to leave the node: it or some of its devices are drained, a device is
// unhealthy, or it has such a taint.
bool MayExpel(const Node& node);
// One of these, if tasks with these tolerations must leave; null: they may stay.
const Taint* EvictingTaint(const NodeSpec& spec, const std::vector<Toleration>& tolerations);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TAINTS_H_
