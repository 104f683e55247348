#include "core/engine/shares/fair_share.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/check.h"

namespace berth {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int kWeightBits = 32;               // of a weight adjusted by past usage
constexpr int64_t kMaxUsageWeight = 1 << 16;  // keeps weights far from 2^60

struct Part {
  Claim* claim;
  int64_t got = 0;  // of the split amount
  absl::int128 fraction = 0;
};

// Rounds down to whole units; the remainder goes one unit each by priority, largest fraction, then
// older. A claim whose cap is not a whole number of units finally gets part of one.
void Split(int64_t amount, absl::int128 weights, std::vector<Part>& parts, size_t first,
           int64_t unit) {
  int64_t left = amount;
  for (size_t i = first; i < parts.size(); ++i) {
    const absl::int128 exact = absl::int128(amount) * parts[i].claim->weight;
    parts[i].got = static_cast<int64_t>(exact / weights / unit) * unit;
    parts[i].fraction = exact - parts[i].got * weights;
    left -= parts[i].got;
  }
  const auto begin = parts.begin() + static_cast<ptrdiff_t>(first);
  std::sort(begin, parts.end(), [](const Part& a, const Part& b) {
    if (a.claim->priority != b.claim->priority) return a.claim->priority > b.claim->priority;
    return a.fraction != b.fraction ? a.fraction > b.fraction : a.claim < b.claim;
  });
  for (size_t i = first; left > 0; i = i + 1 < parts.size() ? i + 1 : first) {
    const int64_t more = std::min({unit, left, parts[i].claim->cap - parts[i].got});
    parts[i].got += more;
    left -= more;
  }
  for (size_t i = first; i < parts.size(); ++i) parts[i].claim->got += parts[i].got;
}

}  // namespace

// Claims that can take less than their part are found in order of cap / weight: as they leave, the
// part of the others only grows.
int64_t Fill(int64_t amount, std::vector<Claim>& claims, int64_t unit) {
  std::vector<Part> parts;
  absl::int128 weights = 0, caps = 0;
  for (Claim& claim : claims) {
    if (claim.cap <= 0 || claim.weight <= 0) continue;
    parts.push_back({.claim = &claim});
    weights += claim.weight;
    caps += claim.cap;
  }
  if (parts.empty() || amount <= 0) return 0;
  if (caps <= amount) {
    for (const Part& part : parts) part.claim->got += part.claim->cap;
    return static_cast<int64_t>(caps);
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    const absl::int128 left = absl::int128(a.claim->cap) * b.claim->weight;
    const absl::int128 right = absl::int128(b.claim->cap) * a.claim->weight;
    return left != right ? left < right : a.claim < b.claim;
  });
  int64_t rest = amount;
  size_t i = 0;
  for (; i < parts.size(); ++i) {
    Claim& claim = *parts[i].claim;
    if (absl::int128(claim.cap) * weights > absl::int128(rest) * claim.weight) break;
    claim.got += claim.cap;
    rest -= claim.cap;
    weights -= claim.weight;
  }
  BERTH_CHECK(i < parts.size());  // because the caps add up to more than the amount
  Split(rest, weights, parts, i, unit);
  return amount;
}

namespace {

// The children of one parent, for one resource.
struct Division {
  struct Child {
    const Queue* queue;
    FairShares::OfQueue* share;
    Resources usage;
  };
  std::vector<Child> children;  // older first
  int64_t weights = 0;          // sum over the children
  const FairShareParameters& parameters;
  std::vector<Claim> claims;  // parallel to children
};

int64_t NotNegative(int64_t amount) { return std::max<int64_t>(amount, 0); }

// Gives each child its guarantee, and up to want(child) by what it deserves beyond that: children
// that deserve a number first, then those without bound, in equal parts.
template <class Want>
void Entitle(Division& division, ResourceKind kind, int64_t amount, Want&& want) {
  std::vector<Claim>& claims = division.claims;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Division::Child& child = division.children[i];
    const int64_t floor = std::min(child.share->guarantee[kind], child.queue->limit[kind]);
    claims[i] = {.cap = floor, .weight = floor, .priority = child.queue->spec.priority};
  }
  int64_t rest = amount - Fill(amount, claims, UnitOf(kind));
  std::vector<int64_t> floors;
  for (const Claim& claim : claims) floors.push_back(claim.cap);
  for (const bool unlimited : {false, true}) {
    for (size_t i = 0; i < claims.size(); ++i) {
      const Division::Child& child = division.children[i];
      const int64_t deserved = PromisedTo(*child.queue, kind);
      const int64_t beyond = NotNegative(deserved - floors[i]);
      const bool now = (deserved >= kMaxAmount) == unlimited;
      claims[i].weight = !now ? 0 : unlimited ? std::min<int64_t>(beyond, 1) : beyond;
      claims[i].cap = NotNegative(std::min({deserved, amount, want(child)}) - floors[i]);
    }
    rest -= Fill(rest, claims, UnitOf(kind));
  }
}

void ScaleDeserved(Division& division, ResourceKind kind, int64_t amount) {
  Entitle(division, kind, amount, [](const Division::Child&) { return kNone; });
  for (size_t i = 0; i < division.claims.size(); ++i) {
    const Queue& queue = *division.children[i].queue;
    FairShares::OfQueue& share = *division.children[i].share;
    share.deserved[kind] = division.claims[i].got;
    const int64_t promised = PromisedTo(queue, kind);
    const int64_t wanted = std::min(std::max(promised, share.guarantee[kind]), queue.limit[kind]);
    if (share.deserved[kind] < wanted && promised < kMaxAmount) share.deserved_scaled = true;
    const bool says = queue.deserved_bound[kind] != kNone;
    share.divisible[kind] = says ? share.deserved[kind] : std::min(queue.limit[kind], amount);
  }
}

int64_t WeightOf(const Division& division, const Division::Child& child, ResourceKind kind,
                 int64_t amount) {
  const int64_t weight = child.queue->spec.weight;
  const FairShareParameters& past = division.parameters;
  if (past.half_life <= absl::ZeroDuration() || weight == 0 || amount <= 0) return weight;
  const absl::int128 deserves = (absl::int128(weight) << kWeightBits) / division.weights;
  const absl::int128 used =
      (absl::int128(child.usage[kind]) << kWeightBits) / (absl::int128(amount) * kUsageScale);
  const int64_t strength = std::clamp<int64_t>(past.usage_weight, 0, kMaxUsageWeight);
  const absl::int128 shrunk = deserves + strength * (deserves - used);
  return shrunk < 1 ? 1 : static_cast<int64_t>(shrunk);
}

int64_t WantedOf(const Division::Child& child, ResourceKind kind) {
  return std::min(NotNegative(child.share->demand[kind]), child.queue->limit[kind]);
}

// Step 2. `rest` of `amount` remains; claims hold what step 1 gave.
void ShareSurplus(Division& division, ResourceKind kind, int64_t amount, int64_t rest) {
  std::map<int32_t, std::vector<size_t>> bands;  // by priority, lowest first
  for (size_t i = 0; i < division.children.size(); ++i) {
    const Division::Child& child = division.children[i];
    if (child.queue->spec.weight == 0) continue;
    if (WantedOf(child, kind) <= division.claims[i].got) continue;
    bands[child.queue->spec.priority].push_back(i);
  }
  for (auto band = bands.rbegin(); band != bands.rend() && rest > 0; ++band) {
    std::vector<Claim> claims;
    for (size_t i : band->second) {
      const Division::Child& child = division.children[i];
      claims.push_back({.cap = WantedOf(child, kind) - division.claims[i].got,
                        .weight = WeightOf(division, child, kind, amount)});
    }
    rest -= Fill(rest, claims, UnitOf(kind));
    for (size_t i = 0; i < claims.size(); ++i) {
      division.claims[band->second[i]].got += claims[i].got;
    }
  }
}

void DivideKind(Division& division, ResourceKind kind, int64_t amount) {
  Entitle(division, kind, amount,
          [kind](const Division::Child& child) { return WantedOf(child, kind); });
  int64_t rest = amount;
  for (const Claim& claim : division.claims) rest -= claim.got;
  if (rest > 0) ShareSurplus(division, kind, amount, rest);
  for (size_t i = 0; i < division.claims.size(); ++i) {
    division.children[i].share->fair_share[kind] = division.claims[i].got;
  }
}

Resources UsageOf(const Interner& interner, const Queue& queue) {
  Resources usage;
  for (const NamedAmount& one : queue.usage) {
    const auto kind = interner.FindKind(one.name);
    if (kind.has_value()) usage[*kind] = one.amount;
  }
  return usage;
}

}  // namespace

// Adds the queue and its ancestors, because their demand includes its own.
void FairShares::Include(const ClusterState& state, QueueId id, Work& work) const {
  Depth depth = 0;
  for (QueueId at = id; at != kRootQueue; at = state.queues().At(at).spec.parent) ++depth;
  for (QueueId at = id; work.insert({depth, at}).second && at != kRootQueue; --depth) {
    at = state.queues().At(at).spec.parent;
  }
}

// Sums that come from below. Children first.
void FairShares::Collect(const ClusterState& state, const Queue& queue) {
  if (queues_.Find(queue.id) == nullptr) queues_.Insert(queue.id, OfQueue{});
  OfQueue& share = queues_.At(queue.id);
  Resources below;
  share.demand = Resources{};
  if (queue.children.empty()) {  // only leaves have jobs
    share.demand = queue.allocated;
    if (state.Open(queue.id)) share.demand += queue.wanted;
  }
  for (QueueId child : queue.children) {
    below += queues_.At(child).guarantee;
    share.demand += queues_.At(child).demand;
  }
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    share.guarantee.amount[i] = std::max(queue.guarantee.amount[i], below.amount[i]);
  }
  if (queue.id != kRootQueue) return;
  share.fair_share = share.divisible = share.deserved = state.capacity();
}

void FairShares::Divide(const ClusterState& state, const Queue& parent, Depth depth, Work& work) {
  ++divisions_;
  Division division{.children = {}, .weights = 0, .parameters = parameters_, .claims = {}};
  std::vector<OfQueue> before;
  for (QueueId id : parent.children) {
    const Queue& queue = state.queues().At(id);
    OfQueue& share = queues_.At(id);
    before.push_back(share);
    share.deserved_scaled = false;
    division.weights += queue.spec.weight;
    division.children.push_back({&queue, &share, UsageOf(state.interner(), queue)});
  }
  division.claims.resize(division.children.size());
  const OfQueue& own = queues_.At(parent.id);
  for (size_t i = 0; i < state.interner().kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    ScaleDeserved(division, kind, own.divisible[kind]);
    DivideKind(division, kind, own.fair_share[kind]);
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const Queue& queue = *division.children[i].queue;
    const OfQueue& share = *division.children[i].share;
    const bool same =
        share.fair_share == before[i].fair_share && share.divisible == before[i].divisible;
    if (!same && !queue.children.empty()) work.insert({depth + 1, queue.id});
  }
}

void FairShares::Refresh(const ClusterState& state, const std::vector<QueueId>& changed,
                         const FairShareParameters& parameters) {
  Work work;
  const bool anew = !built_ || parameters.half_life != parameters_.half_life ||
                    parameters.usage_weight != parameters_.usage_weight;
  parameters_ = parameters;
  built_ = true;
  if (anew) {
    queues_ = {};
    state.queues().ForEach([&](QueueId id, const Queue&) { Include(state, id, work); });
  }
  for (QueueId id : changed) {
    if (state.queues().Find(id) != nullptr) {
      Include(state, id, work);
    } else if (queues_.Find(id) != nullptr) {
      queues_.Erase(id);
    }
  }
  if (!anew && !(At(kRootQueue).fair_share == state.capacity())) Include(state, kRootQueue, work);
  for (auto it = work.rbegin(); it != work.rend(); ++it) {
    Collect(state, state.queues().At(it->second));
  }
  for (auto it = work.begin(); it != work.end(); ++it) {
    const Queue& queue = state.queues().At(it->second);
    if (!queue.children.empty()) Divide(state, queue, it->first, work);
  }
}

int Compare(const Share& a, const Share& b) {
  const absl::int128 left = absl::int128(a.part) * b.whole;
  const absl::int128 right = absl::int128(b.part) * a.whole;
  return left < right ? -1 : (left > right ? 1 : 0);
}

Share DominantShare(const Resources& used, const Resources& of, size_t kinds) {
  Share largest;
  for (size_t i = 0; i < kinds; ++i) {
    if (used.amount[i] <= 0) continue;
    if (of.amount[i] <= 0) return {.part = 1, .whole = 0};
    const Share share{.part = used.amount[i], .whole = of.amount[i]};
    if (Compare(share, largest) > 0) largest = share;
  }
  return largest;
}

int64_t PromisedTo(const Queue& queue, ResourceKind kind) {
  return std::min(queue.deserved[kind], queue.limit[kind]);
}

Resources Entitlement(const Queue& queue, const FairShares::OfQueue& share) {
  Resources entitled;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    entitled.amount[i] = std::min(std::max(share.deserved.amount[i], share.fair_share.amount[i]),
                                  queue.limit.amount[i]);
  }
  return entitled;
}

std::vector<QueueShares> QueueSharesOf(const ClusterState& state, const FairShares& shares) {
  std::vector<QueueShares> all;
  std::map<QueueId, Resources> borrowed_below;  // by parent: borrowed by its children
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    QueueShares one{id, shares.At(id), queue.allocated, {}, {}};
    for (size_t i = 0; i < kMaxResourceKinds && id != kRootQueue; ++i) {
      one.borrowed.amount[i] =
          NotNegative(queue.allocated.amount[i] - one.share.deserved.amount[i]);
    }
    borrowed_below[queue.spec.parent] += one.borrowed;
    all.push_back(one);
  });
  for (QueueShares& one : all) {
    if (one.queue == kRootQueue) continue;
    const Resources& borrowed = borrowed_below.at(state.queues().At(one.queue).spec.parent);
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      const int64_t kept = std::max(one.allocated.amount[i], one.share.guarantee.amount[i]);
      const int64_t idle = NotNegative(one.share.deserved.amount[i] - kept);
      one.lent.amount[i] = std::min(idle, borrowed.amount[i]);
    }
  }
  return all;
}

FairShares FairSharesOf(const ClusterState& state, const FairShareParameters& parameters) {
  FairShares shares;
  shares.Refresh(state, {}, parameters);
  return shares;
}

}  // namespace berth
