// What operators' requests make of a node: cordons and drains.
#ifndef BERTH_SERVER_COMMANDS_NODE_STEERING_H_
#define BERTH_SERVER_COMMANDS_NODE_STEERING_H_

#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/node.pb.h"
#include "core/model/event.h"
#include "core/model/node.h"

namespace berth {

// The drain of devices goes on while the node is cordoned.
NodeSteered CordonOf(const Node& node, const std::string& reason);

// For a request that ValidateDrain accepted. A drain that is only repeated goes on: its begin
// stays. INVALID_ARGUMENT lists devices that the node does not have; FAILED_PRECONDITION if devices
// are to be drained while the node is.
absl::StatusOr<NodeSteered> DrainOf(const Node& node, const v1::DrainNodeRequest& request,
                                    Time now);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_NODE_STEERING_H_
