#include "server/loop/outbox.h"

#include <utility>

#include "core/base/check.h"

namespace berth {

Outbox::~Outbox() = default;

void Outbox::Add(Entry entry) {
  {
    absl::MutexLock lock(&mutex_);
    BERTH_CHECK(entries_.empty() || entries_.back().revision <= entry.revision);
    entries_.push_back(std::move(entry));
  }
  Deliver();
}

void Outbox::NoteDurable(uint64_t revision) {
  {
    absl::MutexLock lock(&mutex_);
    BERTH_CHECK(revision > durable_);
    durable_ = revision;
  }
  Deliver();
}

void Outbox::WhenDurable(uint64_t revision, ReaderEffect effect, absl::Duration patience) {
  absl::Status verdict;
  {
    absl::MutexLock lock(&mutex_);
    if (revision > durable_) {
      if (waiters_.size() < kMaxDurableWaiters) {
        waiters_.emplace(revision, Waiter{std::move(effect), patience, absl::InfiniteDuration()});
        return;
      }
      verdict = absl::UnavailableError("too many readers are waiting for the disk");
    }
  }
  std::move(effect)(verdict);
}

void Outbox::Expire(absl::Duration now) {
  std::vector<ReaderEffect> expired;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      Waiter& waiter = it->second;
      if (waiter.deadline == absl::InfiniteDuration()) waiter.deadline = now + waiter.patience;
      if (waiter.deadline > now) {
        ++it;
        continue;
      }
      expired.push_back(std::move(waiter.effect));
      it = waiters_.erase(it);
    }
  }
  for (ReaderEffect& effect : expired) {
    std::move(effect)(absl::UnavailableError(
        "the data is not on disk yet; metadata berth-unsynced: allow (berth --unsynced) shows "
        "it nevertheless"));
  }
}

uint64_t Outbox::durable() const {
  absl::MutexLock lock(&mutex_);
  return durable_;
}

size_t Outbox::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

void Outbox::Deliver() {
  for (Effect due = Take(/*mine=*/false); due != nullptr; due = Take(/*mine=*/true)) {
    std::move(due)();
  }
}

// The thread that finds nothing more to do releases the outbox under the same lock under which
// another thread would have left work to it: no due entry is left behind.
Effect Outbox::Take(bool mine) {
  absl::MutexLock lock(&mutex_);
  if (!mine && delivering_) return nullptr;
  delivering_ = true;
  if (!entries_.empty() && entries_.front().revision <= durable_) {
    Effect due = [this, entry = std::move(entries_.front())]() mutable { Run(std::move(entry)); };
    entries_.pop_front();
    return due;
  }
  if (!waiters_.empty() && waiters_.begin()->first <= durable_) {
    Effect due = [effect = std::move(waiters_.begin()->second.effect)]() mutable {
      std::move(effect)(absl::OkStatus());
    };
    waiters_.erase(waiters_.begin());
    return due;
  }
  delivering_ = false;
  return nullptr;
}

void Outbox::Run(Entry entry) {
  for (Effect& effect : entry.effects) std::move(effect)();
  if (entry.events == nullptr) return;
  for (DurableListener* listener : listeners_) {
    listener->OnTurnDurable(entry.revision, entry.events, entry.turn);
  }
}

}  // namespace berth
