// Reports the mix of device requests and their prices to a simulated cluster, like MixKeeper of
// berthd, for sharing policies that use a mix. Prices arrive at once, not seconds later.
#ifndef BERTH_OFFLINE_REPLAY_MIX_FEED_H_
#define BERTH_OFFLINE_REPLAY_MIX_FEED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/engine/parameters.h"
#include "core/engine/search/demand_watch.h"
#include "offline/sim/sim_cluster.h"

namespace berth::replay {

class MixFeed {
 public:
  // `cluster` must outlive this.
  MixFeed(SharingPolicy policy, SimCluster* cluster) : policy_(policy), cluster_(*cluster) {}

  // This many tasks of the shape have arrived, before the next decision.
  absl::Status Come(const TaskShape& shape, int64_t tasks);
  // Likewise, but in advance: reports nothing yet.
  void Know(const TaskShape& shape, int64_t tasks) { watch_.Observe(shape, tasks); }
  // Reports the known mix. Does nothing under a policy that uses no mix.
  absl::Status Give();

  bool learns() const {
    return policy_ != SharingPolicy::kBinpack && policy_ != SharingPolicy::kSpread;
  }
  int64_t given() const { return given_; }  // RequestMixChanged

 private:
  const SharingPolicy policy_;
  SimCluster& cluster_;
  DemandWatch watch_;
  int64_t given_ = 0;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_MIX_FEED_H_
