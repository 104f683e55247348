#include "core/engine/service_order.h"

#include <utility>

namespace berth {
namespace {

// In what the job asks for.
bool Over(const Resources& request, const Resources& allocated, const Resources& share) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0 && allocated.amount[i] > share.amount[i]) return true;
  }
  return false;
}

bool SameTurn(const ClassKey& a, const ClassKey& b) {
  return a.priority == b.priority && a.deadline == b.deadline;
}

// Blocked as long as the nodes are what they are: it keeps nobody waiting, strict queue or not.
bool Never(const PendingClass& c) {
  return c.blocked != nullptr && c.blocked->wake == WakeOn::kChange;
}

bool Strict(const Queue& queue) { return queue.spec.order == QueueOrder::kFifoStrict; }

}  // namespace

bool ServiceOrder::Rank::operator<(const Rank& other) const {
  if (over != other.over) return !over;
  if (beyond_deserved != other.beyond_deserved) return !beyond_deserved;
  if (priority != other.priority) return priority > other.priority;
  if (const int order = Compare(with_job, other.with_job); order != 0) return order < 0;
  if (const int order = Compare(without_job, other.without_job); order != 0) return order < 0;
  return queue < other.queue;
}

ServiceOrder::ServiceOrder(Cycle& cycle, Offer offer)
    : state_(cycle.state()), shares_(cycle.shares()), offer_(offer) {
  for (const auto& order : cycle.policies().job_orders()) {
    JobCompare compare = order->Prepare(state_, cycle.now());
    if (compare == nullptr) break;  // the leaf's own order is total
    orders_.push_back(std::move(compare));
  }
  for (const auto& [queue, classes] : state_.pending().ready()) Touch(queue);
  if (offer_ == Offer::kReady) return;
  for (const auto& [queue, classes] : state_.pending().short_of_room()) Touch(queue);
}

std::optional<ServiceOrder::Head> ServiceOrder::Next() {
  for (QueueId leaf : std::exchange(touched_, {})) Place(leaf);
  const Entry& root = entries_[kRootQueue];
  if (root.head.has_value()) Touch(root.head->queue);
  return root.head;
}

void ServiceOrder::Skip(const Head& head) {
  skipped_.insert(head.id);
  Touch(head.queue);
}

// Works out the leaf's head, then on the way up its rank among its siblings and the parent's head.
void ServiceOrder::Place(QueueId leaf) {
  entries_[leaf].head = LeafHead(state_.queues().At(leaf));
  for (QueueId id = leaf; id != kRootQueue;) {
    const Queue& queue = state_.queues().At(id);
    Entry& entry = entries_[id];
    Entry& parent = entries_[queue.spec.parent];
    if (entry.ranked) parent.children.erase(entry.rank);
    entry.ranked = entry.head.has_value();
    if (entry.ranked) {
      entry.rank = RankOf(queue, *entry.head);
      parent.children.insert(entry.rank);
    }
    parent.head = std::nullopt;
    if (!parent.children.empty()) parent.head = entries_[parent.children.begin()->queue].head;
    id = queue.spec.parent;
  }
}

std::optional<ServiceOrder::Head> ServiceOrder::LeafHead(const Queue& queue) const {
  const PendingIndex& pending = state_.pending();
  std::optional<Head> best = BestOf(queue, pending.ready(), /*gangs_only=*/false);
  bool ready = true;
  const auto consider = [&](const PendingIndex::ByQueue& blocked, bool short_of_room) {
    std::optional<Head> other = BestOf(queue, blocked, /*gangs_only=*/true);
    if (!other.has_value() || (best.has_value() && Before(queue, *best, *other))) return;
    best = other;
    best->short_of_room = short_of_room;
    ready = false;
  };
  const bool offers_short = offer_ == Offer::kReadyAndShort;
  if (Strict(queue) || offers_short) consider(pending.short_of_room(), true);
  if (Strict(queue)) consider(pending.held_back(), false);
  if (!best.has_value() || skipped_.contains(best->id)) return std::nullopt;
  if (!ready && !(best->short_of_room && offers_short)) return std::nullopt;
  return best;
}

// Without configured orders, of each user's classes the first one stands for the others, and only
// those of the first priority and deadline matter. So it costs O(users log classes).
std::optional<ServiceOrder::Head> ServiceOrder::BestOf(const Queue& queue,
                                                       const PendingIndex::ByQueue& list,
                                                       bool gangs_only) const {
  const auto found = list.find(queue.id);
  if (found == list.end()) return std::nullopt;
  const PendingIndex::Classes& classes = found->second;
  const bool by_user = queue.spec.user_fairness == UserFairness::kDrf;
  std::optional<Head> best;
  for (auto it = classes.begin(); it != classes.end();) {
    const ClassKey& key = it->first;
    const bool passed_over = skipped_.contains(it->second) && !(Strict(queue) && !key.growth);
    if (passed_over || (gangs_only && (key.growth || Never(state_.pending().Class(it->second))))) {
      ++it;
      continue;
    }
    const Head head{.id = it->second, .job = key.job, .queue = queue.id};
    if (!best.has_value() || Before(queue, head, *best)) best = head;
    if (!orders_.empty()) {
      ++it;
    } else if (by_user) {
      ClassKey last_of_user = key;
      last_of_user.growth = true;
      last_of_user.job = JobId{UINT64_MAX};
      it = classes.upper_bound(last_of_user);
      if (it != classes.end() && !SameTurn(it->first, key)) break;
    } else {
      break;
    }
  }
  return best;
}

bool ServiceOrder::Before(const Queue& queue, const Head& a, const Head& b) const {
  const Job& job = state_.jobs().At(a.job);
  const Job& other = state_.jobs().At(b.job);
  for (const JobCompare& compare : orders_) {
    if (const int order = compare(job, other); order != 0) return order < 0;
  }
  ClassKey key = ClassKeyOf(state_.pending().Class(a.id).demand, KeyOf(job));
  ClassKey other_key = ClassKeyOf(state_.pending().Class(b.id).demand, KeyOf(other));
  if (SameTurn(key, other_key) && key.user != other_key.user) {
    const int order = Compare(UserShare(queue, job.user), UserShare(queue, other.user));
    if (order != 0) return order < 0;
    key.user = other_key.user = {};
  }
  return key < other_key;
}

Share ServiceOrder::UserShare(const Queue& queue, const std::string& user) const {
  const auto found = queue.user_allocated.find(user);
  if (found == queue.user_allocated.end()) return {};
  return DominantShare(found->second, Entitlement(queue, shares_.At(queue.id)));
}

ServiceOrder::Rank ServiceOrder::RankOf(const Queue& queue, const Head& head) const {
  const Resources request = RequestOf(head);
  const Resources with_job = queue.allocated + request;
  const FairShares::OfQueue& share = shares_.At(queue.id);
  const Resources entitled = Entitlement(queue, share);
  return {.over = Over(request, queue.allocated, share.fair_share),
          .beyond_deserved = Over(request, with_job, share.deserved),
          .priority = queue.spec.priority,
          .with_job = DominantShare(with_job, entitled),
          .without_job = DominantShare(queue.allocated, entitled),
          .queue = queue.id};
}

// A gang as a whole; of growth one task.
Resources ServiceOrder::RequestOf(const Head& head) const {
  const Demand& demand = state_.pending().Class(head.id).demand;
  Resources request;
  for (const DemandItem& item : demand.items) {
    const Resources& each = state_.interner().Shape(item.shape).resources;
    if (!demand.gang) return each;
    request += each.Times(item.count);
  }
  return request;
}

}  // namespace berth
