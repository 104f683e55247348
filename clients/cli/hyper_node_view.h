// HyperNodes as people see them: a list, a tree with what is free in it, a page.
#ifndef BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_
#define BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_

#include <string>
#include <vector>

#include "berth/v1/hypernode.pb.h"
#include "clients/cli/output.h"

namespace berth {

Shape<v1::HyperNode> HyperNodeShape();
// Every kind's tree, from the root down. `all_nodes`: of the cluster; those in no HyperNode of a
// kind stand in a row of their own.
Table TopologyTable(const std::vector<v1::HyperNode>& hyper_nodes, int64_t all_nodes);
// `all`: of its kind.
std::string DescribeDomain(const v1::HyperNode& hyper_node, const std::vector<v1::HyperNode>& all,
                           const Session& session);
// "[########------]": how much of `capacity` is in use.
std::string UseBar(int64_t capacity, int64_t free);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_HYPER_NODE_VIEW_H_
