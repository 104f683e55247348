// Finds the best node for one task.
#ifndef BERTH_CORE_ENGINE_NODE_SEARCH_H_
#define BERTH_CORE_ENGINE_NODE_SEARCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/device_choice.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

namespace berth {

struct Found {
  NodeId node;
  DeviceSet devices;
};

// How much of a demand the nodes could hold if nothing ran on any of them.
struct EmptyFit {
  bool any_node = false;  // some node could hold a task
  int64_t tasks = 0;      // that all nodes could hold, counted up to the bound asked for
};

// For one cycle: what policies prepare for a shape is kept. Sees the state as it is at each call.
class NodeSearch {
 public:
  NodeSearch(const ClusterState& state, const Policies& policies)
      : state_(state), policies_(policies) {}

  // The best node that passes every filter now. Adds the nodes looked at to `work`.
  //
  // FreeIndex lists nodes tightest first, beginning with those that could hold the request. Without
  // other scores the first that passes is the best:
  //   free devices  2 2 4 8 8, request 3 devices -> looks at 4, takes it
  std::optional<Found> Best(ShapeId shape, uint64_t* work);

  // A task of the shape fits on this node now. The node must be listed in FreeIndex.
  bool FitsNow(ShapeId shape, NodeId node);

  // How many tasks of the shape fit into the offer, at most `bound`.
  int64_t FitsIn(ShapeId shape, const Offer& offer, int64_t bound);

  // Walks the nodes, taking or not, until `bound` tasks have room.
  EmptyFit IfEmpty(ShapeId shape, int64_t bound, uint64_t* work);

 private:
  struct Prepared {
    Prepared(const Policies& policies, const ShapeRequest& request);
    bool Passes(const Offer& offer) const;

    const ShapeEntry& entry;
    std::vector<NodeTest> tests;
    std::vector<NodeRank> ranks;
    DeviceChoice devices;
  };
  const Prepared& Prepare(ShapeId shape);
  std::optional<NodeId> FirstThatPasses(const Prepared& prepared, uint64_t* work) const;
  std::optional<NodeId> BestRanked(const Prepared& prepared, uint64_t* work) const;

  const ClusterState& state_;
  const Policies& policies_;
  absl::flat_hash_map<ShapeId, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_NODE_SEARCH_H_
