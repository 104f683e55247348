// Committers: the writing side of the loop (interface in server/loop.h).
//
//   GroupCommitter  a thread of its own; everything that queued up while it wrote goes into the
//   next write, one sync SyncCommitter   writes when it is told to; for tests and simulation
//
// Both: effects run in order, and only after their batch and all before it are durable. While the
// disk is full they keep what they have and say so (PausedReason); any other error is fatal: the
// handler is called once, nothing is written or told any more, and the process is to end and start
// again.
#ifndef BERTH_SERVER_COMMITTER_H_
#define BERTH_SERVER_COMMITTER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/histogram.h"
#include "server/loop.h"
#include "storage/store.h"

namespace berth {

using FatalHandler = std::function<void(const absl::Status&)>;

// Says on standard error and in the log what failed, and ends the process with exit status 74
// (EX_IOERR) at once, without destructors: what is not synced must not be made to look clean.
void ExitOnStoreFailure(const absl::Status& status);

inline constexpr size_t kMaxGroupBatches = 256;
inline constexpr size_t kMaxGroupBytes = size_t{32} << 20;

struct CommitterOptions {
  // Why new work must wait although batches can be written; "" = it need not. Any thread.
  std::function<std::string()> low_space = nullptr;
  absl::Duration retry_delay = absl::Milliseconds(500);  // between tries on a full disk
  FatalHandler on_fatal = ExitOnStoreFailure;            // on the writing thread
};

// Numbers for metrics; running totals unless said otherwise. Thread-safe to read.
struct CommitterCounters {
  std::atomic<uint64_t> batches{0}, writes{0}, bytes{0}, full_retries{0};
  Histogram write_seconds;
};

// Size in bytes of a batch as written, about.
size_t SizeOf(const Batch& batch);

// Thread-safe.
class GroupCommitter final : public Committer {
 public:
  // `store` outlives it; nobody else appends.
  explicit GroupCommitter(Store* store, CommitterOptions options = {});
  ~GroupCommitter() override;  // Stop()

  // Writes what is queued, tells, and ends the thread. On a full disk it gives up what is queued:
  // nobody was told of it. What is handed in later is dropped. Idempotent. Not to be called from an
  // effect.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t DurableSequence() const override { return durable_.load(); }
  size_t Backlog() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string PausedReason() const override ABSL_LOCKS_EXCLUDED(mutex_);
  const CommitterCounters& counters() const { return counters_; }

 private:
  struct Entry {
    Batch batch;
    absl::AnyInvocable<void() &&> on_durable;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for work; empty = the end.
  std::vector<Entry> TakeGroup() ABSL_LOCKS_EXCLUDED(mutex_);
  // Tries until it is written; false = given up.
  bool WriteGroup(const std::vector<Entry>& group) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(std::vector<Entry> group) ABSL_LOCKS_EXCLUDED(mutex_);
  // False when stopping.
  bool Pause(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Die() ABSL_LOCKS_EXCLUDED(mutex_);

  Store* const store_;
  const CommitterOptions options_;
  CommitterCounters counters_;
  std::atomic<uint64_t> durable_;

  mutable absl::Mutex mutex_;
  std::deque<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  size_t writing_ ABSL_GUARDED_BY(mutex_) = 0;  // batches in the group under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  std::string paused_reason_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// One thread.
class SyncCommitter final : public Committer {
 public:
  enum class Mode {
    kAtOnce,    // each batch in Commit
    kWhenTold,  // all that is queued in Flush: the simulation says when the disk answers
  };
  explicit SyncCommitter(Store* store, Mode mode = Mode::kAtOnce,
                         FatalHandler on_fatal = ExitOnStoreFailure);

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override;
  // Writes what is queued, in one group, and runs its effects. True if nothing is left: false on a
  // full disk (call again) and after a fatal error.
  bool Flush();
  // The process ends here: `written` of the oldest batches reached the disk, the others did not,
  // and nobody is told of any.
  void Crash(size_t written);

  uint64_t DurableSequence() const override { return durable_; }
  size_t Backlog() const override { return queue_.size(); }
  std::string PausedReason() const override { return paused_reason_; }

 private:
  Store* const store_;
  const Mode mode_;
  const FatalHandler on_fatal_;
  uint64_t durable_;
  bool dead_ = false;
  std::deque<std::pair<Batch, absl::AnyInvocable<void() &&>>> queue_;
  std::string paused_reason_;
};

}  // namespace berth

#endif  // BERTH_SERVER_COMMITTER_H_
