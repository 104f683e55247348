// Data from /sys beyond hwloc: AMD GPUs without any of AMD's libraries, and the ports of NICs.
// `root` is "" or a folder with a copy of /sys.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_SYSFS_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_SYSFS_H_

#include <string>
#include <vector>

#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// The file's text, trimmed; "" if it cannot be read. At most 64 KiB.
std::string ReadSysFile(const std::string& path);
// Names in the folder: numbers by value, others by name.
std::vector<std::string> ListSysFolder(const std::string& path);

// Fills in GUID, state and speed of NICs that have none yet.
void JoinNicPorts(const std::string& root, Machine* machine);

// UUID, model and memory of AMD GPUs from their PCI function; partitions and XGMI links from the
// compute nodes of the kernel (kfd). MI300 partitions are several compute nodes on one function,
// and become several GPUs. If other functions have compute nodes, a function without one is
// unusable: its `problem` says so.
void JoinAmd(const std::string& root, Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_SYSFS_H_
