#include "clients/cpp/retry.h"

#include <algorithm>
#include <random>

#include "absl/time/clock.h"
#include "support/errors.h"

namespace berth {
namespace {

class SystemSleeper : public Sleeper {
 public:
  void Sleep(absl::Duration duration) override { absl::SleepFor(duration); }
};

uint64_t SeedFromKernel() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

ClientEnvironment SystemEnvironment() {
  static SystemSleeper sleeper;
  thread_local Random random(SeedFromKernel());
  return {&SystemClock(), &sleeper, &random};
}

bool IsRetryable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsCancelled(status);
}

absl::Duration Backoff::Next(absl::Duration server_delay) {
  const absl::Duration jitter = bound_ * random_.Unit();
  bound_ = std::min(bound_ * 2, policy_.max_backoff);
  return std::max(server_delay, absl::ZeroDuration()) + jitter;
}

absl::Status Retry(const RetryPolicy& policy, const ClientEnvironment& environment,
                   absl::Duration timeout,
                   absl::FunctionRef<absl::Status(absl::Duration left)> attempt,
                   absl::FunctionRef<bool()> at_once) {
  Backoff backoff(policy, environment.random);
  const absl::Duration end = environment.clock->Steady() + timeout;
  for (int attempts = 1;;) {
    const absl::Status status = attempt(end - environment.clock->Steady());
    if (status.ok() || !IsRetryable(status) || attempts >= policy.max_attempts) return status;
    const bool waits = !at_once();
    const absl::Duration wait = waits ? backoff.Next(RetryDelayOf(status)) : absl::ZeroDuration();
    if (environment.clock->Steady() + wait >= end) return status;
    if (!waits) continue;
    ++attempts;
    environment.sleeper->Sleep(wait);
  }
}

}  // namespace berth
