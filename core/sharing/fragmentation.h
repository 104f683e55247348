// How much of what is left on a node the next request is expected to find of no use.
//
// Fragmentation (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC'23): of what is left, the part that a request drawn
// from the mix cannot use; all of it, if it finds no place at all.
//
//   one device with 400 left, one with 1000; half of the requests ask for 500, half for one whole
//     each of them can use 1000 of the 1400, so 400 is fragmented
//
// Stranding: CPU left without devices to go with, or devices without CPU, by what goes with one
// device on the average.
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
  std::vector<RequestType> types_;  // those that ask for devices
  int64_t weight_;                  // of all
};

// 0 if nothing is known of what goes with a device.
int64_t Stranding(const NodeRoom& room, int64_t cpu_millis_per_device);

// FGD's own score of a placement, 0 to 99, more is better: the whole part of 100 / (1 + exp(-x)),
// where x is by how many devices fragmentation falls. Being coarse, it leaves many placements
// equal, and so lets the order of nodes decide; this consolidates.
int64_t FragmentationGain(int64_t before, int64_t after);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_FRAGMENTATION_H_
