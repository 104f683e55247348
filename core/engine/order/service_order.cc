#include "core/engine/order/service_order.h"

#include <algorithm>
#include <utility>

#include "core/engine/place/reserve.h"

namespace berth {
namespace {

// For the resources that the job requests.
bool Over(const Resources& request, const Resources& allocated, const Resources& share,
          size_t kinds) {
  for (size_t i = 0; i < kinds; ++i) {
    if (request.amount[i] > 0 && allocated.amount[i] > share.amount[i]) return true;
  }
  return false;
}

// 0: below the share in all that the job requests; 1: at it in something; 2: over it in something.
int ShareStanding(const Resources& request, const Resources& allocated, const Resources& share,
                  size_t kinds) {
  int standing = 0;
  for (size_t i = 0; i < kinds; ++i) {
    if (request.amount[i] <= 0 || allocated.amount[i] < share.amount[i]) continue;
    if (allocated.amount[i] > share.amount[i]) return 2;
    standing = 1;
  }
  return standing;
}

bool SameTurn(const ClassKey& a, const ClassKey& b) {
  return a.priority == b.priority && a.deadline == b.deadline;
}

// Blocked until the nodes change: it blocks no other job, even in a strict queue.
bool Never(const PendingClass& c) {
  return c.blocked != nullptr && c.blocked->wake == WakeOn::kChange;
}

bool Strict(const Queue& queue) { return queue.spec.order == QueueOrder::kFifoStrict; }

}  // namespace

bool ServiceOrder::Rank::operator<(const Rank& other) const {
  if (share != other.share) return share < other.share;
  if (beyond_deserved != other.beyond_deserved) return !beyond_deserved;
  if (priority != other.priority) return priority > other.priority;
  if (const int order = Compare(with_job, other.with_job); order != 0) return order < 0;
  if (const int order = Compare(without_job, other.without_job); order != 0) return order < 0;
  return queue < other.queue;
}

ServiceOrder::ServiceOrder(Cycle& cycle, Offer offer, bool around)
    : cycle_(cycle),
      state_(cycle.state()),
      shares_(cycle.shares()),
      offer_(offer),
      around_(around),
      shortest_around_(around &&
                       cycle.policies().backfill().order == BackfillOrder::kShortestFirst),
      kinds_(state_.interner().kind_count()),
      root_(EntryOf(kRootQueue)) {
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
  for (Entry* leaf : touched_) Place(*leaf);
  touched_.clear();
  if (root_.first == nullptr) return std::nullopt;
  Touch(*root_.first);
  return root_.first->head;
}

void ServiceOrder::Skip(const Head& head) {
  skipped_.insert(head.id);
  Touch(head.queue);
}

void ServiceOrder::Touch(Entry& leaf) {
  if (!std::exchange(leaf.touched, true)) touched_.push_back(&leaf);
}

ServiceOrder::Entry& ServiceOrder::EntryOf(QueueId id) {
  if (const auto known = entries_.find(id); known != entries_.end()) return *known->second;
  const Queue& queue = state_.queues().At(id);
  Entry* parent = id == kRootQueue ? nullptr : &EntryOf(queue.spec.parent);
  auto entry = std::make_unique<Entry>(queue, parent, Entitlement(queue, shares_.At(id)));
  return *entries_.emplace(id, std::move(entry)).first->second;
}

// Computes the leaf's head and then, upward, each queue's rank among its siblings and the first
// leaf.
void ServiceOrder::Place(Entry& leaf) {
  leaf.touched = false;
  leaf.by_length = false;
  leaf.head = LeafHead(leaf);
  if (shortest_around_ && leaf.head.has_value() && GoesAround(leaf, *leaf.head)) {
    leaf.by_length = true;
    leaf.head = LeafHead(leaf);
  }
  leaf.first = leaf.head.has_value() ? &leaf : nullptr;
  if (leaf.head.has_value()) {
    leaf.request = RequestOf(leaf.head->id);
    if (StaysFirst(leaf)) return;
    leaf.other_request = OtherRequest(leaf);
    leaf.ranked = leaf.request;
    leaf.ranked_in = cycle_.transaction().version();
  }
  for (Entry* entry = &leaf; entry->parent != nullptr; entry = entry->parent) {
    Entry& parent = *entry->parent;
    if (entry->first != nullptr) entry->rank = RankOf(*entry);
    Seat(parent.heap, *entry);
    parent.first = parent.heap.empty() ? nullptr : parent.heap.front()->first;
  }
}

// It was first with a head that requested at least as much, which was refused; nothing else has
// changed since. All ranks grow with the request, so the leaf is first with this head as well. (Not
// if another of its classes improved its rank: that one may have been refused in between.)
bool ServiceOrder::StaysFirst(const Entry& leaf) const {
  const bool alone = root_.first == &leaf && touched_.size() == 1;
  return alone && leaf.ranked.has_value() && !leaf.other_request.has_value() &&
         leaf.ranked_in == cycle_.transaction().version() && leaf.request.FitsIn(*leaf.ranked);
}

// Moves the child to where its rank belongs, or out if it offers nothing.
void ServiceOrder::Seat(std::vector<Entry*>& heap, Entry& child) {
  if (child.first != nullptr) {
    if (child.seat == kNoSeat) {
      child.seat = heap.size();
      heap.push_back(&child);
    }
    return Settle(heap, child);
  }
  if (child.seat == kNoSeat) return;
  const size_t seat = std::exchange(child.seat, kNoSeat);
  Entry& last = *heap.back();
  heap.pop_back();
  if (&last == &child) return;
  last.seat = seat;
  Settle(heap, last);
}

// Up while it goes before the one above, otherwise down while one below goes before it.
void ServiceOrder::Settle(std::vector<Entry*>& heap, Entry& child) {
  size_t at = child.seat;
  const auto move_here = [&](size_t from) {
    heap[at] = heap[from];
    heap[at]->seat = at;
    at = from;
  };
  while (at > 0 && child.rank < heap[(at - 1) / 2]->rank) move_here((at - 1) / 2);
  for (size_t below = 2 * at + 1; below < heap.size(); below = 2 * at + 1) {
    if (below + 1 < heap.size() && heap[below + 1]->rank < heap[below]->rank) ++below;
    if (!(heap[below]->rank < child.rank)) break;
    move_here(below);
  }
  heap[at] = &child;
  child.seat = at;
}

std::optional<ServiceOrder::Head> ServiceOrder::LeafHead(const Entry& leaf) const {
  const Queue& queue = leaf.queue;
  const PendingIndex& pending = state_.pending();
  std::optional<Head> best = BestOf(leaf, pending.ready(), /*gangs_only=*/false);
  bool ready = true;
  const auto consider = [&](const PendingIndex::ByQueue& blocked, bool short_of_room) {
    std::optional<Head> other = BestOf(leaf, blocked, /*gangs_only=*/true);
    if (!other.has_value() || (best.has_value() && Before(leaf, *best, *other))) return;
    best = other;
    best->short_of_room = short_of_room;
    ready = false;
  };
  const bool offers_short =
      offer_ == Offer::kReadyAndShort && (!around_ || MayReserve(cycle_, queue.id));
  if (Strict(queue) || offers_short) consider(pending.short_of_room(), true);
  if (Strict(queue)) consider(pending.held_back(), false);
  if (!best.has_value() || skipped_.contains(best->id)) return std::nullopt;
  if (!ready && !(best->short_of_room && offers_short)) return std::nullopt;
  return best;
}

// All jobs before the queue's reserved jobs have been served, and so have the reserved jobs
// themselves, if something may have changed for them.
bool ServiceOrder::GoesAround(const Entry& leaf, const Head& head) const {
  if (Strict(leaf.queue) || MayReserve(cycle_, leaf.queue.id)) return false;
  for (const auto& [id, reservation] : state_.reservations()) {
    const Job& kept = state_.jobs().At(id);
    if (kept.queue != leaf.queue.id || kept.pending_class == ClassId{}) continue;
    if (head.job == id) return false;
    if (Before(leaf, head,
               {.id = kept.pending_class, .job = id, .queue = kept.queue, .short_of_room = true})) {
      return false;
    }
  }
  return true;
}

// Jobs are far apart in memory; some of those that follow will be needed soon.
void ServiceOrder::PrefetchNext(const PendingIndex::Classes& classes,
                                PendingIndex::Classes::const_iterator from) const {
  constexpr int kAhead = 8;
  constexpr size_t kJobBytes = 384;
  for (int i = 0; i < kAhead; ++i) {
    if (from == classes.end()) return;
    ++from;
  }
  if (from == classes.end()) return;
  state_.pending().classes().Prefetch(from->second, sizeof(PendingClass));
  state_.jobs().Prefetch(from->first.job, kJobBytes);
}

// Without configured orders, the first class of each user represents that user's other classes, and
// only the first priority and deadline matter. So it costs O(users log classes).
std::optional<ServiceOrder::Head> ServiceOrder::BestOf(const Entry& leaf,
                                                       const PendingIndex::ByQueue& list,
                                                       bool gangs_only) const {
  const Queue& queue = leaf.queue;
  const auto found = list.find(queue.id);
  if (found == list.end()) return std::nullopt;
  const PendingIndex::Classes& classes = found->second;
  const bool by_user = queue.spec.user_fairness == UserFairness::kDrf;
  std::optional<Head> best;
  for (auto it = classes.begin(); it != classes.end();) {
    const ClassKey& key = it->first;
    const bool passed_over = skipped_.contains(it->second) && !(Strict(queue) && key.growth == 0);
    if (passed_over ||
        (gangs_only && (key.growth > 0 || Never(state_.pending().Class(it->second))))) {
      ++it;
      continue;
    }
    const Head head{.id = it->second, .job = key.job, .queue = queue.id};
    if (!best.has_value() || Before(leaf, head, *best)) best = head;
    if (!orders_.empty() || leaf.by_length) {
      ++it;
    } else if (by_user) {
      ClassKey last_of_user = key;
      last_of_user.growth = INT32_MAX;
      last_of_user.rank = INT64_MAX;
      last_of_user.job = JobId{UINT64_MAX};
      it = classes.upper_bound(last_of_user);
      if (it != classes.end() && !SameTurn(it->first, key)) break;
    } else {
      PrefetchNext(classes, it);
      break;
    }
  }
  return best;
}

bool ServiceOrder::Before(const Entry& leaf, const Head& a, const Head& b) const {
  const Job& job = state_.jobs().At(a.job);
  const Job& other = state_.jobs().At(b.job);
  if (leaf.by_length && job.walltime != other.walltime) return job.walltime < other.walltime;
  for (const JobCompare& compare : orders_) {
    if (const int order = compare(job, other); order != 0) return order < 0;
  }
  ClassKey key = ClassKeyOf(state_.pending().Class(a.id).demand, KeyOf(job));
  ClassKey other_key = ClassKeyOf(state_.pending().Class(b.id).demand, KeyOf(other));
  if (SameTurn(key, other_key) && key.user != other_key.user) {
    const int order = Compare(UserShare(leaf, job.user), UserShare(leaf, other.user));
    if (order != 0) return order < 0;
    key.user = other_key.user = {};
  }
  return key < other_key;
}

Share ServiceOrder::UserShare(const Entry& leaf, const std::string& user) const {
  const auto found = leaf.queue.user_allocated.find(user);
  if (found == leaf.queue.user_allocated.end()) return {};
  return DominantShare(found->second, leaf.entitled, kinds_);
}

ServiceOrder::Rank ServiceOrder::RankOf(const Entry& entry) const {
  const Queue& queue = entry.queue;
  const Resources& request = entry.first->request;
  const Resources with_job = queue.allocated + request;
  const FairShares::OfQueue& share = shares_.At(queue.id);
  int standing = StandingOf(entry, request);
  if (standing > 0 && entry.first->other_request.has_value()) {
    standing = std::min(standing, StandingOf(entry, *entry.first->other_request));
  }
  return {.share = standing,
          .beyond_deserved = Over(request, with_job, share.deserved, kinds_),
          .priority = queue.spec.priority,
          .with_job = DominantShare(with_job, entry.entitled, kinds_),
          .without_job = DominantShare(queue.allocated, entry.entitled, kinds_),
          .queue = queue.id};
}

int ServiceOrder::StandingOf(const Entry& entry, const Resources& request) const {
  return ShareStanding(request, entry.queue.allocated, shares_.At(entry.queue.id).fair_share,
                       kinds_);
}

// Among the first ready classes, the first that requests only what the leaf is below its share of.
std::optional<Resources> ServiceOrder::OtherRequest(const Entry& leaf) const {
  if (Strict(leaf.queue) || StandingOf(leaf, leaf.request) == 0) return std::nullopt;
  const auto ready = state_.pending().ready().find(leaf.queue.id);
  if (ready == state_.pending().ready().end()) return std::nullopt;
  int left = kMaxLookedAt;
  for (const auto& [key, id] : ready->second) {
    if (left-- == 0) break;
    if (skipped_.contains(id)) continue;
    const Resources request = RequestOf(id);
    if (StandingOf(leaf, request) == 0) return request;
  }
  return std::nullopt;
}

// A gang as a whole; for growth one task, or one partition.
Resources ServiceOrder::RequestOf(ClassId id) const {
  const Demand& demand = state_.pending().Class(id).demand;
  Resources request;
  for (const DemandItem& item : demand.items) {
    const Resources& each = state_.interner().Shape(item.shape).resources;
    if (!demand.gang) {
      return item.partition_size > 1 ? each.Times(std::min(item.count, item.partition_size)) : each;
    }
    request += item.count == 1 ? each : each.Times(item.count);
  }
  return request;
}

}  // namespace berth
