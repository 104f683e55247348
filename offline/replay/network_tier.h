// Computes how near to each other the tasks of a gang are.
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_TIER_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_TIER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/cluster_state.h"

namespace berth::replay {

inline constexpr int32_t kNoTier = -1;                       // unknown
inline constexpr int32_t kOneNode = 0;                       // all tasks on one node
inline constexpr int32_t kAboveAll = kMaxHyperNodeTier + 1;  // no HyperNode has all its nodes

// The tier of the lowest HyperNode of the network tree that has all these nodes, or one of the
// constants above. Every node must exist.
int32_t CommonTier(const ClusterState& state, std::vector<NodeId> nodes);

// "node", the tier's name, "tier 2" for one without a name, "above".
std::string TierName(const ClusterState& state, int32_t tier);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_TIER_H_
