#include "core/engine/shares/queue_bounds.h"

#include <algorithm>

#include "core/engine/shares/fair_share.h"
#include "core/engine/shares/queue_claim.h"

namespace berth {
namespace {

bool AskedFitsIn(const Resources& request, const Resources& room) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0 && request.amount[i] > room.amount[i]) return false;
  }
  return true;
}

}  // namespace

QueueBounds LimitsAbove(const ClusterState& state, QueueId leaf) {
  QueueBounds bounds;
  for (QueueId id = leaf;; id = state.queues().At(id).spec.parent) {
    bounds.push_back({.queue = id, .most = state.queues().At(id).limit});
    if (id == kRootQueue) return bounds;
  }
}

QueueBounds BoundsAbove(Cycle& cycle, QueueId leaf, const Resources& request, Borrowing borrowing) {
  const ClusterState& state = cycle.state();
  QueueBounds bounds = LimitsAbove(state, leaf);
  if (borrowing == Borrowing::kAnything) return bounds;
  SpareRoom spare(state, cycle.shares());
  for (QueueBound& bound : bounds) {
    if (bound.queue == kRootQueue) break;
    const Queue& queue = state.queues().At(bound.queue);
    const FairShares::OfQueue& share = cycle.shares().At(bound.queue);
    const Resources held = HeldAfterRelease(queue);
    QueueClaim claim;
    if (borrowing == Borrowing::kIdle) claim = ClaimOf(queue, share, held, request, spare);
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      const bool beyond = held.amount[i] + request.amount[i] > share.fair_share.amount[i];
      const bool exempt = beyond && (claim.claimed[i] || claim.borrowed[i]);
      if (exempt) continue;
      const int64_t most = std::max(share.fair_share.amount[i], held.amount[i]);
      bound.most.amount[i] = std::min(bound.most.amount[i], most);
    }
  }
  return bounds;
}

QueueRoom::QueueRoom(const ClusterState& state, const QueueBounds& bounds) : state_(state) {
  for (const auto& [queue, most] : bounds) {
    rooms_.emplace_back(queue, most - HeldAfterRelease(state.queues().At(queue)));
  }
}

bool QueueRoom::Covers(QueueId above, QueueId leaf) const {
  for (QueueId id = leaf; id != above; id = state_.queues().At(id).spec.parent) {
    if (id == kRootQueue) return false;
  }
  return true;
}

bool QueueRoom::Fits(QueueId leaf, const Resources& request) const {
  return std::all_of(rooms_.begin(), rooms_.end(), [&](const auto& room) {
    return !Covers(room.first, leaf) || AskedFitsIn(request, room.second);
  });
}

void QueueRoom::Take(QueueId leaf, const Resources& request) {
  for (auto& [queue, room] : rooms_) {
    if (Covers(queue, leaf)) room -= request;
  }
}

void QueueRoom::Give(QueueId leaf, const Resources& request) {
  for (auto& [queue, room] : rooms_) {
    if (Covers(queue, leaf)) room += request;
  }
}

}  // namespace berth
