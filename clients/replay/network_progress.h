// Jobs progress as fast as the network lets them: what a job has left to do, at which rate it goes
// on, and so when it ends (docs/network-model.md).
//
//   two jobs of 100 s each, alone at rate 1, sharing a link at rate 1/2; the first starts at 0, the
//   second at 40: the first has 60 s left, ends at 160; the second has then done 60 s, ends at 200
//
// A job whose tasks do not all run makes no progress; one that starts anew begins with all its
// work.
#ifndef BERTH_CLIENTS_REPLAY_NETWORK_PROGRESS_H_
#define BERTH_CLIENTS_REPLAY_NETWORK_PROGRESS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "clients/replay/link_shares.h"
#include "clients/replay/network_file.h"
#include "clients/replay/network_map.h"
#include "clients/replay/progress.h"
#include "clients/replay/workload.h"

namespace berth::replay {

struct NetworkRun {
  // Of jobs that finished their work, are of a class and have two workers or more.
  std::vector<double> slowdowns;
  std::map<std::string, double> traffic;  // bytes, by what they left (NetworkMap::TierOf)
  // What is left to do of those that ended at their walltime before, by place in the workload.
  std::map<size_t, Duration> stopped;
};

class NetworkProgress : public Progress {
 public:
  // Both outlive it.
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
    Time since;  // up to when `left` is reckoned
    Ring ring;
  };
  // Null: where its tasks are makes no difference.
  const Training* TrainingOf(const Work& work) const;
  void Begin(const ClusterState& state, JobId id, Time now, Work* work);
  void Pause(JobId id, Time now, Work* work);
  void Reckon(Time now, Work* work);
  void End(JobId id, Time now);
  void Look(const SimCluster& cluster, JobId id);

  const Workload& workload_;
  const Network& network_;
  NetworkMap map_;
  LinkShares links_;
  std::map<JobId, Work> work_;  // of jobs that have not ended
  std::set<JobId> changed_;     // something was decided about them since Settled
  std::set<JobId> paced_;       // their rate may be another one
  NetworkRun run_;
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_NETWORK_PROGRESS_H_
