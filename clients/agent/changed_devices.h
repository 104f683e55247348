// The parts of a node's inventory whose change makes the agent register again: devices, their
// topology, their fabric, and taints.
#ifndef BERTH_CLIENTS_AGENT_CHANGED_DEVICES_H_
#define BERTH_CLIENTS_AGENT_CHANGED_DEVICES_H_

#include <string>

#include "berth/v1/node.pb.h"

namespace berth {

// The parts that differ, for logs: "devices, taints"; "" = none, so that no registration is needed.
// The topology counts only if there are devices.
std::string ChangedDevices(const v1::NodeInventory& before, const v1::NodeInventory& now);

// Virtual machines gain and lose memory all the time (ballooning), so the sizes of their NUMA nodes
// change slightly between scans. A difference of at most a sixteenth is ignored.
void KeepMemory(const v1::DeviceTopology& before, v1::DeviceTopology* now);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_CHANGED_DEVICES_H_
