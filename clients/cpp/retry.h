// Decides which failed calls are retried, and how long to wait before each retry.
//
// UNAVAILABLE, RESOURCE_EXHAUSTED and CANCELLED (by a server that is shutting down: nobody else
// cancels a call here) are retried, with exponential backoff and full jitter (M. Brooker,
// "Exponential Backoff And Jitter", 2015), and never earlier than the server's RetryInfo allows.
// All other errors are final. Clock, sleep and randomness are injected, so that a simulation can
// run this logic in one thread.
#ifndef BERTH_CLIENTS_CPP_RETRY_H_
#define BERTH_CLIENTS_CPP_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "support/clock.h"
#include "support/random.h"

namespace berth {

class Sleeper {
 public:
  virtual ~Sleeper() = default;
  virtual void Sleep(absl::Duration duration) = 0;
};

// The client's external dependencies. All outlive the client.
struct ClientEnvironment {
  Clock* clock;
  Sleeper* sleeper;
  Random* random;
};
// The system clock and sleep, and randomness seeded from the kernel. One per thread.
ClientEnvironment SystemEnvironment();

struct RetryPolicy {
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(10);
  int max_attempts = 100;
};

bool IsRetryable(const absl::Status& status);

// The waits between attempts: the n-th is uniform in [0, min(max_backoff, first_backoff * 2^n)], or
// the server's delay plus that jitter.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, Random* random)
      : policy_(policy), random_(*random), bound_(policy.first_backoff) {}

  absl::Duration Next(absl::Duration server_delay);
  void Reset() { bound_ = policy_.first_backoff; }

 private:
  RetryPolicy policy_;
  Random& random_;
  absl::Duration bound_;
};

// Calls `attempt` with the remaining time until it succeeds, fails with an error that is not
// retryable, or `timeout` or the attempts are used up; then returns the last error. A wait that
// would end after the timeout is not started. `at_once`: whether the attempt that has just failed
// is followed by the next one without a wait, as with another server; not often in a row.
absl::Status Retry(
    const RetryPolicy& policy, const ClientEnvironment& environment, absl::Duration timeout,
    absl::FunctionRef<absl::Status(absl::Duration left)> attempt,
    absl::FunctionRef<bool()> at_once = [] { return false; });

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_RETRY_H_
