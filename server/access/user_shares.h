// UserShares: what one user may have under way at a time, so that nobody's flood starves others.
// Thread-safe.
#ifndef BERTH_SERVER_ACCESS_USER_SHARES_H_
#define BERTH_SERVER_ACCESS_USER_SHARES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/caller.h"
#include "support/clock.h"

namespace berth {

struct UserLimits {
  int64_t requests = 0;             // under way; fewer while others call, too
  int64_t jobs = 0;                 // in submissions under way
  int64_t streams = 0;              // watches, output that is followed, commands in tasks
  int64_t requests_per_second = 0;  // on average, with one second's worth at once; 0: no limit
};

class UserShares {
 public:
  // What is under way ends with it. Outlived by the UserShares.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { *this = std::move(other); }
    Part& operator=(Part&& other) noexcept {
      End();
      shares_ = std::exchange(other.shares_, nullptr);
      user_ = std::move(other.user_);
      jobs_ = other.jobs_;
      stream_ = other.stream_;
      return *this;
    }
    ~Part() { End(); }

    explicit operator bool() const { return shares_ != nullptr; }
    void End() {
      if (shares_ != nullptr) std::exchange(shares_, nullptr)->Leave(user_, jobs_, stream_);
    }

   private:
    friend class UserShares;
    UserShares* shares_ = nullptr;
    std::string user_;
    int64_t jobs_ = 0;
    bool stream_ = false;
  };

  explicit UserShares(const UserLimits& limits, Clock* clock = &SystemClock())
      : limits_(limits), clock_(clock) {}

  // RESOURCE_EXHAUSTED, with a retry delay. Callers without a name share one part, and so do
  // the tasks of a job. `essential`: what undoes or stops something has a reserve beyond the
  // limits.
  absl::StatusOr<Part> Begin(const Caller& caller, int64_t jobs, bool essential)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Part> BeginStream(const Caller& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t users() const ABSL_LOCKS_EXCLUDED(mutex_);

  static constexpr int64_t kEssential = 64;  // requests beyond the limit
  // While several users call (within a second or two), each may have an equal part of kTogether
  // requests under way, but at least kLeast: enough to use the server to capacity together, and so
  // few that none waits long behind another's.
  static constexpr int64_t kTogether = 32;
  static constexpr int64_t kLeast = 8;

  // Refusals are answered late, so that who calls again at once does so seldom: how late, at
  // various times, so that they do not all come back together. Zero if many are held already: then
  // at once. Others need an Unhold.
  absl::Duration HoldTime();
  void Unhold() { held_.fetch_sub(1); }
  static constexpr int64_t kMostHeld = 10'000;

 private:
  struct Use {
    int64_t requests = 0, jobs = 0, streams = 0;
    double credit = 0;  // of requests, at `counted`
    absl::Duration counted;
    int64_t second = -1;  // in which it last called
  };

  void Leave(const std::string& user, int64_t jobs, bool stream) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t RequestsNow(Use& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the rate allows another request, which it then counts.
  bool TakeCredit(Use& use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Part PartOf(const std::string& user, int64_t jobs, bool stream);
  void ForgetIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const UserLimits limits_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);
  size_t forget_at_ ABSL_GUARDED_BY(mutex_) = 1024;  // users
  int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t callers_ ABSL_GUARDED_BY(mutex_) = 0;         // users who called in this second
  int64_t callers_before_ ABSL_GUARDED_BY(mutex_) = 0;  // in the one before
  std::atomic<int64_t> held_{0};
  std::atomic<uint32_t> hold_number_{0};
};

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_USER_SHARES_H_
