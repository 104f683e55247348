// Nodes between the API and the core: agents' reports become core values, and nodes are rendered
// for readers.
#ifndef BERTH_SERVER_CONVERT_NODE_H_
#define BERTH_SERVER_CONVERT_NODE_H_

#include <google/protobuf/map.h>

#include <string>

#include "berth/v1/node.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/node.h"

namespace berth {

v1::NodeState NodeStateToApi(NodeState state);
v1::NodeDrain::Mode DrainModeToApi(DrainMode mode);
DrainMode DrainModeFrom(v1::NodeDrain::Mode mode);

// Reader lock. `devices`: also renders the inventory's devices and which are in use.
// By kind, the lowest HyperNode that contains the node.
void RenderDomains(const ClusterState& state, const Node& node,
                   google::protobuf::Map<std::string, std::string>* out);

void RenderNode(const ClusterState& state, const Node& node, bool devices, v1::Node* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_NODE_H_
