#include "core/topology/leaf_placer.h"

#include <algorithm>
#include <optional>

namespace berth {

LeafPlacer::LeafPlacer(Cycle& cycle, const Job& job, uint32_t group, const Window& window,
                       bool ignore_reservations, const FitView& view, const Region& region)
    : cycle_(cycle),
      state_(cycle.state()),
      job_(job),
      region_(region),
      only_this_tree_(region.OnlyOf(*view.tree)),
      tree_(*view.tree),
      seeker_{.job = job,
              .group = group,
              .window = window,
              .last = {},
              .ignore_reservations = ignore_reservations},
      strategy_(cycle.search().StrategyFor(seeker_)),
      scored_(cycle.search().Scored(seeker_)),
      preference_(cycle.search().PreferenceFor(seeker_)) {
  const Domain& top = tree_.At(region.In(tree_));
  first_ = top.first_node;
  fits_.reserve(top.size());
  for (uint32_t at = top.first_node; at < top.end_node; ++at) {
    fits_.push_back(view.of_node[tree_.nodes()[at].value]);
  }
}

// Nodes with room, the tightest first.
std::vector<LeafPlacer::Slot> LeafPlacer::SlotsOf(absl::Span<const NodeId> nodes) {
  std::vector<Slot> slots;
  slots.reserve(nodes.size());
  for (NodeId node : nodes) {
    const int32_t fits = FitsOn(node);
    if (fits <= 0 || !state_.free().Has(node)) continue;
    if (!only_this_tree_ && !region_.Holds(node)) continue;
    const FreeIndex::Key key = state_.free().KeyOf(node);
    slots.push_back({key, fits, LevelOf(key)});
  }
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return a.level != b.level ? a.level < b.level : a.key < b.key;
  });
  return slots;
}

size_t LeafPlacer::Place(absl::Span<const NodeId> nodes, absl::Span<const uint32_t> tasks) {
  std::vector<Slot> slots = SlotsOf(nodes);
  if (scored_) return PlaceByScore(std::move(slots), tasks);
  if (strategy_ == Strategy::kSpread) return PlaceSpread(std::move(slots), tasks);
  if (strategy_ == Strategy::kColocate) return PlaceTogether(std::move(slots), tasks);
  return PlaceInOrder(std::move(slots), tasks);
}

void LeafPlacer::Return(NodeId node) { ++FitsOn(node); }

// Places as many of the tasks as fit there.
size_t LeafPlacer::Fill(NodeId node, absl::Span<const uint32_t> tasks) {
  int32_t& fits = FitsOn(node);
  size_t placed = 0;
  while (placed < tasks.size() && fits > 0) {
    cycle_.CountWork(1);
    const std::optional<DeviceSet> devices = cycle_.search().On(seeker_, node);
    fits = devices.has_value() ? fits - 1 : 0;
    if (!devices.has_value()) break;
    cycle_.transaction().Place(job_.id, {tasks[placed], node, *devices});
    seeker_.Placed(node, *devices);
    ++placed;
  }
  return placed;
}

size_t LeafPlacer::PlaceInOrder(std::vector<Slot> slots, absl::Span<const uint32_t> tasks) {
  size_t placed = 0;
  const auto holds_all = [&](const Slot& slot) {
    return static_cast<size_t>(slot.fits) >= tasks.size();
  };
  const auto whole = std::find_if(slots.begin(), slots.end(), holds_all);
  if (whole != slots.end()) placed = Fill(whole->node(), tasks);
  for (const Slot& slot : slots) {
    if (placed == tasks.size()) break;
    placed += Fill(slot.node(), tasks.subspan(placed));
  }
  return placed;
}

// The node with the most free devices, then CPU, first; ties by lowest id.
size_t LeafPlacer::PlaceSpread(std::vector<Slot> slots, absl::Span<const uint32_t> tasks) {
  const auto later = [](const Slot& a, const Slot& b) {
    if (a.level != b.level) return a.level > b.level;
    return a.key.room != b.key.room ? a.key.room < b.key.room : b.key.node < a.key.node;
  };
  std::make_heap(slots.begin(), slots.end(), later);
  size_t placed = 0;
  while (placed < tasks.size() && !slots.empty()) {
    std::pop_heap(slots.begin(), slots.end(), later);
    const NodeId node = slots.back().node();
    slots.pop_back();
    const size_t here = Fill(node, tasks.subspan(placed, 1));
    placed += here;
    if (here == 0 || FitsOn(node) == 0) continue;
    const FreeIndex::Key key = state_.free().KeyOf(node);
    slots.push_back({key, FitsOn(node), LevelOf(key)});
    std::push_heap(slots.begin(), slots.end(), later);
  }
  return placed;
}

size_t LeafPlacer::PlaceTogether(std::vector<Slot> slots, absl::Span<const uint32_t> tasks) {
  const auto has_own = [&](const Slot& slot) {
    const std::vector<TaskKey>& there = state_.nodes().At(slot.node()).tasks;
    return std::any_of(there.begin(), there.end(), [&](TaskKey key) { return key.job == job_.id; });
  };
  std::stable_partition(slots.begin(), slots.end(), has_own);
  size_t placed = 0;
  for (size_t s = 0; s < slots.size() && placed < tasks.size() && has_own(slots[s]); ++s) {
    placed += Fill(slots[s].node(), tasks.subspan(placed));
  }
  while (placed < tasks.size()) {  // the tightest node that takes all the rest, or most of it
    const auto rest = static_cast<int32_t>(tasks.size() - placed);
    const auto takes = [&](const Slot& slot) { return std::min(FitsOn(slot.node()), rest); };
    const auto best =
        std::max_element(slots.begin(), slots.end(),
                         [&](const Slot& a, const Slot& b) { return takes(a) < takes(b); });
    if (best == slots.end() || takes(*best) <= 0) break;
    placed += Fill(best->node(), tasks.subspan(placed));
  }
  return placed;
}

size_t LeafPlacer::PlaceByScore(std::vector<Slot> slots, absl::Span<const uint32_t> tasks) {
  std::vector<NodeId> nodes;
  for (const Slot& slot : slots) nodes.push_back(slot.node());
  size_t placed = 0;
  for (; placed < tasks.size(); ++placed) {
    const std::optional<Found> found =
        cycle_.search().BestOf(seeker_, nodes, &cycle_.counters().work);
    if (!found.has_value()) break;
    --FitsOn(found->node);
    cycle_.transaction().Place(job_.id, {tasks[placed], found->node, found->devices});
  }
  return placed;
}

}  // namespace berth
