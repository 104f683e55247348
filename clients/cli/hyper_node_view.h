// Formats HyperNodes for people: a list, a tree with free devices, a page.
#ifndef BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_
#define BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_

#include <string>
#include <vector>

#include "berth/v1/hypernode.pb.h"
#include "clients/cli/output.h"

namespace berth {

Shape<v1::HyperNode> HyperNodeShape();
// The tree of every kind, from the root down. `all_nodes`: nodes of the cluster. Nodes in no
// HyperNode of a kind are counted in a separate row.
Table TopologyTable(const std::vector<v1::HyperNode>& hyper_nodes, int64_t all_nodes);
// `all`: all HyperNodes of its kind.
std::string DescribeDomain(const v1::HyperNode& hyper_node, const std::vector<v1::HyperNode>& all,
                           const Session& session);
// "[########------]": how much of `capacity` is in use.
std::string UseBar(int64_t capacity, int64_t free);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_
