// Translates the problems that agents report about their nodes into steering.
//
// The strongest effect wins: DRAIN over CORDON over NOTE. An agent cordons and drains in its own
// name (the reason begins with "agent: "), and reverts only its own changes: a node that an
// operator cordoned stays as the operator left it. Example: the disk is full -> cordoned and
// draining, "agent: disk-space: ..."; there is room again -> neither. If an operator uncordons in
// the meantime, that holds until the agent's conditions change or it registers again.
#ifndef BERTH_SERVER_CONTROLLERS_CONDITIONS_H_
#define BERTH_SERVER_CONTROLLERS_CONDITIONS_H_

#include <optional>

#include "absl/status/status.h"
#include "berth/v1/agent.pb.h"
#include "core/model/event.h"
#include "core/model/node.h"

namespace berth {

// INVALID_ARGUMENT for too many or too long conditions, or invalid names.
absl::Status ValidateConditions(const v1::NodeConditions& conditions);

// What remains of the node's drain if the node itself is not to drain: the drain of devices, which
// only an operator ends.
Drain DrainOfDevices(const NodeStatus& status);

// The event that brings the node to what its conditions require, if it is not there yet.
std::optional<NodeSteered> SteeringFor(const Node& node, const v1::NodeConditions& conditions);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_CONDITIONS_H_
