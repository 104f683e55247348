#include "core/engine/node_search.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// How many times the request fits into the amounts, at most `bound`.
int64_t TimesIn(const Resources& request, const Resources& amounts, int64_t bound) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0) bound = std::min(bound, amounts.amount[i] / request.amount[i]);
  }
  return bound;
}

Offer OfferEmpty(const Node& node) { return {.node = node, .free = node.capacity, .used = {}}; }

}  // namespace

NodeSearch::Prepared::Prepared(const Policies& policies, const ShapeRequest& request)
    : entry(request.entry), devices(request) {
  for (const auto& filter : policies.filters()) {
    NodeTest test = filter->Prepare(request);
    if (test != nullptr) tests.push_back(std::move(test));
  }
  for (const auto& score : policies.scores()) {
    NodeRank rank = score->Prepare(request);
    if (rank == nullptr) break;  // the index order is total
    ranks.push_back(std::move(rank));
  }
}

bool NodeSearch::Prepared::Passes(const Offer& offer) const {
  for (const NodeTest& test : tests) {
    if (!test(offer)) return false;
  }
  return true;
}

const NodeSearch::Prepared& NodeSearch::Prepare(ShapeId shape) {
  std::unique_ptr<Prepared>& slot = prepared_[shape];
  if (slot == nullptr) {
    const Interner& interner = state_.interner();
    slot = std::make_unique<Prepared>(policies_, ShapeRequest{interner.Shape(shape), interner});
  }
  return *slot;
}

std::optional<NodeId> NodeSearch::FirstThatPasses(const Prepared& prepared, uint64_t* work) const {
  const ShapeEntry& entry = prepared.entry;
  std::optional<NodeId> first;
  state_.free().ForEach(entry.device_count, entry.resources[kCpu],
                        [&](NodeId id, const Resources& free) {
                          ++*work;
                          if (!entry.resources.FitsIn(free)) return true;
                          const Node& node = state_.nodes().At(id);
                          if (!prepared.Passes({node, free, TakenDevices(node)})) return true;
                          first = id;
                          return false;
                        });
  return first;
}

std::optional<NodeId> NodeSearch::BestRanked(const Prepared& prepared, uint64_t* work) const {
  const ShapeEntry& entry = prepared.entry;
  std::optional<NodeId> best;
  std::vector<int64_t> best_ranks, ranks(prepared.ranks.size());
  state_.free().ForEach(entry.device_count, entry.resources[kCpu],
                        [&](NodeId id, const Resources& free) {
                          ++*work;
                          if (!entry.resources.FitsIn(free)) return true;
                          const Node& node = state_.nodes().At(id);
                          const Offer offer{node, free, TakenDevices(node)};
                          if (!prepared.Passes(offer)) return true;
                          for (size_t i = 0; i < ranks.size(); ++i) {
                            ranks[i] = prepared.ranks[i](offer);
                          }
                          if (best.has_value() && ranks >= best_ranks) return true;
                          best = id;
                          best_ranks = ranks;
                          return true;
                        });
  return best;
}

std::optional<Found> NodeSearch::Best(ShapeId shape, uint64_t* work) {
  const Prepared& prepared = Prepare(shape);
  const std::optional<NodeId> id =
      prepared.ranks.empty() ? FirstThatPasses(prepared, work) : BestRanked(prepared, work);
  if (!id.has_value()) return std::nullopt;
  const Node& node = state_.nodes().At(*id);
  std::optional<DeviceSet> devices =
      prepared.devices.Choose({node, state_.free().FreeOf(*id), TakenDevices(node)});
  if (!devices.has_value()) return std::nullopt;
  return Found{*id, *devices};
}

bool NodeSearch::FitsNow(ShapeId shape, NodeId id) {
  const Prepared& prepared = Prepare(shape);
  const Resources& free = state_.free().FreeOf(id);
  if (!prepared.entry.resources.FitsIn(free)) return false;
  const Node& node = state_.nodes().At(id);
  return prepared.Passes({node, free, TakenDevices(node)});
}

int64_t NodeSearch::FitsIn(ShapeId shape, const Offer& offer, int64_t bound) {
  const Prepared& prepared = Prepare(shape);
  const Resources& request = prepared.entry.resources;
  if (!request.FitsIn(offer.free) || !prepared.Passes(offer)) return 0;
  return prepared.devices.SetsIn(offer, TimesIn(request, offer.free, bound));
}

EmptyFit NodeSearch::IfEmpty(ShapeId shape, int64_t bound, uint64_t* work) {
  const Prepared& prepared = Prepare(shape);
  EmptyFit fit;
  for (auto id = state_.nodes().NextFrom(NodeId{0}); id.has_value() && fit.tasks < bound;
       id = state_.nodes().NextFrom(NodeId{id->value + 1})) {
    ++*work;
    const Offer offer = OfferEmpty(state_.nodes().At(*id));
    if (!prepared.entry.resources.FitsIn(offer.free) || !prepared.Passes(offer)) continue;
    fit.any_node = true;
    fit.tasks +=
        prepared.devices.SetsIn(offer, TimesIn(prepared.entry.resources, offer.free, bound));
  }
  return fit;
}

}  // namespace berth
