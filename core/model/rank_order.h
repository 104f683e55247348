// The order in which the members of a gang get their ranks: neighbors in rank are neighbors in the
// cluster, so that rings and trees of ranks cross as few switches as the chosen places allow.
//
// Groups keep their order: a first group of one task has rank 0. Within a group the order is depth
// first through the tree of HyperNodes (of the kind of its widest constraint, else the network's):
// domains by name, nodes by name, then devices; partitions stay together. A later group begins as
// near as possible to the end of the previous one.
//
//   racks a {n1 n2} b {n3}, 2 GPUs each; gang of 6 tasks of one GPU
//   ranks: n1 0 1, n2 2 3, n3 4 5     the ring 0 .. 5, 0 goes from rack to rack twice, which is
//   least
//
// Tasks on one node are in the order of their devices: if all nodes of a gang have k tasks, ranks i
// and i + k have the same device index, and so the same rail.
//
// A gang that starts again on mostly the same nodes keeps its ranks there, so that what a member
// left on its node (a shard of a checkpoint) is what its successor needs. New nodes take the holes:
//
//   n1 0 1, n2 2 3, n3 4 5; n2 is lost and n4 takes its place     n1 0 1, n4 2 3, n3 4 5
#ifndef BERTH_CORE_MODEL_RANK_ORDER_H_
#define BERTH_CORE_MODEL_RANK_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "core/model/transitions.h"

namespace berth {

// Indexes into `placements`, in order of rank. Their tasks must exist; nodes that do not exist come
// last. O(n log n).
std::vector<size_t> RankOrder(const ClusterState& state, const Job& job,
                              absl::Span<const Placement> placements);

// Where a task was before it is bound: its latest attempt, or its nomination.
struct FormerPlace {
  NodeId node;        // 0: nowhere yet
  uint16_t rank = 0;  // of its latest attempt
};
inline FormerPlace FormerOf(const Task& before) {
  return {.node = before.epoch > 0 ? before.node : NodeId{}, .rank = before.rank};
}

// The rank of each placement that is being bound, whether or not its task is already bound;
// `former` is parallel to them. Those of a gang follow RankOrder, unless at least half of them are
// on nodes where the gang was (and epoch > 0): then those keep the ranks of that node. Others take
// the lowest free ranks (FreeRanks).
absl::InlinedVector<MemberRank, 1> RanksFor(const ClusterState& state, const Job& job, bool gang,
                                            uint32_t epoch, absl::Span<const Placement> placements,
                                            absl::Span<const FormerPlace> former);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RANK_ORDER_H_
