// The best set of devices by exhaustive search over what the node reports: the oracle of
// core/devices/best_set.h.
#ifndef BERTH_TESTS_PROPERTY_NAIVE_BEST_SET_H_
#define BERTH_TESTS_PROPERTY_NAIVE_BEST_SET_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "core/devices/link_score.h"
#include "core/model/node.h"

namespace berth::testing {

using Members = std::vector<size_t>;  // positions in NodeSpec::devices, ascending

struct NaiveFloor {
  LinkScore score = 0;
  int64_t mb_per_s = 0;
};

class NaiveBestSet {
 public:
  NaiveBestSet(const NodeSpec& spec, Members candidates, NaiveFloor floor = {})
      : spec_(spec), candidates_(std::move(candidates)), floor_(floor) {}

  // Empty if no set meets the floor.
  Members Find(size_t size) {
    best_.clear();
    Members chosen;
    Extend(0, size, &chosen);
    return best_;
  }

 private:
  // Greater is better; of equal sets the first one found.
  using Rank = std::tuple<int64_t, int64_t, int64_t, int64_t>;

  DeviceLink Link(size_t a, size_t b) const {
    return LinkBetween(spec_.topology, spec_.devices.size(), a, b);
  }
  void Extend(size_t from, size_t left, Members* chosen) {
    if (left == 0) return Offer(*chosen);
    for (size_t i = from; i < candidates_.size(); ++i) {
      chosen->push_back(candidates_[i]);
      Extend(i + 1, left - 1, chosen);
      chosen->pop_back();
    }
  }
  void Offer(const Members& chosen) {
    for (size_t a : chosen) {
      for (size_t b : chosen) {
        if (a != b && ScoreOf(Link(a, b)) < floor_.score) return;
        if (a != b && MbPerS(Link(a, b)) < floor_.mb_per_s) return;
      }
    }
    const Rank rank = RankOf(chosen);
    if (!best_.empty() && rank <= best_rank_) return;
    best_ = chosen;
    best_rank_ = rank;
  }
  int64_t NicNear(size_t device) const {
    int64_t near = 0;
    for (size_t nic = 0; nic < spec_.devices.size(); ++nic) {
      if (spec_.devices[nic].kind == "nic") {
        near = std::max<int64_t>(near, ScoreOf(Link(device, nic)));
      }
    }
    return near;
  }
  Rank RankOf(const Members& chosen) const {
    int64_t worst = std::numeric_limits<int64_t>::max(), near = worst, rest = 0;
    std::set<int32_t> numa;
    for (size_t a : chosen) {
      for (size_t b : chosen) {
        if (a < b) worst = std::min<int64_t>(worst, ScoreOf(Link(a, b)));
      }
      near = std::min(near, NicNear(a));
      numa.insert(spec_.devices[a].numa_node);
    }
    const auto left = [&](size_t i) {
      return std::find(chosen.begin(), chosen.end(), i) == chosen.end();
    };
    for (size_t a : candidates_) {
      for (size_t b : candidates_) {
        if (a >= b || !left(a) || !left(b)) continue;
        rest += ScoreOf(Link(a, b));
        if (spec_.devices[a].numa_node == spec_.devices[b].numa_node) ++rest;
      }
    }
    return {worst, near, -static_cast<int64_t>(numa.size()), rest};
  }

  const NodeSpec& spec_;
  const Members candidates_;
  const NaiveFloor floor_;
  Members best_;
  Rank best_rank_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_PROPERTY_NAIVE_BEST_SET_H_
