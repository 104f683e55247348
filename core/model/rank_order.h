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
#ifndef BERTH_CORE_MODEL_RANK_ORDER_H_
#define BERTH_CORE_MODEL_RANK_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

// Indexes into `placements`, in order of rank. Their tasks must exist; nodes that do not exist come
// last. O(n log n).
std::vector<size_t> RankOrder(const ClusterState& state, const Job& job,
                              absl::Span<const Placement> placements);

// The rank of each placement that is being bound, whether or not its task is already bound. Those
// of a gang follow RankOrder; others take the lowest free ranks (FreeRanks).
absl::InlinedVector<uint16_t, 1> RanksFor(const ClusterState& state, const Job& job, bool gang,
                                          absl::Span<const Placement> placements);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RANK_ORDER_H_
