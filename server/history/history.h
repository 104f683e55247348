// History: the usage history of a server (docs/developers/history.md). A thread of low priority
// follows the log; queries run on another one.
#ifndef BERTH_SERVER_HISTORY_HISTORY_H_
#define BERTH_SERVER_HISTORY_HISTORY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/controllers/executor.h"
#include "server/history/history_keeper.h"
#include "server/loop/loop.h"
#include "server/loop/turn.h"

namespace berth {

class History final : public DurableListener {
 public:
  // Nullopt: it keeps none, and queries are FAILED_PRECONDITION. The rest outlives it.
  History(std::optional<HistoryOptions> options, const Store* store, Clock* clock);
  // Ends after the current step. Queries that wait are answered UNAVAILABLE.
  ~History() override;

  bool keeps() const { return keeper_ != nullptr; }

  // There is something to read.
  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs `query` with the database, after it has caught up with the loop's present, if that is
  // possible within kCatchUp. On a thread of its own; thread-safe.
  using Database = absl::StatusOr<std::shared_ptr<HistoryDb>>;
  using Query = absl::AnyInvocable<void(Database) &&>;
  void Ask(Loop& loop, Query query);
  static constexpr absl::Duration kCatchUp = absl::Seconds(2);
  static constexpr size_t kMaxQueries = 1000;  // that wait; above it they are refused

  // Null: it keeps none.
  const HistoryCounters* counters() const {
    return keeper_ == nullptr ? nullptr : &keeper_->counters();
  }
  // Turns that are not folded yet.
  uint64_t Lag() const;

 private:
  using Call = absl::AnyInvocable<void() &&>;
  struct Reach {
    uint64_t revision = 0;
    Time now = absl::InfinitePast();
    Query query;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until there is something to do. False: it ends.
  bool Await() ABSL_LOCKS_EXCLUDED(mutex_);
  void StepOnce();
  void CatchUp(uint64_t revision, Time now);
  void Complain(const absl::Status& status);
  void AskAt(uint64_t revision, Time now, Query query) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !reaches_.empty();
  }

  const Store* const store_;
  Clock* const clock_;
  std::unique_ptr<HistoryKeeper> keeper_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Reach> reaches_ ABSL_GUARDED_BY(mutex_);

  // The thread's.
  bool more_ = false;
  absl::Duration retry_at_ = absl::ZeroDuration(), tidy_at_ = absl::ZeroDuration();
  absl::Time complained_ = absl::InfinitePast();

  std::unique_ptr<ThreadExecutor> readers_;
  std::thread thread_;  // last
};

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_HISTORY_H_
