#include "core/engine/reclaim_victims.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth {
namespace {

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

// Of what the job asks for, some satisfies / all satisfy the test.
template <class Test>
bool AnyAsked(const Resources& request, Test&& test) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0 && test(i)) return true;
  }
  return false;
}
template <class Test>
bool AllAsked(const Resources& request, Test&& test) {
  return !AnyAsked(request, [&](size_t i) { return !test(i); });
}

}  // namespace

bool MayReclaim(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                const Resources& request, bool preemptible) {
  return AllAsked(request, [&](size_t i) {
    const int64_t with = held.amount[i] + request.amount[i];
    const bool bounded = !preemptible && queue.deserved_bound.amount[i] != kUnbounded;
    return with <= share.fair_share.amount[i] && (!bounded || with <= share.deserved.amount[i]);
  });
}

ReclaimVictims::ReclaimVictims(Cycle& cycle, UnitPool& pool, const Job& job,
                               const Resources& request, UsefulJob useful)
    : cycle_(cycle),
      state_(cycle.state()),
      pool_(pool),
      shares_(cycle.shares()),
      job_(job),
      request_(request),
      useful_(std::move(useful)) {
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
  if (!own && (!queue.spec.reclaimable || queue.running_jobs == 0)) return nullptr;
  auto entry = std::make_unique<Entry>();
  const FairShares::OfQueue& share = shares_.At(queue.id);
  entry->id = queue.id;
  entry->parent = parent;
  entry->priority = queue.spec.priority;
  entry->own = own;
  entry->standing = {.held = HeldOnceReleased(queue),
                     .fair_share = share.fair_share,
                     .deserved = share.deserved,
                     .bound = queue.deserved_bound,
                     .entitled = Entitlement(queue, share)};
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

// Dominant among what the job asks for.
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

// The heap's top is its largest: the first to give.
bool ReclaimVictims::GivesLater(const Entry* a, const Entry* b) const {
  const int order =
      Compare(ShareOf(a->standing.held, a->standing), ShareOf(b->standing.held, b->standing));
  if (order != 0) return order < 0;
  if (a->priority != b->priority) return a->priority > b->priority;
  return a->id < b->id;
}

const ReclaimVictims::Entry* ReclaimVictims::SideOf(const Entry* leaf) const {
  while (!leaf->parent->own) leaf = leaf->parent;
  return leaf;
}

const ReclaimVictims::Entry* ReclaimVictims::OwnBeside(const Entry* side) const {
  return own_below_.at(side->parent->id);
}

bool ReclaimVictims::OwesFairShare(const Entry* side, const Resources& given) const {
  const Standing& theirs = side->standing;
  return AnyAsked(request_, [&](size_t i) {
    return given.amount[i] > 0 && theirs.held.amount[i] > theirs.fair_share.amount[i];
  });
}

bool ReclaimVictims::OwesDeserved(const Entry* side, const Resources& given) const {
  const Standing& ours = OwnBeside(side)->standing;
  const Standing& theirs = side->standing;
  const auto said = [&](size_t i) { return ours.bound.amount[i] != kUnbounded; };
  const bool within = AllAsked(request_, [&](size_t i) {
    return !said(i) || ours.held.amount[i] + request_.amount[i] <= ours.deserved.amount[i];
  });
  return within && AnyAsked(request_, [&](size_t i) {
           return said(i) && given.amount[i] > 0 &&
                  theirs.held.amount[i] > theirs.deserved.amount[i];
         });
}

bool ReclaimVictims::StandsNoWorse(const Entry* side, const Resources& given) const {
  const Entry* own = OwnBeside(side);
  const Share ours = ShareOf(own->standing.held + request_, own->standing);
  const Share theirs = ShareOf(side->standing.held - given, side->standing);
  return Compare(theirs, ours) >= 0;
}

// Some of what the job asks for; how much, is asked of each unit.
bool ReclaimVictims::Owes(const Entry* leaf) const {
  const Entry* side = SideOf(leaf);
  return OwesDeserved(side, request_) || OwesFairShare(side, request_);
}

bool ReclaimVictims::CouldGive(const Job& job) const {
  const auto leaf = leaves_.find(job.queue);
  return leaf != leaves_.end() && job.id != job_.id && Owes(leaf->second);
}

bool ReclaimVictims::MayTake(const Entry* leaf, const VictimUnit& unit,
                             const Resources& given) const {
  if (unit.job == job_.id) return false;
  const Entry* side = SideOf(leaf);
  if (OwesDeserved(side, given)) return true;
  return OwesFairShare(side, given) && StandsNoWorse(side, given);
}

// The top of every heap on its way was chosen by it, and is put where it stands now.
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
    if (Owes(leaf)) unit = leaf->victims->Next();
    if (!unit.has_value()) {
      protected_until_ = std::min(protected_until_, leaf->victims->protected_until());
      Drop(leaf);
      continue;
    }
    cycle_.CountWork(1);
    // With the rest goes the surplus that could not go alone.
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
