// What of a node's inventory makes the agent register anew when it changes: its devices, how they
// are connected, the fabric they are part of, and taints.
#ifndef BERTH_CLIENTS_AGENT_TOLD_DEVICES_H_
#define BERTH_CLIENTS_AGENT_TOLD_DEVICES_H_

#include <string>

#include "berth/v1/node.pb.h"

namespace berth {

// Which parts differ, for people: "devices, taints"; "" = none, and the server needs to hear
// nothing. The topology is that of devices: without any it does not count.
std::string ChangedDevices(const v1::NodeInventory& before, const v1::NodeInventory& now);

// Virtual machines are given and taken memory all the time (ballooning), and with it the sizes of
// their NUMA nodes change a little from look to look. What differs by at most a sixteenth stays as
// it was.
void KeepMemory(const v1::DeviceTopology& before, v1::DeviceTopology* now);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TOLD_DEVICES_H_
