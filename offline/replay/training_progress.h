// Jobs that save their work from time to time, stand still when a fault strikes, and start again
// from their last checkpoint: computes when they end, and what became of the time
// (docs/developers/replay.md, "Training jobs and faults").
//
// A job trains while all its tasks run. When one of them stops, for whatever reason, the work since
// the last checkpoint is lost.
#ifndef BERTH_OFFLINE_REPLAY_TRAINING_PROGRESS_H_
#define BERTH_OFFLINE_REPLAY_TRAINING_PROGRESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "offline/replay/progress.h"
#include "offline/replay/training_costs.h"
#include "offline/replay/workload.h"

namespace berth::replay {

// What became of the time from a job's first start to its end; the parts add up to it.
struct TimeSpent {
  Duration useful, lost;  // work
  Duration checkpoints, restarts;
  Duration undetected;  // it stood still because of a fault, and nobody knew
  Duration waiting;     // for places
  Duration Sum() const;
};

struct TrainingRun {
  std::map<size_t, TimeSpent> spent;  // of jobs that started and ended, by index in the workload
  std::set<size_t> stopped;           // of these: at their walltime, with work left
};

class TrainingProgress : public Progress {
 public:
  // `costs`: of each job. The workload must outlive this.
  TrainingProgress(const Workload& workload, std::vector<TrainingCosts> costs)
      : workload_(workload), costs_(std::move(costs)) {}

  void Submitted(JobId job, size_t index) override;
  void Stopped(JobId job) override { changed_.insert(job); }
  void Decided(const SimCluster& cluster, const EventBody& decision) override;
  void Settled(SimCluster* cluster) override;
  void StandsStill(SimCluster* cluster, JobId job) override;
  void NodeStands(SimCluster* cluster, NodeId node, bool stands) override;
  std::optional<Duration> CheckpointInterval(size_t index) const override {
    return costs_[index].interval;
  }
  Duration Unsaved(JobId job, Time now) const override;
  TrainingRun Take() { return std::move(run_); }

 private:
  struct Work {
    size_t index = 0;  // in the workload
    Duration left;     // that is not saved
    bool started = false, running = false, again = false;
    uint64_t attempts = 0;  // of all its tasks, while it runs: another sum is another start
    Time since;             // it runs, or does not
    Time stands = absl::InfiniteFuture();  // while it runs: from when on it stands still
    TimeSpent spent;
  };
  const TrainingCosts& CostsOf(const Work& work) const { return costs_[work.index]; }
  TrainingTime TimeOf(const Work& work, Time now) const;
  void Begin(SimCluster* cluster, JobId id, Work* work);
  void Pause(Time now, Work* work);
  void End(JobId id, Time now);
  void Look(SimCluster* cluster, JobId id);
  bool OnBadNode(const Job& job) const;

  const Workload& workload_;
  const std::vector<TrainingCosts> costs_;
  std::map<JobId, Work> work_;  // of jobs that have not ended
  std::set<JobId> changed_;     // with decisions since Settled
  std::set<NodeId> bad_;
  TrainingRun run_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_TRAINING_PROGRESS_H_
