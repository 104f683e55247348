#include "server/ha/confirmer.h"

#include <utility>

namespace berth {
namespace {

absl::Status NotConfirmed() {
  return absl::UnavailableError("it is not certain that this server still leads the cluster");
}

}  // namespace

Confirmer::~Confirmer() { Stop(); }

void Confirmer::Answer(std::vector<Waiter> waiters, const absl::Status& status) {
  for (Waiter& waiter : waiters) std::move(waiter.effect)(status);
}

void Confirmer::Confirm(LedEffect effect) {
  {
    absl::MutexLock lock(&mutex_);
    if (term_ != 0 && !stopped_ && waiting_.size() < kMaxWaiting) {
      waiting_.push_back({std::move(effect), clock_->Steady()});
      return;
    }
  }
  std::move(effect)(NotConfirmed());
}

void Confirmer::Lead(uint64_t term) {
  absl::MutexLock lock(&mutex_);
  term_ = term;
}

void Confirmer::Stop() {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    waiters = std::exchange(waiting_, {});
  }
  Answer(std::move(waiters), NotConfirmed());
}

bool Confirmer::Await(absl::Duration at_most) {
  const auto awake = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !waiting_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&awake), at_most);
  return !stopped_;
}

bool Confirmer::Step() {
  uint64_t term = 0;
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    term = term_;
    waiters = std::exchange(waiting_, {});
  }
  if (waiters.empty()) return false;
  const absl::Duration begin = clock_->Steady();
  const absl::StatusOr<uint64_t> now = log_->ReadTerm();
  const absl::Duration end = clock_->Steady();
  seconds_.Observe(end - begin);
  if (!now.ok()) {
    PutBack(std::move(waiters), end);
    return false;
  }
  if (*now != term) {
    Answer(std::move(waiters), NotConfirmed());
    deposed_(Deposed(*now));
    return false;
  }
  Answer(std::move(waiters), absl::OkStatus());
  return true;
}

// They wait for the next read, unless they have waited too long.
void Confirmer::PutBack(std::vector<Waiter> waiters, absl::Duration now) {
  std::vector<Waiter> late;
  {
    absl::MutexLock lock(&mutex_);
    for (Waiter& waiter : waiters) {
      const bool waits = !stopped_ && now - waiter.asked < kPatience;
      (waits ? waiting_ : late).push_back(std::move(waiter));
    }
  }
  Answer(std::move(late), NotConfirmed());
}

}  // namespace berth
