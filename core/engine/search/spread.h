// Groups that are spread over places with a maximum skew (Spread, core/model/job.h).
//
//   racks a {room for 4} b {room for 1} c {room for 4}, skew 1: a task goes to a, b or c, then to
//   the two others; then to a and c; then no further, as b has 1 and no room: 5 tasks at most
//
// A place takes a task while it then has at most max_skew more than the place with the fewest. So
// whichever place is used first, a group of one shape gets as many tasks as the rule allows: where
// it stops, the place with the fewest is full, and every other is full or max_skew above it.
#ifndef BERTH_CORE_ENGINE_SEARCH_SPREAD_H_
#define BERTH_CORE_ENGINE_SEARCH_SPREAD_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// The places that count for one shape: those with a node that takes tasks and could hold one when
// empty. Valid until nodes or HyperNodes change.
class SpreadPlaces {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  // `tree`: the network tree; not used with tier 0; null: there is none, and so no place.
  // `holds_empty`: how many tasks the node could hold. O(nodes).
  SpreadPlaces(const ClusterState& state, const TopologyTree* tree, int32_t tier,
               absl::FunctionRef<int64_t(NodeId)> holds_empty);

  size_t size() const { return holds_.size(); }
  // kNone: in no place that counts.
  uint32_t PlaceOf(NodeId node) const { return of_node_[node.value]; }
  // How many tasks could run there with that skew if everything else were empty.
  int64_t Most(int32_t max_skew) const;

 private:
  std::vector<uint32_t> of_node_;  // by NodeId::value
  std::vector<int64_t> holds_;     // by place
};

// Where the tasks of one group are, and may be. From the state at construction.
class SpreadCount {
 public:
  // O(tasks of the group + places). Tasks being released do not count.
  SpreadCount(const SpreadPlaces& places, const Job& job, uint32_t group);
  // One more task of the group may go there.
  bool May(NodeId node) const;

 private:
  const SpreadPlaces& places_;
  const int64_t max_skew_;
  std::vector<int64_t> tasks_;  // by place
  int64_t fewest_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_SPREAD_H_
