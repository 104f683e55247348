// NodeSearch: what scores, and images that nodes hold, mean for a search.
#include <utility>

#include "core/engine/search/node_search.h"

namespace berth {

const NodeSearch::Scores& NodeSearch::ScoresOf(ShapeId shape, const ScoreKey& key) {
  std::unique_ptr<Scores>& slot = Prepare(shape).scores[key];
  if (slot != nullptr) return *slot;
  slot = std::make_unique<Scores>();
  const Interner& interner = state_.interner();
  const ShapeEntry& entry = interner.Shape(shape);
  const ScoreRequest request{.shape = {entry, interner},
                             .tasks = key.tasks,
                             .policies = policies_,
                             .state = state_,
                             .image = key.image,
                             .downward = key.downward};
  for (const auto& score : policies_.scores()) {
    std::optional<NodeRank> rank = score->Prepare(request);
    if (!rank.has_value()) continue;
    if (*rank == nullptr) break;  // the index order is total
    slot->ranks.push_back(*std::move(rank));
    if (!slot->preference.has_value()) slot->preference = score->Prefers(request);
  }
  slot->preference_only = slot->preference.has_value() && slot->ranks.size() == 1;
  if (slot->preference_only) {
    const ImageId image = slot->preference->image;
    const absl::btree_set<NodeId>* nodes = state_.FindHolders(image);
    const bool few = nodes->size() <= kFewHolders;
    if (few) slot->few = nodes;
    if (!few) slot->holders = &marks_.TestOf(policies_, entry.shape, interner, image);
  }
  return *slot;
}

// Without devices, FreeIndex lists nodes with few free devices first in either direction.
const NodeSearch::Scores& NodeSearch::ScoresFor(const Seeker& seeker) {
  const Group& group = seeker.job.groups[seeker.group];
  ScoreKey key{.tasks = group.replicas};
  if (group.image != ImageId{} && state_.HoldersOf(group.image) > 0) {
    key.image = group.image;
    key.downward = StrategyFor(seeker) == Strategy::kSpread &&
                   state_.interner().Shape(group.shape).DevicesFor(1) > 0;
  }
  return ScoresOf(group.shape, key);
}

absl::Span<const int32_t> NodeSearch::HoldersIn(const TopologyTree& tree, const Seeker& seeker) {
  const Scores& scores = ScoresFor(seeker);
  if (!scores.preference.has_value()) return {};
  const ImageId image = scores.preference->image;
  std::vector<int32_t>& holders = holders_[{&tree, image}];
  if (!holders.empty()) return holders;
  holders.assign(tree.domains().size(), 0);
  for (NodeId node : *state_.FindHolders(image)) ++holders[tree.LowestOf(node)];
  for (size_t d = holders.size(); d-- > 1;) holders[tree.domains()[d].parent] += holders[d];
  return holders;
}

}  // namespace berth
