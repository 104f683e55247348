// Jobs progress as fast as the network permits: computes the remaining work of each job, its rate,
// and therefore its end (docs/developers/network-model.md).
//
//   two jobs of 100 s each, alone at rate 1, sharing a link at rate 1/2; the first starts at 0, the
//   second at 40: the first has 60 s left, ends at 160; the second has then done 60 s, ends at 200
//
// A job makes no progress unless all its tasks run. A restarted job begins with all its work.
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_PROGRESS_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_PROGRESS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "offline/replay/link_shares.h"
#include "offline/replay/network_file.h"
#include "offline/replay/network_map.h"
#include "offline/replay/progress.h"
#include "offline/replay/workload.h"

namespace berth::replay {

struct NetworkRun {
  // For jobs that finished their work, have a class and two workers or more.
  std::vector<double> slowdowns;
  std::map<std::string, double> traffic;  // bytes, by origin (NetworkMap::TierOf)
  // Remaining work of jobs that ended at their walltime, by index in the workload.
  std::map<size_t, Duration> stopped;
};

class NetworkProgress : public Progress {
 public:
  // Both must outlive this.
  NetworkProgress(const Workload& workload, const Network& network)
      : workload_(workload), network_(network), map_(network.defaults) {}

  void Submitted(JobId job, size_t index) override;
  void Stopped(JobId job) override { changed_.insert(job); }
  void Decided(const SimCluster& cluster, const EventBody& decision) override;
  void Settled(SimCluster* cluster) override;
  NetworkRun Take() { return std::move(run_); }

 private:
  struct Work {
    size_t index = 0;  // in the workload
    Duration left;     // of its run time
    uint32_t starts = 0;
    Time began;  // the latest start
    // While all its tasks run.
    bool running = false;
    double rate = 0;
    Time since;  // `left` is computed up to this time
    Ring ring;
  };
  // Null: the places of its tasks make no difference.
  const Training* TrainingOf(const Work& work) const;
  void Begin(const ClusterState& state, JobId id, Time now, Work* work);
  void Pause(JobId id, Time now, Work* work);
  void UpdateRemaining(Time now, Work* work);
  void End(JobId id, Time now);
  void Look(const SimCluster& cluster, JobId id);

  const Workload& workload_;
  const Network& network_;
  NetworkMap map_;
  LinkShares links_;
  std::map<JobId, Work> work_;  // of jobs that have not ended
  std::set<JobId> changed_;     // with decisions since Settled
  std::set<JobId> paced_;       // their rate may have changed
  NetworkRun run_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_PROGRESS_H_
