// What a task is told of the devices that it got: in which order, and which CPUs and memory are
// near them.
#ifndef BERTH_CORE_DEVICES_HANDOVER_H_
#define BERTH_CORE_DEVICES_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/node.h"
#include "core/model/resources.h"

namespace berth {

// Their positions in NodeSpec::devices, by kind; where it is known how those of a kind are
// connected, in the order of the best ring through them (RingOrder), else as they stand there.
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

// The NUMA nodes of its GPUs and the like (of its NICs, if it has nothing else). Empty if the task
// has no devices, some NUMA node is unknown, or they have less than is asked for by it and those of
// the `others` on the node that have devices of any of them: it runs anywhere then.
NearbyHost HostNear(const NodeSpec& spec, const HostUse& task,
                    const std::vector<HostUse>& others = {});

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_HANDOVER_H_
