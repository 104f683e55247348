#include "core/engine/victims/few_units.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace berth {
namespace {

struct Sized {
  size_t index = 0;
  Resources given;
  int64_t size = 0;  // sum over the fractions of the missing amounts that it covers
};

bool Covers(const Resources& given, const Resources& missing) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (missing.amount[i] > 0 && given.amount[i] < missing.amount[i]) return false;
  }
  return true;
}

int64_t SizeOf(const Resources& given, const Resources& missing) {
  constexpr int64_t kWholePart = 1 << 14;  // times kMaxAmount is less than 2^63
  int64_t size = 0;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const int64_t lacks = missing.amount[i];
    if (lacks > 0) size += std::min(given.amount[i], lacks) * kWholePart / lacks;
  }
  return size;
}

// It can go without another unit: no rest, or the rest of a job without surplus.
bool GoesAlone(const ClusterState& state, const VictimUnit& unit) {
  const Job& job = state.jobs().At(unit.job);
  return !unit.rest || job.occupying == static_cast<int32_t>(unit.tasks.size());
}

// The node of all its tasks; none if on several.
std::optional<NodeId> NodeOf(const ClusterState& state, const VictimUnit& unit) {
  const Job& job = state.jobs().At(unit.job);
  const NodeId node = job.tasks[unit.tasks.front()].node;
  for (uint32_t task : unit.tasks) {
    if (job.tasks[task].node != node) return std::nullopt;
  }
  return node;
}

// The largest units, until nothing is missing; empty if all together are too few.
std::vector<size_t> Largest(std::vector<Sized> units, const Resources& missing) {
  for (Sized& unit : units) unit.size = SizeOf(unit.given, missing);
  std::stable_sort(units.begin(), units.end(),
                   [](const Sized& a, const Sized& b) { return a.size > b.size; });
  std::vector<size_t> taken;
  Resources given;
  for (const Sized& unit : units) {
    if (unit.size == 0) break;
    taken.push_back(unit.index);
    given += unit.given;
    if (!Covers(given, missing)) continue;
    std::sort(taken.begin(), taken.end());
    return taken;
  }
  return {};
}

}  // namespace

std::vector<std::vector<size_t>> FewUnits(const ClusterState& state, const Resources& request,
                                          const std::vector<VictimUnit>& units, size_t first) {
  const Resources missing =
      request - (state.free().total() + state.queues().At(kRootQueue).leaving);
  std::vector<std::vector<size_t>> sets;
  std::map<NodeId, std::vector<Sized>> of_nodes;
  for (size_t i = first; i < units.size(); ++i) {
    if (!GoesAlone(state, units[i])) continue;
    const Resources given = RequestOf(state, units[i]);
    const std::optional<NodeId> node = NodeOf(state, units[i]);
    if (Covers(given, missing)) sets.push_back({i});
    if (node.has_value()) of_nodes[*node].push_back({.index = i, .given = given});
  }
  for (auto& [id, sized] : of_nodes) {
    if (sized.size() < 2) continue;
    const Node& node = state.nodes().At(id);
    const Resources lacking = request - (node.capacity - node.allocated - node.reserved);
    std::vector<size_t> largest = Largest(std::move(sized), lacking);
    if (largest.size() > 1) sets.push_back(std::move(largest));
  }
  return sets;
}

}  // namespace berth
