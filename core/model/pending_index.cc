#include "core/model/pending_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace berth {
namespace {

std::optional<OrderKey> FirstOf(const PendingClass& c) {
  if (c.jobs.empty()) return std::nullopt;
  return *c.jobs.begin();
}

}  // namespace

ClassId PendingIndex::Add(const Demand& demand, OrderKey key, bool fact) {
  const auto [known, fresh] = by_demand_.try_emplace(demand, next_class_);
  const ClassId id = known->second;
  if (fresh) {
    ++next_class_.value;
    classes_.Insert(id, PendingClass{demand, {}, nullptr});
  }
  const std::optional<OrderKey> before = FirstOf(classes_.At(id));
  Return(id, key);
  // A job of higher priority may evict tasks that earlier jobs of the class could not.
  if (fact && before.has_value() && key.priority > before->priority) Reopen(id);
  return id;
}

ClassId PendingIndex::Renew(ClassId id) {
  Reopen(id);
  PendingClass& old = classes_.At(id);
  const ClassId fresh = next_class_;
  ++next_class_.value;
  if (!old.jobs.empty()) Unlist(old, *old.jobs.begin());
  by_demand_[old.demand] = fresh;
  PendingClass& renewed = classes_.Insert(fresh, std::move(old));
  renewed.never = false;
  classes_.Erase(id);
  if (!renewed.jobs.empty()) Enlist(fresh, renewed);
  return fresh;
}

void PendingIndex::Return(ClassId id, OrderKey key) {
  PendingClass& c = classes_.At(id);
  const std::optional<OrderKey> before = FirstOf(c);
  BERTH_CHECK(c.jobs.insert(key).second);
  ++job_count_;
  if (!before.has_value() || key < *before) Relist(id, before.has_value() ? &*before : nullptr);
}

void PendingIndex::Remove(ClassId id, OrderKey key) {
  PendingClass& c = classes_.At(id);
  const bool first = *c.jobs.begin() == key;
  BERTH_CHECK(c.jobs.erase(key) == 1);
  --job_count_;
  if (c.jobs.empty()) emptied_.push_back(id);
  if (first) Relist(id, &key);
}

PendingIndex::List PendingIndex::ListOf(const PendingClass& c) {
  if (c.blocked == nullptr) return kReady;
  return c.blocked->wake == WakeOn::kRoom ? kShort : kHeldBack;
}

void PendingIndex::Relist(ClassId id, const OrderKey* before) {
  const PendingClass& c = classes_.At(id);
  if (before != nullptr && !c.jobs.empty()) {  // in place: the queue keeps its entry
    Classes& classes = lists_[ListOf(c)].at(c.demand.queue);
    classes.erase(ClassKeyOf(c.demand, *before));
    classes.emplace(ClassKeyOf(c.demand, *c.jobs.begin()), id);
    return;
  }
  if (before != nullptr) Unlist(c, *before);
  if (!c.jobs.empty()) Enlist(id, c);
}

void PendingIndex::Enlist(ClassId id, const PendingClass& c) {
  const List list = ListOf(c);
  lists_[list][c.demand.queue].emplace(ClassKeyOf(c.demand, *c.jobs.begin()), id);
  if (list == kReady) ++ready_count_;
}

void PendingIndex::Unlist(const PendingClass& c, const OrderKey& key) {
  const List list = ListOf(c);
  const auto found = lists_[list].find(c.demand.queue);
  found->second.erase(ClassKeyOf(c.demand, key));
  if (found->second.empty()) lists_[list].erase(found);
  if (list == kReady) --ready_count_;
}

void PendingIndex::Remember(ClassId id, const PendingClass& c) {
  if (trial_ == nullptr) return;
  const auto [before, fresh] = trial_->classes.try_emplace(id);
  if (!fresh) return;
  before->second.never = c.never;
  if (c.blocked != nullptr) {
    before->second.blocked = std::make_unique<BlockedVerdict>(*c.blocked);
  }
}

void PendingIndex::ListForQueue(QueueId queue, ClassId id) {
  blocked_by_queue_[queue].push_back(id);
  if (trial_ != nullptr) trial_->by_queue.push_back(queue);
}

void PendingIndex::ListForShape(ShapeId shape, ClassId id) {
  blocked_by_room_[shape].push_back(id);
  if (trial_ != nullptr) trial_->by_room.push_back(shape);
}

void PendingIndex::ListRevisit(Time at, ClassId id) {
  if (revisits_.insert({at, id}).second && trial_ != nullptr) {
    trial_->revisits.push_back({at, id});
  }
}

void PendingIndex::BeginTrial() {
  BERTH_CHECK(trial_ == nullptr);
  trial_ = std::make_unique<Trial>();
  trial_->blocked = blocked_.size();
  trial_->missed = missed_.size();
  trial_->by_neighbours = blocked_by_neighbours_.size();
  trial_->judged = judged_;
  trial_->never = never_;
}

std::vector<ClassId> PendingIndex::EndTrial() {
  const std::unique_ptr<Trial> trial = std::move(trial_);
  blocked_.resize(trial->blocked);
  missed_.resize(trial->missed);
  blocked_by_neighbours_.resize(trial->by_neighbours);
  judged_ = std::move(trial->judged);
  never_ = std::move(trial->never);
  const auto take_back = [](auto& lists, const auto& added) {
    for (auto key = added.rbegin(); key != added.rend(); ++key) {
      const auto list = lists.find(*key);
      list->second.pop_back();
      if (list->second.empty()) lists.erase(list);
    }
  };
  take_back(blocked_by_queue_, trial->by_queue);
  take_back(blocked_by_room_, trial->by_room);
  for (const auto& revisit : trial->revisits) revisits_.erase(revisit);
  std::vector<ClassId> judged_otherwise;
  for (auto& [id, before] : trial->classes) {
    PendingClass& c = classes_.At(id);
    if (!c.jobs.empty()) Unlist(c, *c.jobs.begin());
    c.blocked = std::move(before.blocked);
    if (!c.jobs.empty()) Enlist(id, c);
    if (c.never == before.never) continue;
    c.never = before.never;
    judged_otherwise.push_back(id);
  }
  return judged_otherwise;
}

void PendingIndex::Block(ClassId id, BlockedVerdict verdict) {
  PendingClass& c = classes_.At(id);
  Remember(id, c);
  if (!c.jobs.empty()) Unlist(c, *c.jobs.begin());
  if (c.blocked == nullptr) blocked_.push_back(id);
  if (verdict.wake == WakeOn::kQueue) ListForQueue(verdict.queue, id);
  if (verdict.wake == WakeOn::kRoom) {
    for (const DemandItem& item : c.demand.items) ListForShape(item.shape, id);
  }
  if (!c.demand.affinity.empty() || !c.demand.labels.empty()) blocked_by_neighbours_.push_back(id);
  if (verdict.revisit != absl::InfiniteFuture()) ListRevisit(verdict.revisit, id);
  c.blocked = std::make_unique<BlockedVerdict>(std::move(verdict));
  if (NeverChanged(c)) judged_.push_back(id);
  missed_.push_back(id);
  if (!c.jobs.empty()) Enlist(id, c);
}

void PendingIndex::Reopen(std::vector<ClassId>& list) {
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i + kAhead < list.size()) classes_.Prefetch(list[i + kAhead], sizeof(PendingClass));
    Reopen(list[i]);
  }
  list.clear();
}

void PendingIndex::Reopen(ClassId id) {
  PendingClass* c = classes_.Find(id);
  if (c == nullptr || c->blocked == nullptr) return;
  Remember(id, *c);
  if (!c->jobs.empty()) Unlist(*c, *c->jobs.begin());
  c->blocked = nullptr;
  if (!c->jobs.empty()) Enlist(id, *c);
}

void PendingIndex::Revisit(ClassId id, Time at) {
  PendingClass* c = classes_.Find(id);
  if (c == nullptr || c->blocked == nullptr || at >= c->blocked->revisit) return;
  Remember(id, *c);
  c->blocked->revisit = at;
  ListRevisit(at, id);
}

void PendingIndex::RevisitWith(ClassId id, QueueId queue) {
  const PendingClass* c = classes_.Find(id);
  if (c != nullptr && c->blocked != nullptr) ListForQueue(queue, id);
}

void PendingIndex::NoteAsked(ClassId id, RoomAsked asked) {
  PendingClass* c = classes_.Find(id);
  if (c == nullptr || c->blocked == nullptr) return;
  Remember(id, *c);
  std::vector<RoomAsked>& all = c->blocked->asked;
  const auto same = std::find_if(all.begin(), all.end(), [&](const RoomAsked& before) {
    return before.action == asked.action;
  });
  if (same == all.end()) {
    all.push_back(std::move(asked));
  } else {
    *same = std::move(asked);
  }
}

void PendingIndex::ReopenDue(Time now) {
  while (!revisits_.empty() && revisits_.begin()->first <= now) {
    const auto [at, id] = *revisits_.begin();
    revisits_.erase(revisits_.begin());
    const PendingClass* c = classes_.Find(id);
    if (c != nullptr && c->blocked != nullptr && c->blocked->revisit == at) Reopen(id);
  }
}

void PendingIndex::ReopenAll() {
  Reopen(blocked_);
  blocked_by_queue_.clear();
  blocked_by_room_.clear();
  blocked_by_neighbours_.clear();
  revisits_.clear();
}

void PendingIndex::ReopenQueue(QueueId id) {
  const auto found = blocked_by_queue_.find(id);
  if (found == blocked_by_queue_.end()) return;
  Reopen(found->second);
  blocked_by_queue_.erase(found);
}

void PendingIndex::ReopenShape(ShapeId id) {
  const auto found = blocked_by_room_.find(id);
  if (found == blocked_by_room_.end()) return;
  Reopen(found->second);
  blocked_by_room_.erase(found);
}

void PendingIndex::ReopenForAffinity() { Reopen(blocked_by_neighbours_); }

// Not within a trial: the job that emptied a class may return.
void PendingIndex::DropEmpty() {
  if (trial_ != nullptr) return;
  for (ClassId id : emptied_) {
    const PendingClass* c = classes_.Find(id);
    if (c == nullptr || !c->jobs.empty()) continue;
    by_demand_.erase(c->demand);
    classes_.Erase(id);
  }
  emptied_.clear();
}

}  // namespace berth
