#include "core/engine/queue_claim.h"

#include <algorithm>
#include <limits>

namespace berth {
namespace {

// How much less than its fair share the queue holds.
int64_t Missing(const FairShares::OfQueue& share, const Resources& held, size_t kind) {
  return std::max<int64_t>(share.fair_share.amount[kind] - held.amount[kind], 0);
}

}  // namespace

const Resources& SpareRoom::Get() {
  if (room_.has_value()) return *room_;
  room_ = state_.free().total();
  state_.queues().ForEach([this](QueueId id, const Queue& queue) {
    if (!queue.children.empty()) return;
    const Resources held = HeldOnceReleased(queue);
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      room_->amount[i] -= Missing(shares_.At(id), held, i);
    }
  });
  return *room_;
}

// 2.
bool StandingClaims::AlongsideDeserved(const Queue& leaf, size_t kind) const {
  if (NamedInDeserved(leaf, kind)) return false;
  const Resources entitled = Entitlement(leaf, shares_.At(leaf.id));
  bool any = false;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (!NamedInDeserved(leaf, i)) continue;
    any |= leaf.claimed.amount[i] > 0;
    if (leaf.claimed.amount[i] > entitled.amount[i]) return false;
  }
  return any;
}

bool StandingClaims::Stand(const Queue& leaf, size_t kind) {
  if (leaf.claimed.amount[kind] <= shares_.At(leaf.id).fair_share.amount[kind]) return true;
  if (AlongsideDeserved(leaf, kind)) return true;
  if (!spoken_for_.has_value()) {
    spoken_for_.emplace();
    state_.queues().ForEach([this](QueueId id, const Queue& queue) {
      if (!queue.children.empty()) return;
      const Resources& share = shares_.At(id).fair_share;
      for (size_t i = 0; i < kMaxResourceKinds; ++i) {
        const bool beyond =
            queue.claimed.amount[i] > share.amount[i] && !AlongsideDeserved(queue, i);
        spoken_for_->amount[i] += beyond ? queue.claimed.amount[i] : share.amount[i];
      }
    });
  }
  return spoken_for_->amount[kind] <= state_.capacity().amount[kind];
}

bool NamedInDeserved(const Queue& queue, size_t kind) {
  return queue.deserved_bound.amount[kind] != std::numeric_limits<int64_t>::max();
}

bool WithinDeserved(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                    const Resources& request) {
  bool any = false;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (!NamedInDeserved(queue, i)) continue;
    if (request.amount[i] > 0) any = true;
    if (held.amount[i] + request.amount[i] > share.deserved.amount[i]) return false;
  }
  return any;
}

QueueClaim ClaimOf(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                   const Resources& request, SpareRoom& spare) {
  const bool deserved = WithinDeserved(queue, share, held, request);
  QueueClaim claim;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] <= 0) continue;
    const bool within = held.amount[i] + request.amount[i] <= share.fair_share.amount[i];
    if (within || (deserved && !NamedInDeserved(queue, i))) {
      claim.claimed.set(i);
    } else if (request.amount[i] <= spare.Get().amount[i] + Missing(share, held, i)) {
      claim.borrowed.set(i);
    } else {
      claim.refused.set(i);
    }
  }
  return claim;
}

}  // namespace berth
