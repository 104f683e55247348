// LeafPlacer: assigns tasks of one group to nodes that joined one domain directly.
//
// If one node has room for all of them, the tightest such node takes them: nothing is closer. This
// does not apply to spread, or if scores are configured. Else by strategy:
//   binpack   the tightest node first, until it is full (FreeIndex's order)
//   spread    the node with the most free, again and again
//   colocate  nodes that have tasks of the job, then the node that takes most of the rest
// Among nodes that are equal for this, one that holds the image comes first (ImagePreference). If
// other scores apply, the best node for each task.
#ifndef BERTH_CORE_TOPOLOGY_LEAF_PLACER_H_
#define BERTH_CORE_TOPOLOGY_LEAF_PLACER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/engine/cycle.h"
#include "core/topology/domain_fits.h"
#include "core/topology/region.h"

namespace berth {

class LeafPlacer {
 public:
  // `view` counts for the group's shape. Uses only nodes in the region.
  LeafPlacer(Cycle& cycle, const Job& job, uint32_t group, const Window& window,
             bool ignore_reservations, const FitView& view, const Region& region);

  // Places a prefix of the tasks, as many as fit on these nodes. Returns how many.
  size_t Place(absl::Span<const NodeId> nodes, absl::Span<const uint32_t> tasks);
  // A task that this placed was rolled back.
  void Return(NodeId node);

  // NodeSearch::HoldersIn, for the group.
  absl::Span<const int32_t> HoldersIn(const TopologyTree& tree) {
    return cycle_.search().HoldersIn(tree, seeker_);
  }
  const Job& job() const { return job_; }

 private:
  struct Slot {
    FreeIndex::Key key;
    int32_t fits = 0;   // estimated
    int64_t level = 0;  // ImagePreference::LevelOf, if there is one
    NodeId node() const { return key.node; }
  };
  int64_t LevelOf(const FreeIndex::Key& key) const {
    if (!preference_.has_value()) return 0;
    return preference_->LevelOf(state_.nodes().At(key.node), key.room);
  }
  int32_t& FitsOn(NodeId node) { return fits_[tree_.PositionOf(node) - first_]; }
  std::vector<Slot> SlotsOf(absl::Span<const NodeId> nodes);
  size_t Fill(NodeId node, absl::Span<const uint32_t> tasks);
  size_t PlaceInOrder(std::vector<Slot> slots, absl::Span<const uint32_t> tasks);
  size_t PlaceSpread(std::vector<Slot> slots, absl::Span<const uint32_t> tasks);
  size_t PlaceTogether(std::vector<Slot> slots, absl::Span<const uint32_t> tasks);
  size_t PlaceByScore(std::vector<Slot> slots, absl::Span<const uint32_t> tasks);

  Cycle& cycle_;
  const ClusterState& state_;
  const Job& job_;
  const Region& region_;
  const bool only_this_tree_;
  const TopologyTree& tree_;
  Seeker seeker_;
  const Strategy strategy_;
  const bool scored_;
  const std::optional<ImagePreference> preference_;
  uint32_t first_ = 0;         // position of the first node of the region
  std::vector<int32_t> fits_;  // estimated, by position from there
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_LEAF_PLACER_H_
