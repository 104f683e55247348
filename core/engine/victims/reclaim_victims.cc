#include "core/engine/victims/reclaim_victims.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

bool GivesAny(const ClusterState& state, const Queue& queue) {
  if (queue.running_jobs == 0 || !queue.spec.reclaimable) return false;
  if (queue.children.empty()) return !queue.giving_jobs.empty();
  return std::any_of(queue.children.begin(), queue.children.end(),
                     [&](QueueId child) { return GivesAny(state, state.queues().At(child)); });
}

// The claimed resources of which side, a sibling of own, holds more than its own.
KindSet OwedBetween(const Queue& own, const FairShares::OfQueue& own_share,
                    const Resources& own_held, const FairShares::OfQueue& side_share,
                    const Resources& side_held, const Resources& request, KindSet claimed) {
  const bool deserved = WithinDeserved(own, own_share, own_held, request);
  KindSet owed;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] <= 0 || !claimed[i]) continue;
    const int64_t held = side_held.amount[i];
    const bool over_share = held > side_share.fair_share.amount[i];
    const bool over_deserved = held > side_share.deserved.amount[i];
    if (over_share || (deserved && over_deserved && NamedInDeserved(own, i))) owed.set(i);
  }
  return owed;
}

}  // namespace

bool AnyOwes(Cycle& cycle, const Job& job, const Resources& request, KindSet claimed) {
  const ClusterState& state = cycle.state();
  const FairShares& shares = cycle.shares();
  for (QueueId id = job.queue; id != kRootQueue; id = state.queues().At(id).spec.parent) {
    const Queue& own = state.queues().At(id);
    const Resources held = HeldAfterRelease(own);
    for (const QueueId child : state.queues().At(own.spec.parent).children) {
      const Queue& side = state.queues().At(child);
      if (child == id || !GivesAny(state, side)) continue;
      const KindSet owed = OwedBetween(own, shares.At(id), held, shares.At(child),
                                       HeldAfterRelease(side), request, claimed);
      if (owed.any()) return true;
    }
  }
  return false;
}

ReclaimVictims::ReclaimVictims(Cycle& cycle, UnitPool& pool, const Job& job,
                               const Resources& request, KindSet claimed, std::string* spared,
                               UsefulJob useful)
    : cycle_(cycle),
      state_(cycle.state()),
      pool_(pool),
      shares_(cycle.shares()),
      job_(job),
      request_(request),
      claimed_(claimed),
      useful_(std::move(useful)),
      claims_(state_, shares_),
      spared_(spared) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0) asked_.push_back(i);
  }
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
    own_path_.push_back(id);
    if (id == kRootQueue) break;
  }
  root_ = Build(state_.queues().At(kRootQueue), nullptr);
}

// Null if nothing below may give, unless it is on the job's own path.
ReclaimVictims::Entry* ReclaimVictims::Build(const Queue& queue, Entry* parent) {
  const bool own = std::find(own_path_.begin(), own_path_.end(), queue.id) != own_path_.end();
  if (!own && queue.running_jobs == 0) return nullptr;
  if (!own && !queue.spec.reclaimable) return nullptr;
  auto entry = std::make_unique<Entry>(queue, shares_.At(queue.id));
  entry->parent = parent;
  entry->own = own;
  entry->standing = {.held = HeldAfterRelease(queue), .entitled = Entitlement(queue, entry->share)};
  for (QueueId child : queue.children) {
    Entry* built = Build(state_.queues().At(child), entry.get());
    if (built == nullptr) continue;
    if (built->own) own_below_[queue.id] = built;
    if (!built->heap.empty() || built->victims != nullptr) entry->heap.push_back(built);
  }
  const auto later = [this](const Entry* a, const Entry* b) { return GivesLater(a, b); };
  std::make_heap(entry->heap.begin(), entry->heap.end(), later);
  const bool leaf = queue.children.empty() && queue.id != job_.queue;
  if (leaf) {
    entry->victims = std::make_unique<QueueVictims>(pool_, state_, queue.id, JobId{},
                                                    std::numeric_limits<int64_t>::max(), useful_);
    leaves_[queue.id] = entry.get();
  }
  entries_.push_back(std::move(entry));
  return entries_.back().get();
}

// Dominant among the resources that the job requests.
Share ReclaimVictims::ShareOf(const Resources& held, const Standing& standing) const {
  Share largest;
  for (size_t i : asked_) {
    if (held.amount[i] <= 0) continue;
    if (standing.entitled.amount[i] <= 0) return {.part = 1, .whole = 0};
    const Share share{.part = held.amount[i], .whole = standing.entitled.amount[i]};
    if (Compare(share, largest) > 0) largest = share;
  }
  return largest;
}

// The heap's top is its largest element: the next to give.
bool ReclaimVictims::GivesLater(const Entry* a, const Entry* b) const {
  const int order =
      Compare(ShareOf(a->standing.held, a->standing), ShareOf(b->standing.held, b->standing));
  if (order != 0) return order < 0;
  const int32_t priority = a->queue.spec.priority, other = b->queue.spec.priority;
  return priority != other ? priority > other : a->queue.id < b->queue.id;
}

const ReclaimVictims::Entry* ReclaimVictims::SideOf(const Entry* leaf) const {
  while (!leaf->parent->own) leaf = leaf->parent;
  return leaf;
}

const ReclaimVictims::Entry* ReclaimVictims::OwnBeside(const Entry* side) const {
  return own_below_.at(side->parent->queue.id);
}

KindSet ReclaimVictims::OwedBy(const Entry* side) const {
  const Entry* own = OwnBeside(side);
  return OwedBetween(own->queue, own->share, own->standing.held, side->share, side->standing.held,
                     request_, claimed_);
}

// This unit may not give what side owes of that kind.
bool ReclaimVictims::Protects(const Entry* side, size_t kind, const Resources& given) const {
  const Resources& held = side->standing.held;
  if (!NamedInDeserved(side->queue, kind)) {
    return WithinDeserved(side->queue, side->share, held - given, given);
  }
  const int64_t promised = PromisedTo(side->queue, ResourceKind{static_cast<uint8_t>(kind)});
  return promised < kMaxAmount && held.amount[kind] <= promised &&
         held.amount[kind] - given.amount[kind] < side->share.deserved.amount[kind];
}

// It has some of the requested resources; the amounts are checked per unit.
bool ReclaimVictims::CouldGive(const Job& job) const {
  const auto leaf = leaves_.find(job.queue);
  return leaf != leaves_.end() && job.id != job_.id && OwedBy(SideOf(leaf->second)).any();
}

bool ReclaimVictims::MayTake(const Entry* leaf, const VictimUnit& unit, const Resources& given) {
  if (unit.job == job_.id) return false;
  const Entry* side = SideOf(leaf);
  const KindSet owed = OwedBy(side);
  const bool claimed = HoldsClaims(state_, unit);
  for (const size_t i : asked_) {
    if (!owed[i] || given.amount[i] <= 0) continue;
    if (Protects(side, i, given)) {
      Spare(side->queue.spec.name, "holds it along with its deserved resources");
    } else if (claimed && claims_.Stand(leaf->queue, i)) {
      Spare(leaf->queue.spec.name, "reclaimed it, within its own share");
    } else {
      return true;
    }
  }
  return false;
}

void ReclaimVictims::Spare(absl::string_view queue, absl::string_view why) {
  if (spared_->empty()) *spared_ = absl::StrCat("queue ", queue, " ", why);
}

// Every entry on the path was the top of its heap; moves each to its new position.
void ReclaimVictims::Take(Entry* leaf, const Resources& given) {
  const auto later = [this](const Entry* a, const Entry* b) { return GivesLater(a, b); };
  for (Entry* entry = leaf; entry->parent != nullptr; entry = entry->parent) {
    std::vector<Entry*>& heap = entry->parent->heap;
    std::pop_heap(heap.begin(), heap.end(), later);
    entry->standing.held -= given;
    std::push_heap(heap.begin(), heap.end(), later);
  }
}

// It is on top of its siblings.
void ReclaimVictims::Drop(Entry* entry) {
  const auto later = [this](const Entry* a, const Entry* b) { return GivesLater(a, b); };
  std::vector<Entry*>& heap = entry->parent->heap;
  std::pop_heap(heap.begin(), heap.end(), later);
  heap.pop_back();
  if (heap.empty() && entry->parent->parent != nullptr) Drop(entry->parent);
}

ReclaimVictims::Entry* ReclaimVictims::NextLeaf() const {
  Entry* entry = root_;
  while (!entry->heap.empty()) entry = entry->heap.front();
  return entry;
}

std::optional<VictimUnit> ReclaimVictims::Next() {
  while (!root_->heap.empty()) {
    Entry* leaf = NextLeaf();
    std::optional<VictimUnit> unit;
    if (OwedBy(SideOf(leaf)).any()) unit = leaf->victims->Next();
    if (!unit.has_value()) {
      protected_until_ = std::min(protected_until_, leaf->victims->protected_until());
      Drop(leaf);
      continue;
    }
    cycle_.CountWork(1);
    // Surplus that could not be taken alone goes together with the rest.
    std::vector<uint32_t>& passed = passed_over_[unit->job];
    if (unit->rest) unit->tasks.insert(unit->tasks.end(), passed.begin(), passed.end());
    std::sort(unit->tasks.begin(), unit->tasks.end());
    const Resources given = RequestOf(state_, *unit);
    if (!MayTake(leaf, *unit, given)) {
      passed.insert(passed.end(), unit->tasks.begin(), unit->tasks.end());
      continue;
    }
    Take(leaf, given);
    return unit;
  }
  return std::nullopt;
}

Time ReclaimVictims::protected_until() const {
  Time until = protected_until_;
  for (const auto& entry : entries_) {
    if (entry->victims != nullptr) until = std::min(until, entry->victims->protected_until());
  }
  return until;
}

}  // namespace berth
