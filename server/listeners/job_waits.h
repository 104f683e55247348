// How long jobs wait for a decision, and how long what was decided takes until it runs.
#ifndef BERTH_SERVER_LISTENERS_JOB_WAITS_H_
#define BERTH_SERVER_LISTENERS_JOB_WAITS_H_

#include "absl/container/flat_hash_map.h"
#include "core/model/cluster_state.h"
#include "server/loop/histogram.h"
#include "server/loop/turn.h"

namespace berth {

// Of jobs that are placed while this process runs. Runs on the loop thread; the histograms are
// thread-safe.
class JobWaits final : public TurnObserver {
 public:
  static constexpr absl::Duration kUnit = absl::Milliseconds(1);

  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  // From a job's submission, or its start time if that is later, to its first placement.
  const Histogram& decisions() const { return decisions_; }
  // From each placement of a gang until it runs.
  const Histogram& starts() const { return starts_; }

 private:
  void NotePlaced(const ClusterState& state, const TasksBound& bound, Time time);
  void NoteStatus(const JobStatusChanged& changed, Time time);

  absl::flat_hash_map<JobId, Time> placed_;  // jobs that were placed and have not run since
  Histogram decisions_{kUnit}, starts_{kUnit};
};

}  // namespace berth

#endif  // BERTH_SERVER_LISTENERS_JOB_WAITS_H_
