// Computes the distance class of every pair of devices from the PCI tree, NUMA and GPU links.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_DISTANCE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_DISTANCE_H_

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// The class of two nodes of machine.pci by PCI and NUMA (the rule of nvidia-smi and NVML):
//   their lowest common ancestor is a bridge  -> PIX if at most one bridge lies below it on either
//                                                side (one switch, or one card), else PXB
//   it is a host bridge                       -> PHB
//   there is none, but the same NUMA nodes    -> NODE, else SYS
// An index of -1 is unknown, and so is the class. Unknown NUMA nodes never count as equal.
//
//   host bridge -- root port -- switch -+- port -- gpu0       gpu0, nic: PIX
//                                       +- port -- nic        gpu0, gpu1: PXB
//                                       +- port -- switch -- port -- gpu1
LinkClass PciClass(const Machine& machine, int32_t a, int32_t b);

// Fills machine.gpu_gpu and machine.gpu_nic. Links are counted per pair: those that end at the
// other GPU or, if both GPUs connect to switches, the smaller of the two counts.
void ComputeDistances(Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_DISTANCE_H_
