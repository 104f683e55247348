// hwloc's matrices of NVLink and XGMI bandwidth, for machines saved with NVML or ROCm.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_LINKS_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_LINKS_H_

#include <hwloc.h>

#include <map>
#include <vector>

#include "clients/agent/discovery/assemble.h"

namespace berth::discovery {

// Where an hwloc object ended up: a draft, and one of its names (-1: the function itself).
struct DraftPlace {
  size_t draft = 0;
  int32_t os_device = -1;
};
using DraftPlaces = std::map<hwloc_obj_t, DraftPlace>;

// Adds its links to each GPU's name. hwloc reports MB/s for each pair; the number of links follows
// from the model's bandwidth per link, and stays unknown if it does not divide evenly.
void AddHwlocLinks(hwloc_topology_t topology, const DraftPlaces& places,
                   std::vector<PciDraft>* drafts);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_HWLOC_LINKS_H_
