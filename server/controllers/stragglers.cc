#include "server/controllers/stragglers.h"

#include <algorithm>
#include <bit>

namespace berth {
namespace {

constexpr size_t kMostTimes = 1024;  // of one node and round

}  // namespace

int64_t MedianOf(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Stragglers::Note(uint32_t group, NodeId node, int64_t step_time_us, Time now) {
  if (round_ends_ <= now) {
    EndRound();
    round_ends_ = now + kRound;
  }
  std::vector<int64_t>& times = groups_[group][node].times;
  if (times.size() < kMostTimes) times.push_back(step_time_us);
}

void Stragglers::EndRound() {
  for (auto& [group, nodes] : groups_) EndRound(nodes);
}

void Stragglers::EndRound(Nodes& nodes) {
  std::erase_if(nodes, [](const auto& entry) { return entry.second.times.empty(); });
  std::map<NodeId, int64_t> medians;
  std::vector<int64_t> all;
  for (auto& [node, told] : nodes) {
    medians[node] = MedianOf(std::move(told.times));
    all.push_back(medians[node]);
    told.times.clear();
  }
  if (all.empty()) return;
  const double limit = kSlower * static_cast<double>(MedianOf(std::move(all)));
  for (auto& [node, told] : nodes) {
    const bool slow = nodes.size() >= kLeastNodes && static_cast<double>(medians[node]) > limit;
    constexpr unsigned kMask = (1u << kRounds) - 1;
    told.flags = static_cast<uint8_t>(((told.flags << 1) | (slow ? 1u : 0u)) & kMask);
  }
}

std::vector<NodeId> Stragglers::Slow() const {
  std::set<NodeId> slow;
  for (const auto& [group, nodes] : groups_) {
    for (const auto& [node, told] : nodes) {
      if (std::popcount(told.flags) >= kFlagged) slow.insert(node);
    }
  }
  return {slow.begin(), slow.end()};
}

}  // namespace berth
