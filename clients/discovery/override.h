// Where devices sit, as an operator's file tells, for virtual machines that hide their switches.
#ifndef BERTH_CLIENTS_DISCOVERY_OVERRIDE_H_
#define BERTH_CLIENTS_DISCOVERY_OVERRIDE_H_

#include "clients/discovery/machine.h"

namespace berth::discovery {

// Moves the devices of `machine` to where `told` has the same PCI address: place in the tree, NUMA
// node, and links of GPUs that show none. What a device is (model, memory, health) stays. Devices
// that `told` does not know stay where they are; a warning names them, and those that only `told`
// knows.
void ApplyOverride(const Machine& told, Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_OVERRIDE_H_
