// Placement information given to a task: the order of its devices, and the CPUs and memory near
// them.
#ifndef BERTH_CORE_DEVICES_HANDOVER_H_
#define BERTH_CORE_DEVICES_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/node.h"
#include "core/model/resources.h"

namespace berth {

// Positions in NodeSpec::devices, by kind. Within a kind whose links are known, they are in the
// order of the best ring (RingOrder); otherwise in the order of NodeSpec::devices.
std::vector<size_t> OrderOfDevices(const Node& node, const DeviceSet& devices);

struct NearbyHost {
  std::string cpus;                   // "0-15,32-47"
  std::vector<int32_t> memory_nodes;  // ascending
};

struct HostUse {
  DeviceSet devices;
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
};

// The NUMA nodes of the task's GPUs and other accelerators, or of its NICs if it has nothing else.
// Empty, so that it runs anywhere, if it has no devices, a NUMA node is unknown, or they have less
// than what it and those of the `others` with devices in them request.
NearbyHost HostNear(const NodeSpec& spec, const HostUse& task,
                    const std::vector<HostUse>& others = {});

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_HANDOVER_H_
