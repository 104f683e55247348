// What queues count of shares that are asked for by memory: the part of a device that they take
// where the devices that suit have the least memory, whoever uses them now. It is worked out once,
// when the job is submitted, and kept with it; what a share takes of a device is that device's
// business (ShareOn).
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

  // Of all groups. Where no device suits, yet, a share by memory counts as a whole one.
  void Count(JobSpec* spec);

 private:
  int32_t CountOf(const DeviceRequest& request);

  const ClusterState& state_;
  std::vector<std::pair<DeviceRequest, int32_t>> known_;  // jobs of one call ask for much the same
};

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_SHARE_COUNTER_H_
