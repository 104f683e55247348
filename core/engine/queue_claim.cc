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
