// Positions of devices from an operator's file, for virtual machines that hide their switches.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_OVERRIDE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_OVERRIDE_H_

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// Moves the devices of `machine` to the position of the same PCI address in `given`: place in the
// tree, NUMA node, and links of GPUs that report none. Model, memory and health stay. Devices that
// are not in `given` stay where they are. A warning names these devices, and those that are only in
// `given`.
void ApplyOverride(const Machine& given, Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_OVERRIDE_H_
