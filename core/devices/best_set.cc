#include "core/devices/best_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace berth {
namespace {

constexpr KindMask Bit(size_t device) { return KindMask{1} << device; }

template <class Visit>
void ForEachDevice(KindMask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<size_t>(std::countr_zero(mask)));
}

// Compares sets with equal worst links. The lowest indexes need no field: such sets are found
// first.
struct Rank {
  LinkScore nic_near = std::numeric_limits<LinkScore>::max();
  int numa_nodes = 0;
  int64_t broken = 0;  // loss of the rest: sum of scores between the set and all candidates
  int preferred = 0;
};

bool Better(const Rank& a, const Rank& b) {
  if (a.nic_near != b.nic_near) return a.nic_near > b.nic_near;
  if (a.numa_nodes != b.numa_nodes) return a.numa_nodes < b.numa_nodes;
  if (a.broken != b.broken) return a.broken < b.broken;
  return a.preferred > b.preferred;
}

class Search {
 public:
  Search(const KindLayout& layout, const SetQuery& query)
      : layout_(layout),
        query_(query),
        nic_near_(query.nic_near.empty() ? absl::MakeConstSpan(layout.nic_near) : query.nic_near) {
    ForEachDevice(query.candidates, [&](size_t device) {
      earlier_twins_[device] = TwinsOf(device);
      ForEachDevice(query.candidates, [&](size_t other) {
        if (device != other) degree_[device] += Worth(device, other);
      });
    });
  }

  KindMask Find();

 private:
  // A partial choice, and what may still be added to it.
  struct Partial {
    KindMask chosen = 0;
    KindMask open = 0;
    int left = 0;
    uint64_t numa = 0;
    Rank rank = {};
  };

  // Contribution of a pair in the rest.
  int64_t Worth(size_t a, size_t b) const {
    return layout_.Score(a, b) + (layout_.numa[a] == layout_.numa[b] ? 1 : 0);
  }
  // Equal devices that are also as near to the free NICs and equally preferred.
  KindMask TwinsOf(size_t device) const;
  std::array<LinkScore, kMaxLaidOut> Scores(size_t* count) const;
  void Connect(LinkScore least);
  bool Exhausted() const { return steps_ > (found_ != 0 ? kMaxSteps : kMostSteps); }
  void FindAmong(LinkScore least);  // the sets without a worse link
  void Extend(const Partial& partial);
  bool MayBeat(const Rank& rank) const;
  KindMask WellConnected() const;
  Partial With(const Partial& partial, size_t device) const;

  const KindLayout& layout_;
  const SetQuery& query_;
  const absl::Span<const LinkScore> nic_near_;
  std::array<KindMask, kMaxLaidOut> earlier_twins_{};
  std::array<int64_t, kMaxLaidOut> degree_{};
  std::array<KindMask, kMaxLaidOut> connected_{};  // by sufficiently good links
  KindMask found_ = 0;
  Rank best_;
  int64_t steps_ = 0;
};

KindMask Search::TwinsOf(size_t device) const {
  const KindMask twins = layout_.earlier_twins[device] & query_.candidates;
  if (query_.nic_near.empty() && query_.preferred == 0) return twins;
  KindMask alike = 0;
  ForEachDevice(twins, [&](size_t twin) {
    const bool preferred = (query_.preferred & Bit(twin)) != 0;
    const bool same = nic_near_[twin] == nic_near_[device] &&
                      preferred == ((query_.preferred & Bit(device)) != 0);
    if (same) alike |= Bit(twin);
  });
  return alike;
}

void Search::Connect(LinkScore least) {
  ForEachDevice(query_.candidates, [&](size_t a) {
    connected_[a] = 0;
    ForEachDevice(query_.candidates, [&](size_t b) {
      const bool enough =
          layout_.Score(a, b) >= least && layout_.MbPerS(a, b) >= query_.floor.mb_per_s;
      if (a != b && enough) connected_[a] |= Bit(b);
    });
  });
}

Search::Partial Search::With(const Partial& partial, size_t device) const {
  Partial next{.chosen = partial.chosen | Bit(device),
               .open = partial.open & connected_[device],
               .left = partial.left - 1,
               .numa = partial.numa | Bit(layout_.numa[device]),
               .rank = partial.rank};
  next.rank.nic_near = std::min(next.rank.nic_near, nic_near_[device]);
  next.rank.numa_nodes = std::popcount(next.numa);
  next.rank.broken += degree_[device];
  ForEachDevice(partial.chosen, [&](size_t chosen) { next.rank.broken -= Worth(device, chosen); });
  next.rank.preferred += (query_.preferred & Bit(device)) != 0 ? 1 : 0;
  return next;
}

// Adding devices moves a set farther from NICs, spreads it over more NUMA nodes, and breaks more.
bool Search::MayBeat(const Rank& rank) const {
  Rank bound = rank;
  bound.preferred = query_.preferred == 0 ? 0 : query_.size;
  return Better(bound, best_);
}

// Devices that may be in a set: those with enough good links to other such devices. Of twins both
// are, or neither.
KindMask Search::WellConnected() const {
  KindMask core = query_.candidates;
  for (KindMask before = 0; before != core;) {
    before = core;
    ForEachDevice(before, [&](size_t device) {
      if (std::popcount(connected_[device] & core) < query_.size - 1) core &= ~Bit(device);
    });
  }
  return core;
}

// In order of index, so that among equal sets the one with the lowest indexes is found first.
void Search::Extend(const Partial& partial) {
  if (partial.left == 0) {
    if (found_ != 0 && !Better(partial.rank, best_)) return;
    found_ = partial.chosen;
    best_ = partial.rank;
    return;
  }
  KindMask open = partial.open;
  while (std::popcount(open) >= partial.left && !Exhausted()) {
    const auto device = static_cast<size_t>(std::countr_zero(open));
    open &= open - 1;
    if ((earlier_twins_[device] & ~partial.chosen) != 0) continue;
    ++steps_;
    Partial next = With(partial, device);
    next.open &= open;
    if (found_ == 0 || MayBeat(next.rank)) Extend(next);
  }
}

// The distinct scores between candidates that are not below the floor, best first.
std::array<LinkScore, kMaxLaidOut> Search::Scores(size_t* count) const {
  std::array<LinkScore, kMaxLaidOut> scores{};
  *count = 0;
  const auto add = [&](LinkScore score) {
    LinkScore* const end = scores.data() + *count;
    LinkScore* const at = std::lower_bound(scores.data(), end, score, std::greater<>());
    if ((at != end && *at == score) || score < query_.floor.score) return;
    if (*count == scores.size()) return;  // so many distinct scores: the first ones suffice
    std::copy_backward(at, end, end + 1);
    *at = score;
    ++*count;
  };
  ForEachDevice(query_.candidates, [&](size_t a) {
    ForEachDevice(query_.candidates & (Bit(a) - 1), [&](size_t b) { add(layout_.Score(a, b)); });
  });
  return scores;
}

void Search::FindAmong(LinkScore least) {
  steps_ = 0;
  Connect(least);
  Extend({.open = WellConnected(), .left = query_.size});
}

KindMask Search::Find() {
  if (query_.size == 1) {
    Extend({.open = query_.candidates, .left = 1});
    return found_;
  }
  size_t count = 0;
  const auto scores = Scores(&count);
  for (size_t i = 0; i < count && found_ == 0; ++i) FindAmong(scores[i]);
  if (found_ == 0) FindAmong(query_.floor.score);  // there were too many scores, or steps
  return found_;
}

}  // namespace

LinkFloor FloorOf(const DeviceRequest& request) {
  if (!request.AsksForLinks()) return {};
  constexpr int64_t kMbPerGb = 125;  // megabytes in a gigabit
  return {.score = LeastScore(request.min_link),
          .mb_per_s = std::min(request.min_bandwidth_gbps, kMostMbPerS) * kMbPerGb};
}

bool MeetsFloor(const KindLayout& layout, KindMask set, const LinkFloor& floor) {
  bool meets = true;
  ForEachDevice(set, [&](size_t a) {
    ForEachDevice(set & (Bit(a) - 1), [&](size_t b) {
      meets = meets && layout.Score(a, b) >= floor.score && layout.MbPerS(a, b) >= floor.mb_per_s;
    });
  });
  return meets;
}

KindMask SearchBestSet(const KindLayout& layout, const SetQuery& query) {
  if (std::popcount(query.candidates) < query.size) return 0;
  return Search(layout, query).Find();
}

KindMask BestSet(const KindLayout& layout, const SetQuery& query) {
  const int candidates = std::popcount(query.candidates);
  if (candidates < query.size) return 0;
  if (candidates == query.size) {
    return !query.floor.any() || MeetsFloor(layout, query.candidates, query.floor)
               ? query.candidates
               : 0;
  }
  const bool tabled = !layout.best.empty() && query.nic_near.empty() && query.preferred == 0;
  if (!tabled) return SearchBestSet(layout, query);
  const auto size = static_cast<size_t>(query.size - 1);
  const KindMask set = layout.best[size << layout.count | query.candidates];
  if (!query.floor.any() || MeetsFloor(layout, set, query.floor)) return set;
  // This set has the best worst link: if its class is too bad, so are all others. Another set may
  // have the missing bandwidth.
  return query.floor.mb_per_s == 0 ? 0 : SearchBestSet(layout, query);
}

int64_t CountSets(const KindLayout& layout, SetQuery query, int64_t bound) {
  int64_t sets = 0;
  for (; sets < bound; ++sets) {
    const KindMask set = BestSet(layout, query);
    if (set == 0) break;
    query.candidates &= ~set;
  }
  return sets;
}

namespace {

// Rings through a set that start at its lowest device: the best worst link, then the greatest sum.
class RingSearch {
 public:
  RingSearch(const KindLayout& layout, KindMask set) : layout_(layout) {
    ring_.push_back(static_cast<size_t>(std::countr_zero(set)));
    Extend(set & (set - 1), std::numeric_limits<LinkScore>::max(), 0);
  }
  std::vector<size_t> Take() { return std::move(best_); }

 private:
  void Extend(KindMask left, LinkScore worst, int64_t sum) {
    if (!best_.empty() && worst < best_worst_) return;
    if (left == 0) return Close(worst, sum);
    ForEachDevice(left, [&](size_t next) {
      const LinkScore score = layout_.Score(ring_.back(), next);
      ring_.push_back(next);
      Extend(left & ~Bit(next), std::min(worst, score), sum + score);
      ring_.pop_back();
    });
  }
  void Close(LinkScore worst, int64_t sum) {
    const LinkScore score = layout_.Score(ring_.back(), ring_.front());
    worst = std::min(worst, score);
    sum += score;
    const bool better =
        best_.empty() || worst > best_worst_ || (worst == best_worst_ && sum > best_sum_);
    if (!better) return;
    best_ = ring_;
    best_worst_ = worst;
    best_sum_ = sum;
  }

  const KindLayout& layout_;
  std::vector<size_t> ring_, best_;
  LinkScore best_worst_ = 0;
  int64_t best_sum_ = 0;
};

// True if all pairs have equal scores: any order will do.
bool IsUniform(const KindLayout& layout, KindMask set) {
  std::optional<LinkScore> one;
  bool uniform = true;
  ForEachDevice(set, [&](size_t a) {
    ForEachDevice(set & (Bit(a) - 1), [&](size_t b) {
      if (!one.has_value()) one = layout.Score(a, b);
      uniform = uniform && layout.Score(a, b) == *one;
    });
  });
  return uniform;
}

std::vector<size_t> NearestNext(const KindLayout& layout, KindMask set) {
  std::vector<size_t> ring;
  while (set != 0) {
    auto next = static_cast<size_t>(std::countr_zero(set));
    if (!ring.empty()) {
      const size_t last = ring.back();
      ForEachDevice(set, [&](size_t device) {
        if (layout.Score(last, device) > layout.Score(last, next)) next = device;
      });
    }
    ring.push_back(next);
    set &= ~Bit(next);
  }
  return ring;
}

}  // namespace

std::vector<size_t> RingOrder(const KindLayout& layout, KindMask set) {
  constexpr int kMaxSearched = 8;
  const int count = std::popcount(set);
  if (count > 2 && count <= kMaxSearched && !IsUniform(layout, set)) {
    return RingSearch(layout, set).Take();
  }
  if (count > kMaxSearched && !IsUniform(layout, set)) return NearestNext(layout, set);
  std::vector<size_t> order;
  ForEachDevice(set, [&](size_t device) { order.push_back(device); });
  return order;
}

KindMask NearestNics(const KindLayout& layout, KindMask devices, KindMask candidates, int32_t count,
                     KindMask preferred) {
  if (std::popcount(candidates) <= count)
    return std::popcount(candidates) == count ? candidates : 0;
  KindMask chosen = 0;
  const auto score = [&](size_t device, size_t nic) {
    return layout.nic_scores[device * layout.nics + nic];
  };
  // In each round every device gets one NIC: always the nearest remaining pair.
  while (std::popcount(chosen) < count) {
    KindMask without = devices;
    while (without != 0 && std::popcount(chosen) < count) {
      std::optional<size_t> device, nic;
      bool best_preferred = false;
      ForEachDevice(without, [&](size_t d) {
        ForEachDevice(candidates & ~chosen, [&](size_t c) {
          const bool is_preferred = (preferred & Bit(c)) != 0;
          const bool better = !nic.has_value() || score(d, c) > score(*device, *nic) ||
                              (score(d, c) == score(*device, *nic) && d == *device &&
                               is_preferred && !best_preferred);
          if (!better) return;
          device = d;
          nic = c;
          best_preferred = is_preferred;
        });
      });
      chosen |= Bit(*nic);
      without &= ~Bit(*device);
    }
  }
  return chosen;
}

std::vector<LinkScore> NicNear(const KindLayout& layout, KindMask candidates, int32_t devices,
                               int32_t count) {
  const auto share = static_cast<size_t>((count + devices - 1) / devices);
  std::vector<LinkScore> near(layout.count, 0), scores;
  for (size_t device = 0; device < layout.count; ++device) {
    scores.clear();
    ForEachDevice(candidates, [&](size_t nic) {
      scores.push_back(layout.nic_scores[device * layout.nics + nic]);
    });
    if (scores.size() < share) continue;
    std::nth_element(scores.begin(), scores.begin() + static_cast<ptrdiff_t>(share - 1),
                     scores.end(), std::greater<>());
    near[device] = scores[share - 1];
  }
  return near;
}

}  // namespace berth
