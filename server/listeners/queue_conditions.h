// Conditions of queues (v1.QueueCondition): a queue is served, but its jobs do not run. Counted as
// turns become durable, starting when this process started.
#ifndef BERTH_SERVER_LISTENERS_QUEUE_CONDITIONS_H_
#define BERTH_SERVER_LISTENERS_QUEUE_CONDITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/queue.pb.h"
#include "core/model/cluster_state.h"
#include "server/loop/turn.h"

namespace berth {

// For each queue: how many starts of its own jobs were refused in a row, regardless of the job. A
// job that starts is either first in the queue or allowed past the first. A job that began to run
// since the last refusal ends the row. As for the refusals of a job (Refusals), a refused gang
// counts once, and tasks beyond the minimum do not count. Readers are thread-safe.
class RefusedStarts final : public TurnObserver {
 public:
  static constexpr int32_t kRepeatedRefusals = 5;  // fewer are no condition

  // Takes over jobs with earlier refusals. Before the first turn.
  void Begin(const ClusterState& state);
  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  // The count if it is kRepeatedRefusals or more; otherwise 0.
  int32_t ConsecutiveRefusals(QueueId queue) const;
  int64_t Queues() const;  // number of queues for which ConsecutiveRefusals is not 0

 private:
  struct Row {
    int32_t starts = 0;
    Time last = absl::InfinitePast();
  };
  struct Change {
    QueueId queue;
    bool refused = false;  // a start was refused; otherwise one runs, or the queue is gone
    Time time;             // of the refusal; or since when it runs
  };
  void Note(const ClusterState& state, const JobStatusChanged& changed, Time time,
            std::vector<Change>* changes);
  void Apply(const std::vector<Change>& changes);

  absl::flat_hash_map<JobId, int32_t> refusals_;  // counted refusals of pending jobs; loop thread
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<QueueId, Row> rows_ ABSL_GUARDED_BY(mutex_);  // queues with any
};

// `refused`: RefusedStarts::ConsecutiveRefusals of the queue.
void RenderConditions(int32_t refused, v1::QueueStatus* out);

}  // namespace berth

#endif  // BERTH_SERVER_LISTENERS_QUEUE_CONDITIONS_H_
