// Measures a replay while it runs, besides the times of its jobs (docs/developers/replay.md, "What
// comes out").
//
// Every figure is an integral over simulated time of a value that only events change. Jobs and
// nodes touched by an event are noted, and evaluated once when time advances. So a moment in which
// a thousand tasks of a job end costs one look at the job and one at each node, and the cluster is
// never scanned.
#ifndef BERTH_OFFLINE_REPLAY_METER_H_
#define BERTH_OFFLINE_REPLAY_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "offline/replay/record.h"
#include "offline/replay/replay.h"
#include "offline/replay/room_meter.h"
#include "offline/replay/share_meter.h"

namespace berth::replay {

class Meter {
 public:
  // `queue_of`: the queue of each job of the workload. All nodes must be registered. Keeps
  // references to all of these.
  Meter(const Workload& workload, const std::vector<std::string>& queue_of,
        const ClusterState& state, const ReplayOptions& options, ReplayRun* run);

  // The next job of the workload was submitted with this id.
  void Submitted(JobId id);
  // Its place in the workload.
  size_t IndexOf(JobId id) const { return static_cast<size_t>(id.value - first_job_); }
  // Call before and after an event is applied.
  void Before(const EventBody& event, Time now);
  void After(const EventBody& event);
  // A fault stops this job; null: not by a failure of this task. Call before the event.
  void Fails(JobId job, const TaskReported* failed, Time now);
  // Advances time by `seconds` without events.
  void Pass(double seconds);
  // Writes the results into the run.
  void Finish();

 private:
  struct OwnerSet {
    std::vector<std::string> names;
    std::vector<size_t> of_job;  // by index in the workload
    std::vector<Amounts> lost, lost_to_failures;
  };
  static OwnerSet OwnersOf(const Workload& workload, const std::vector<std::string>* queue_of);
  static std::vector<int32_t> WeightsOf(const OwnerSet& queues, const ClusterState& state);
  void Touch(JobId id);
  void Touch(NodeId id);
  void TouchTasksOf(NodeId node);
  void Look(size_t job);
  void Look();
  void Lose(const Job& job, uint32_t task, Time now, bool failure);
  void AddLost(const Job& job, uint32_t task, Duration lost, bool failure);
  void Released(const TasksReleased& released, Time now);
  void Requeued(const TasksRequeued& requeued, Time now);
  void NodeFails(NodeId id, Time now);
  Resources HeldBy(const Job& job) const;
  void Move(size_t job, const Resources& amounts, int64_t times, int waiting);
  std::vector<OwnerSum> SumsOf(const OwnerSet& owners, const ShareMeter& shares) const;

  const ClusterState& state_;
  const Progress* const progress_;  // may be null
  ReplayRun& run_;
  OwnerSet queues_, users_;
  ShareMeter queue_shares_, user_shares_, total_;
  Amounts lost_, lost_to_failures_;
  absl::flat_hash_map<TaskKey, Time> stopped_;  // until when its resources are counted as lost
  std::pair<JobId, Time> evicted_;              // the latest
  FragmentationMeter rooms_;
  int64_t first_job_ = 0;
  absl::flat_hash_map<size_t, Resources> held_;  // by jobs that hold resources
  std::vector<JobId> jobs_;                      // touched; may repeat
  std::vector<NodeId> nodes_;                    // likewise
  int64_t waiting_ = 0;
  double now_ = 0;
  Recorder recorder_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_METER_H_
