// Conditions of queues (v1.QueueCondition): a queue is served, but what is served does not run.
// Counted as turns become durable, and not known of the time before this process started.
#ifndef BERTH_SERVER_QUEUE_CONDITIONS_H_
#define BERTH_SERVER_QUEUE_CONDITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/queue.pb.h"
#include "core/model/cluster_state.h"
#include "server/turn.h"

namespace berth {

// Of each queue: how many starts of its own jobs were refused in a row, whichever jobs these were.
// Whoever is started is first in the queue then, or was let past the first. A job that began to run
// since the last refusal ends the row. As the refusals of a job (Refusals), a gang that is refused
// counts once, and tasks beyond the minimum do not count. Readers are thread-safe.
class RefusedStarts final : public TurnObserver {
 public:
  static constexpr int32_t kAgainAndAgain = 5;  // fewer are no condition

  // Jobs that were refused before this began. Before the first turn.
  void Begin(const ClusterState& state);
  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  // If these are kAgainAndAgain or more; else 0.
  int32_t InARow(QueueId queue) const;
  int64_t Queues() const;  // of which that is so

 private:
  struct Row {
    int32_t starts = 0;
    Time last = absl::InfinitePast();
  };
  struct Change {
    QueueId queue;
    bool refused = false;  // a start was; else one runs, or the queue is gone
    Time time;             // of the refusal; since when it runs
  };
  void Note(const ClusterState& state, const JobStatusChanged& changed, Time time,
            std::vector<Change>* changes);
  void Apply(const std::vector<Change>& changes);

  absl::flat_hash_map<JobId, int32_t> refusals_;  // counted of jobs that wait; loop thread
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<QueueId, Row> rows_ ABSL_GUARDED_BY(mutex_);  // of those with any
};

// `refused`: RefusedStarts::InARow of the queue.
void RenderConditions(int32_t refused, v1::QueueStatus* out);

}  // namespace berth

#endif  // BERTH_SERVER_QUEUE_CONDITIONS_H_
