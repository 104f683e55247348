// In which order the members of a gang get their ranks: so that neighbours in rank are neighbours
// in the cluster, and rings and trees of ranks cross as few switches as the chosen places allow.
//
// Groups in their order: a first group of one task keeps rank 0. Inside a group depth first through
// the tree of HyperNodes (of the kind of its widest constraint, else the network's): domains by
// name, nodes by name, then devices; partitions stay whole. A later group begins as near as it can
// to where the one before ended.
//
//   racks a {n1 n2} b {n3}, 2 GPUs each; gang of 6 tasks of one GPU
//   ranks: n1 0 1, n2 2 3, n3 4 5     the ring 0 .. 5, 0 goes from rack to rack twice, which is
//   least
//
// Tasks on one node are in the order of their devices: where all nodes of a gang have k tasks,
// ranks i and i + k have the same device index, and so the same rail.
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

// Indexes in `placements`, in order of rank. Their tasks must exist; nodes that do not are last.
// O(n log n).
std::vector<size_t> RankOrder(const ClusterState& state, const Job& job,
                              absl::Span<const Placement> placements);

// The rank of each placement that is being bound; whether their tasks are bound already does not
// matter. Those of a gang go by RankOrder; others take the lowest ranks that are free (FreeRanks).
absl::InlinedVector<uint16_t, 1> RanksFor(const ClusterState& state, const Job& job, bool gang,
                                          absl::Span<const Placement> placements);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RANK_ORDER_H_
