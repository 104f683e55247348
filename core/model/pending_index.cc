#include "core/model/pending_index.h"

#include <optional>

#include "core/base/check.h"

namespace berth {
namespace {

std::optional<OrderKey> FirstOf(const PendingClass& c) {
  if (c.jobs.empty()) return std::nullopt;
  return *c.jobs.begin();
}

}  // namespace

ClassId PendingIndex::Add(const Demand& demand, OrderKey key) {
  const auto [known, fresh] = by_demand_.try_emplace(demand, next_class_);
  const ClassId id = known->second;
  if (fresh) {
    ++next_class_.value;
    classes_.Insert(id, PendingClass{demand, {}, nullptr});
  }
  PendingClass& c = classes_.At(id);
  const std::optional<OrderKey> before = FirstOf(c);
  BERTH_CHECK(c.jobs.insert(key).second);
  ++job_count_;
  if (!before.has_value() || key < *before) Relist(id, before.has_value() ? &*before : nullptr);
  return id;
}

void PendingIndex::Remove(ClassId id, OrderKey key) {
  PendingClass& c = classes_.At(id);
  const bool first = *c.jobs.begin() == key;
  BERTH_CHECK(c.jobs.erase(key) == 1);
  --job_count_;
  if (c.jobs.empty()) emptied_.push_back(id);
  if (first) Relist(id, &key);
}

void PendingIndex::Relist(ClassId id, const OrderKey* before) {
  const PendingClass& c = classes_.At(id);
  if (c.blocked != nullptr) return;
  if (before != nullptr) ready_.erase(*before);
  if (!c.jobs.empty()) ready_.emplace(*c.jobs.begin(), id);
}

void PendingIndex::Block(ClassId id, BlockedVerdict verdict) {
  PendingClass& c = classes_.At(id);
  if (c.blocked == nullptr) {
    if (!c.jobs.empty()) ready_.erase(*c.jobs.begin());
    blocked_.push_back(id);
  }
  c.blocked = std::make_unique<BlockedVerdict>(std::move(verdict));
}

void PendingIndex::ReopenAll() {
  for (ClassId id : blocked_) {
    PendingClass* c = classes_.Find(id);
    if (c == nullptr || c->blocked == nullptr) continue;
    c->blocked = nullptr;
    Relist(id, nullptr);
  }
  blocked_.clear();
}

void PendingIndex::DropEmpty() {
  for (ClassId id : emptied_) {
    const PendingClass* c = classes_.Find(id);
    if (c == nullptr || !c->jobs.empty()) continue;
    by_demand_.erase(c->demand);
    classes_.Erase(id);
  }
  emptied_.clear();
}

}  // namespace berth
