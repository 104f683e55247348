// Committers: the writing side of the loop (interface in server/loop/loop.h).
//
//   GroupCommitter  has a thread; one write with one sync takes all batches queued so far
//   SyncCommitter   writes on request; for tests and simulation
//
// Both run effects in order, and only after their batch and all earlier ones are durable. While the
// disk is full they keep their batches and report it (PausedReason). Any other error is fatal: the
// handler is called once, nothing more is written or announced, and the process must end and
// restart.
#ifndef BERTH_SERVER_LOOP_COMMITTER_H_
#define BERTH_SERVER_LOOP_COMMITTER_H_

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
#include "server/loop/histogram.h"
#include "server/loop/loop.h"
#include "storage/store.h"

namespace berth {

using FatalHandler = std::function<void(const absl::Status&)>;

// Reports the failure on standard error and in the log, and ends the process with exit status 74
// (EX_IOERR) at once, without destructors: unsynced data must not be made to look clean.
void ExitOnStoreFailure(const absl::Status& status);

inline constexpr size_t kMaxGroupBatches = 256;
inline constexpr size_t kMaxGroupBytes = size_t{32} << 20;

struct CommitterOptions {
  // Why new work must wait although batches can be written; "" = it need not. Called on any thread.
  std::function<std::string()> low_space = nullptr;
  absl::Duration retry_delay = absl::Milliseconds(500);  // between tries on a full disk
  FatalHandler on_fatal = ExitOnStoreFailure;            // on the writing thread
};

// Numbers for metrics; running totals unless noted. Thread-safe to read.
struct CommitterCounters {
  std::atomic<uint64_t> batches{0}, writes{0}, bytes{0}, full_retries{0};
  Histogram write_seconds;
};

// Approximate size in bytes of a batch as written.
size_t SizeOf(const Batch& batch);

// Thread-safe.
class GroupCommitter final : public Committer {
 public:
  // `store` outlives it; nothing else appends.
  explicit GroupCommitter(Store* store, CommitterOptions options = {});
  ~GroupCommitter() override;  // Stop()

  // Writes the queue, runs the effects, and ends the thread. On a full disk it drops the queue, of
  // which nothing was announced. Batches committed later are dropped. Idempotent. Must not be
  // called from an effect.
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
  // Waits for batches; empty = the end.
  std::vector<Entry> TakeGroup() ABSL_LOCKS_EXCLUDED(mutex_);
  // Retries until written; false = given up.
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
  size_t writing_ ABSL_GUARDED_BY(mutex_) = 0;  // batches in the group being written
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  std::string paused_reason_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Single-threaded.
class SyncCommitter final : public Committer {
 public:
  enum class Mode {
    kAtOnce,   // each batch in Commit
    kOnFlush,  // the whole queue in Flush: the simulation decides when the disk responds
  };
  explicit SyncCommitter(Store* store, Mode mode = Mode::kAtOnce,
                         FatalHandler on_fatal = ExitOnStoreFailure);

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override;
  // Writes the queue in one group and runs its effects. True if nothing remains; false on a full
  // disk (call again) and after a fatal error.
  bool Flush();
  // The process ends here: the oldest `written` batches reached the disk, the others did not, and
  // no effect runs.
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
  size_t again_ = 0;  // batches of a write that found no space: the same are tried again
  std::deque<std::pair<Batch, absl::AnyInvocable<void() &&>>> queue_;
  std::string paused_reason_;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_COMMITTER_H_
