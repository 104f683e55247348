// ProgressBook: what running tasks told about their progress, as their agents pass it on
// (docs/developers/progress.md). It keeps the latest in memory, and makes facts of what decisions
// depend on: TaskReady, CheckpointRecorded, TaskHung.
#ifndef BERTH_SERVER_CONTROLLERS_PROGRESS_BOOK_H_
#define BERTH_SERVER_CONTROLLERS_PROGRESS_BOOK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/agent.pb.h"
#include "berth/v1/job.pb.h"
#include "server/controllers/hang_rule.h"
#include "server/controllers/stragglers.h"
#include "server/loop/turn.h"

namespace berth {

inline constexpr int kMaxToldTasks = 1000;  // in one message
inline constexpr size_t kMaxToldStatus = 256;

// Running totals for metrics.
struct ProgressCounters {
  std::atomic<uint64_t> messages{0}, tasks{0}, stale{0}, dropped_datagrams{0};
};

// Whether a message of an agent is within the limits.
absl::Status ValidateProgress(const v1::Progress& progress);

class ProgressBook final : public TurnObserver {
 public:
  // Checkpoints of a gang, or of a task that runs alone, become facts at most this often.
  static constexpr Duration kRecordEvery = absl::Seconds(5);

  // `facts`: whether the store can hold the events; asked in turns. It reads no more than an
  // atomic.
  explicit ProgressBook(std::function<bool()> facts) : facts_(std::move(facts)) {}

  // In a turn: what the tasks of that node told. Ignores what is not of the current attempt of a
  // task that runs there. `progress` is valid.
  void Note(Turn& turn, NodeId node, const v1::Progress& progress) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets what has ended.
  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets `progress` and the conditions SLOW_NODE and IDLE_DEVICES, if there is something to say.
  void Render(const ClusterState& state, const Job& job, v1::JobStatus* out) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The least step of each job that reports steps: at most `most` jobs, the oldest ones.
  std::vector<std::pair<JobId, int64_t>> Steps(size_t most) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nodes that are slow for some job; and the jobs that have one.
  int64_t SlowNodes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t SlowJobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Jobs of which a task has idle devices: all its tasks, if it has no others with devices.
  int64_t IdleJobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  const ProgressCounters& counters() const { return counters_; }

 private:
  struct Told : ToldProgress {
    uint32_t attempt = 0;
    bool prepares = false;  // `status` says what is done before the task runs
    int64_t step_time_us = 0;
    uint64_t dropped = 0;
    std::string status;
    Duration idle = absl::ZeroDuration();    // its devices; 0: they are in use, or for a short time
    Duration unused = absl::ZeroDuration();  // by anybody; 0: it is used, or for a short time
  };
  struct OfJob {
    absl::flat_hash_map<uint32_t, Told> tasks;
    Stragglers stragglers;
    // The task that has come least far; nullopt: none reports steps.
    std::optional<std::pair<uint32_t, int64_t>> Behind() const;
  };
  // How long all devices of all running tasks have been idle; nullopt: they are not.
  static std::optional<Duration> IdleTime(const Job& job, const OfJob& of_job);
  void SuspendIdle(Turn& turn, JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long none of its running tasks has been used; nullopt: one is.
  static std::optional<Duration> UnusedTime(const Job& job, const OfJob& of_job);
  void EndUnused(Turn& turn, JobId id, v1::Interactive::Action action) ABSL_LOCKS_EXCLUDED(mutex_);
  static v1::JobProgress Sum(const Job& job, const OfJob& of_job);

  void Keep(const Job& job, TaskKey key, const v1::TaskProgress& progress, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Record(Turn& turn, TaskKey key, const v1::TaskProgress& progress);
  void Judge(Turn& turn, JobId id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const ClusterState& state, JobId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<bool()> facts_;
  ProgressCounters counters_;
  mutable absl::Mutex mutex_;
  std::map<JobId, OfJob> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_PROGRESS_BOOK_H_
