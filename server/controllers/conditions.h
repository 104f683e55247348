// What agents say is wrong with their nodes, as the steering that follows from it.
//
// The strongest effect counts: DRAIN over CORDON over NOTE. An agent cordons and drains in its own
// name (the reason begins with "agent: "), and takes back only what it did itself: a node that an
// operator has cordoned stays as the operator left it. Example: the disk is full -> cordoned and
// draining, "agent: disk-space: ..."; there is room again -> neither. An operator who uncordons
// meanwhile is heard until the agent's conditions change, or it registers anew.
#ifndef BERTH_SERVER_CONTROLLERS_CONDITIONS_H_
#define BERTH_SERVER_CONTROLLERS_CONDITIONS_H_

#include <optional>

#include "absl/status/status.h"
#include "berth/v1/agent.pb.h"
#include "core/model/event.h"
#include "core/model/node.h"

namespace berth {

// INVALID_ARGUMENT for too many, too long, or names that are none.
absl::Status ValidateConditions(const v1::NodeConditions& conditions);

// The event that brings the node to what its conditions ask for, if it is not there.
std::optional<NodeSteered> SteeringFor(const Node& node, const v1::NodeConditions& conditions);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_CONDITIONS_H_
