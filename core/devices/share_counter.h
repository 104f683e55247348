// How queues count shares requested by memory: as the part that they take of the suitable device
// with the least memory, whether or not it is in use. It is computed once, when the job is
// submitted, and kept with the job. What a share takes of an actual device depends on that device
// (ShareOn).
//
//   20 GiB; devices of 40 and 80 GiB suit: counts 500, and takes 250 of one of 80
#ifndef BERTH_CORE_DEVICES_SHARE_COUNTER_H_
#define BERTH_CORE_DEVICES_SHARE_COUNTER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/cluster_state.h"
#include "core/model/job.h"

namespace berth {

// The state must outlive it and not change.
class ShareCounter {
 public:
  explicit ShareCounter(const ClusterState& state) : state_(state) {}

  // For all groups. If no device suits (yet), a share by memory counts as a whole one.
  void Count(JobSpec* spec);

 private:
  int32_t CountOf(const DeviceRequest& request);

  const ClusterState& state_;
  std::vector<std::pair<DeviceRequest, int32_t>> known_;  // jobs of one call have similar requests
};

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_SHARE_COUNTER_H_
