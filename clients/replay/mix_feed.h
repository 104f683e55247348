// Tells a simulated cluster which requests for devices come, and what they are worth, as berthd's
// MixKeeper does: for sharing policies that go by a mix. Prices come at once, not seconds later.
#ifndef BERTH_CLIENTS_REPLAY_MIX_FEED_H_
#define BERTH_CLIENTS_REPLAY_MIX_FEED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "clients/sim/sim_cluster.h"
#include "core/engine/demand_watch.h"
#include "core/engine/parameters.h"

namespace berth::replay {

class MixFeed {
 public:
  // The cluster outlives it.
  MixFeed(SharingPolicy policy, SimCluster* cluster) : policy_(policy), cluster_(*cluster) {}

  // So many tasks of the shape have come, for what is decided next.
  absl::Status Come(const TaskShape& shape, int64_t tasks);
  // They came before: nothing is told yet.
  void Know(const TaskShape& shape, int64_t tasks) { watch_.Observe(shape, tasks); }
  // Tells what is known. Does nothing under a policy that goes by no mix.
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

#endif  // BERTH_CLIENTS_REPLAY_MIX_FEED_H_
