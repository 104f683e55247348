// Renders a machine for people and for programs.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_RENDER_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_RENDER_H_

#include <string>

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// The tree (packages, NUMA nodes, PCI with the devices) and the matrix of distances, as UTF-8
// lines. Control characters in names become "?".
std::string RenderTable(const Machine& machine);

// Every field of machine.h, names in lowerCamelCase; PCI addresses and enumerations as words. One
// document, indented by two. Bytes that are not UTF-8 become "?".
std::string RenderJson(const Machine& machine);

// The name of a device in both: "gpu0", "npu3" by index in machine.gpus; a NIC has its own name.
std::string DeviceName(const Machine& machine, size_t gpu);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_RENDER_H_
