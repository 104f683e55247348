// The part of a node's remaining room that the next request is expected to be unable to use.
//
// Fragmentation (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC'23): of the remaining devices, the part that a
// request drawn from the mix cannot use; all of it, if the request does not fit.
//
//   one device with 400 left, one with 1000; half of the requests ask for 500, half for one whole
//     each of them can use 1000 of the 1400, so 400 is fragmented
//
// Stranding: remaining CPU without devices to go with it, or devices without CPU, given the average
// CPU per device.
//
//   12 CPUs go with a device; 30 CPUs and one device left: 18 CPUs are stranded, 1.5 devices' worth
//
// Both in millionths of a device.
#ifndef BERTH_CORE_SHARING_FRAGMENTATION_H_
#define BERTH_CORE_SHARING_FRAGMENTATION_H_

#include <cstdint>
#include <vector>

#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"

namespace berth {

class Fragmentation {
 public:
  explicit Fragmentation(const RequestMix& mix);
  int64_t Of(const NodeRoom& room) const;

 private:
  std::vector<RequestType> types_;  // those that request devices
  int64_t weight_;                  // of all types
};

// 0 if the average CPU per device is unknown.
int64_t Stranding(const NodeRoom& room, int64_t cpu_millis_per_device);

// FGD's own score of a placement, 0 to 99, higher is better: the integer part of 100 / (1 +
// exp(-x)), where x is by how many devices fragmentation falls. It is coarse, so that many
// placements are equal and the order of nodes decides; this consolidates.
int64_t FragmentationGain(int64_t before, int64_t after);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_FRAGMENTATION_H_
