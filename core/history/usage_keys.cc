#include "core/history/usage_keys.h"

namespace berth {

KeyId UsageKeys::Acquire(UsageKey key) {
  if (ids_.size() >= most_ && !ids_.contains(key)) key.user = key.account = kOthers;
  return AcquireExactly(std::move(key));
}

KeyId UsageKeys::AcquireQueue(std::string queue) {
  return AcquireExactly(
      UsageKey{.queue = std::move(queue), .user = {}, .account = {}, .priority_class = {}});
}

KeyId UsageKeys::AcquireExactly(UsageKey key) {
  const auto [found, fresh] = ids_.try_emplace(std::move(key), next_);
  if (fresh) {
    entries_.Insert(next_, Entry{.key = found->first, .uses = 0});
    ++next_.value;
  }
  ++entries_.At(found->second).uses;
  return found->second;
}

void UsageKeys::Release(KeyId id) {
  Entry& entry = entries_.At(id);
  if (--entry.uses > 0) return;
  ids_.erase(entry.key);
  entries_.Erase(id);
}

ModelId ModelNames::Add(absl::string_view name) {
  const auto [found, fresh] =
      ids_.try_emplace(std::string(name), ModelId{static_cast<uint32_t>(names_.size())});
  if (fresh) names_.emplace_back(name);
  return found->second;
}

}  // namespace berth
