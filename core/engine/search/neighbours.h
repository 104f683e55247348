// Affinity and anti-affinity between the groups of one job (near_groups and apart_from), by nodes
// or, with affinity_tier, by HyperNodes of the network tree.
//
//   group a: apart from itself, tier 1      a-0 in rack r1: a-1 goes to another rack
//   group b: near a, tier 1                 b-0 goes to r1, on any node
#ifndef BERTH_CORE_ENGINE_SEARCH_NEIGHBOURS_H_
#define BERTH_CORE_ENGINE_SEARCH_NEIGHBOURS_H_

#include <cstdint>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// `groups` (near_groups or apart_from of a group) contains this one.
bool Names(const std::vector<uint32_t>& groups, uint32_t group);

// Some group must be near another group, or apart from one.
bool HasNearOrApartGroups(const Job& job);

// Whether a task of the group may be on the node, given the job's tasks there or near. In both
// directions: other groups' apart_from also counts. A place is the highest domain that holds the
// node and is at most of the tier; the node itself if there is none. Tasks being released do not
// count. O(tasks on the node); with a tier O(tasks of the job) at most.
bool AffinityAllows(const ClusterState& state, TopologyTrees& trees, const Job& job, uint32_t group,
                    const Node& node);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_NEIGHBOURS_H_
