// HistoryKeeper: follows the store's log, folds it (core/history/usage_fold.h), and keeps the
// figures in a database (docs/developers/history.md). Each step reads a bounded number of turns and
// is one atomic write with the position, so a crash loses nothing: the next step folds the same
// turns again. One thread, but for what says otherwise.
#ifndef BERTH_SERVER_HISTORY_HISTORY_KEEPER_H_
#define BERTH_SERVER_HISTORY_HISTORY_KEEPER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/store/v1/history.pb.h"
#include "core/history/usage_fold.h"
#include "server/history/history_db.h"
#include "storage/codec.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

struct HistoryOptions {
  std::string directory;  // "" = in memory
  std::function<std::string(const std::map<std::string, std::string>&)> account_of;
  absl::Duration minutes = absl::Hours(24 * 30);  // for which rows of minutes are kept
  absl::Duration hours = absl::Hours(24 * 400);   // those of hours and days, and ended jobs
  uint64_t max_bytes = uint64_t{4} << 30;
  size_t keys = 10'000;
  // No room on the disk: it writes nothing. Null: there always is.
  std::function<bool()> low_space;
};

// For metrics; thread-safe.
struct HistoryCounters {
  std::atomic<uint64_t> revision{0};  // folded
  std::atomic<int64_t> time_ms{0};    // of the fold; 0: it has not begun
  std::atomic<uint64_t> events{0}, rows_written{0}, jobs_written{0};  // since the start
  std::atomic<uint64_t> begun_again{0};  // how often it could not continue
  std::atomic<uint64_t> bytes{0};        // of the database
  std::atomic<uint64_t> keys{0};         // combinations in use
  std::atomic<bool> failed{false};       // the last step
};

class HistoryKeeper {
 public:
  // The store and the clock outlive it. Nothing is opened before the first step.
  HistoryKeeper(HistoryOptions options, const Store* store, Clock* clock);
  ~HistoryKeeper();

  // Folds at most kTurnsAtOnce turns up to the store's last one. True: there are more. An error is
  // repeated by the next step, which begins with what the database has.
  absl::StatusOr<bool> Step();
  // Nothing happens before `now` any more but what is in turns up to `revision`. False: it is not
  // that far yet.
  absl::StatusOr<bool> PassTime(uint64_t revision, Time now);
  // Deletes what is too old or too much, and adds up days. About every kTidy.
  absl::Status Tidy();

  static constexpr size_t kTurnsAtOnce = 256;
  static constexpr size_t kChangesAtOnce = 20'000;
  static constexpr absl::Duration kTidy = absl::Minutes(10);

  uint64_t done() const { return position_.revision(); }
  const UsageFold* fold() const { return fold_.has_value() ? &*fold_ : nullptr; }

  // Thread-safe. FAILED_PRECONDITION: it has not begun, and why. Queries read from it.
  absl::StatusOr<std::shared_ptr<HistoryDb>> database() const ABSL_LOCKS_EXCLUDED(mutex_);
  const HistoryCounters& counters() const { return counters_; }

 private:
  // Beginning (history_begin.cc).
  absl::Status Begin();
  absl::StatusOr<std::string> CannotContinue() const;
  absl::Status BeginAgain(const std::string& why);
  absl::Status LoadFold();
  absl::Status LoadOpenRows(const HistoryDb::View& view);
  void KeepKnown(const store::v1::HistoryPosition& old, int64_t begin_ms);
  absl::StatusOr<uint64_t> LoadBase(UsageFold& fold);
  // Without a value: it is not kept after all.
  using KeepRecord =
      absl::FunctionRef<absl::Status(HistoryFamily, absl::string_view, std::optional<std::string>)>;
  static absl::Status LoadRecord(UsageFold& fold, RecordKind kind, absl::string_view key,
                                 absl::string_view value, KeepRecord keep);
  absl::Status WriteLoaded(const UsageFold& fold);
  absl::StatusOr<Time> TimeAfter(uint64_t revision) const;
  absl::Status CloseOpenRows(int64_t time_ms, HistoryBatch* batch) const;
  void ForgetAfter(int64_t from_ms, HistoryBatch* batch) const;
  UsageOptions FoldOptions() const;

  // Folding (history_keeper.cc).
  absl::Status Fold(uint64_t sequence, absl::string_view turn);
  absl::Status PassTo(Time time);
  absl::Status Apply(const Event& event);
  absl::Status Commit();
  void PutRows(const HistoryChanges& changes, HistoryBatch* batch);
  void PutState(const HistoryChanges& changes, HistoryBatch* batch);
  absl::Status PutEnded(const EndedJobFacts& job, HistoryBatch* batch);
  absl::StatusOr<bool> StepOrFail();
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Days and bounds (history_tidy.cc).
  absl::Status AddUpDays();
  absl::Status AddUpDay(int64_t begin_ms, HistoryBatch* batch) const;
  absl::Status DropBefore(int64_t minutes_ms, int64_t hours_ms);
  absl::Status KeepToSize();

  const HistoryOptions options_;
  const Store* const store_;
  Clock* const clock_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<HistoryDb> shared_ ABSL_GUARDED_BY(mutex_);  // once it has begun
  std::string why_not_ ABSL_GUARDED_BY(mutex_) = "it has not begun yet";

  std::shared_ptr<HistoryDb> db_;
  std::optional<UsageFold> fold_;  // while it follows
  store::v1::HistoryPosition position_;
  // Since the last commit.
  std::map<QueueId, QueueSpec> new_queues_;
  std::map<JobId, JobSpec> new_jobs_;
  std::map<JobId, std::map<std::string, std::string>> new_labels_;
  // The revision at which folding failed, so that beginning again is tried once.
  std::optional<uint64_t> failed_at_;
  HistoryCounters counters_;
};

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_HISTORY_KEEPER_H_
