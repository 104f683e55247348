// NodeSearch: what nodes could hold if they were empty.
#include <algorithm>

#include "core/engine/search/node_search.h"

namespace berth {
namespace {

Offer OfferEmpty(const Node& node) { return {.node = node, .free = node.capacity, .used = {}}; }

}  // namespace

int64_t NodeSearch::FitsEmpty(ShapeId shape, NodeId id, int64_t bound) {
  const Node& node = state_.nodes().At(id);
  return FitsIn(shape, OfferEmpty(node), std::min(bound, TaskRoomIfEmpty(node)));
}

// The same without preparing the shape, which costs more than a look at a few nodes.
EmptyFit NodeSearch::IfEmptyByAmounts(ShapeId shape, int64_t bound, bool one_per_node,
                                      uint64_t* work) {
  const ShapeEntry& entry = state_.interner().Shape(shape);
  const FixedTest& fixed = marks_.TestOf(policies_, shape, state_.interner());
  const DeviceChoice devices(ShapeRequest{entry, state_.interner()});
  const int64_t most = one_per_node ? 1 : bound;
  EmptyFit fit;
  for (auto id = state_.nodes().NextFrom(NodeId{0}); id.has_value() && fit.tasks < bound;
       id = state_.nodes().NextFrom(NodeId{id->value + 1})) {
    ++*work;
    const Offer offer = OfferEmpty(state_.nodes().At(*id));
    if (!entry.least.FitsIn(offer.free) || !fixed.Passes(offer.node)) continue;
    if (!devices.AmountsSuffice(offer) && devices.SetsIn(offer, 1) == 0) continue;
    fit.any_node = true;
    const int64_t room = std::min(most, TaskRoomIfEmpty(offer.node));
    fit.tasks += devices.SetsIn(offer, TimesIn(entry.least, offer.free, room));
  }
  return fit;
}

EmptyFit NodeSearch::IfEmpty(ShapeId shape, int64_t bound, bool one_per_node, uint64_t* work) {
  if (amounts_decide_) return IfEmptyByAmounts(shape, bound, one_per_node, work);
  const Prepared& prepared = Prepare(shape);
  const int64_t most = one_per_node ? 1 : bound;
  EmptyFit fit;
  for (auto id = state_.nodes().NextFrom(NodeId{0}); id.has_value() && fit.tasks < bound;
       id = state_.nodes().NextFrom(NodeId{id->value + 1})) {
    ++*work;
    const Offer offer = OfferEmpty(state_.nodes().At(*id));
    if (!prepared.entry.least.FitsIn(offer.free) || !prepared.Passes(offer)) continue;
    fit.any_node = true;
    const int64_t room = std::min(most, TaskRoomIfEmpty(offer.node));
    fit.tasks += prepared.devices.SetsIn(offer, TimesIn(prepared.entry.least, offer.free, room));
  }
  return fit;
}

Resources NodeSearch::EmptyCapacity(const std::vector<ShapeId>& shapes, uint64_t* work) {
  Resources sum;
  state_.nodes().ForEach([&](NodeId, const Node& node) {
    ++*work;
    const Offer offer = OfferEmpty(node);
    const bool takes_any = std::any_of(shapes.begin(), shapes.end(), [&](ShapeId shape) {
      const Prepared& prepared = Prepare(shape);
      return prepared.entry.least.FitsIn(offer.free) && prepared.Passes(offer);
    });
    if (takes_any) sum += node.capacity;
  });
  return sum;
}

}  // namespace berth
