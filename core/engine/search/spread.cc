#include "core/engine/search/spread.h"

#include <algorithm>

#include "core/model/transitions.h"

namespace berth {
namespace {

// The region that a node belongs to: itself, or a domain of the tree.
std::optional<uint32_t> RegionOf(const TopologyTree* tree, int32_t tier, NodeId node) {
  if (tier == 0) return node.value;
  if (tree == nullptr) return std::nullopt;
  return tree->DomainAt(node, tier);
}

}  // namespace

SpreadPlaces::SpreadPlaces(const ClusterState& state, const TopologyTree* tree, int32_t tier,
                           absl::FunctionRef<int64_t(NodeId)> holds_empty) {
  of_node_.assign(state.next_node_id().value, kNone);
  const size_t regions = tier == 0 || tree == nullptr ? of_node_.size() : tree->domains().size();
  std::vector<uint32_t> place_of(regions, kNone);
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    const std::optional<uint32_t> region = RegionOf(tree, tier, id);
    const int64_t holds =
        region.has_value() && TakesTasks(node.status) ? holds_empty(id) : int64_t{0};
    if (holds == 0) return;
    if (place_of[*region] == kNone) {
      place_of[*region] = static_cast<uint32_t>(holds_.size());
      holds_.push_back(0);
    }
    holds_[place_of[*region]] += holds;
  });
  state.nodes().ForEach([&](NodeId id, const Node&) {
    const std::optional<uint32_t> region = RegionOf(tree, tier, id);
    if (region.has_value()) of_node_[id.value] = place_of[*region];
  });
}

int64_t SpreadPlaces::Most(int32_t max_skew) const {
  if (holds_.empty()) return 0;
  const int64_t most = *std::min_element(holds_.begin(), holds_.end()) + max_skew;
  int64_t sum = 0;
  for (int64_t holds : holds_) sum += std::min(holds, most);
  return sum;
}

SpreadCount::SpreadCount(const SpreadPlaces& places, const Job& job, uint32_t group)
    : places_(places), max_skew_(job.groups[group].spread.max_skew), tasks_(places.size(), 0) {
  const uint32_t first = job.groups[group].first_task;
  const uint32_t end = first + static_cast<uint32_t>(job.groups[group].replicas);
  for (uint32_t index = first; index < end; ++index) {
    const Task& task = job.tasks[index];
    const bool here = (Occupies(task.state) && !Releasing(task)) || Reserves(task.state);
    if (!here && !task.moves) continue;
    const uint32_t place = places.PlaceOf(task.moves ? task.next_node : task.node);
    if (place != SpreadPlaces::kNone) ++tasks_[place];
  }
  if (!tasks_.empty()) fewest_ = *std::min_element(tasks_.begin(), tasks_.end());
}

bool SpreadCount::May(NodeId node) const {
  const uint32_t place = places_.PlaceOf(node);
  return place != SpreadPlaces::kNone && tasks_[place] + 1 - fewest_ <= max_skew_;
}

}  // namespace berth
