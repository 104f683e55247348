// What the kernel tells in /sys beyond hwloc: AMD GPUs without any of AMD's libraries, and the
// ports of NICs. `root` is "" or a folder with a copy of /sys.
#ifndef BERTH_CLIENTS_DISCOVERY_SYSFS_H_
#define BERTH_CLIENTS_DISCOVERY_SYSFS_H_

#include <string>
#include <vector>

#include "clients/discovery/machine.h"

namespace berth::discovery {

// The file's text without blanks at its ends; "" if it cannot be read. At most 64 KiB.
std::string ReadSysFile(const std::string& path);
// Names in the folder, numbers by value, others by name.
std::vector<std::string> ListSysFolder(const std::string& path);

// GUID, state and speed of the NICs that have none yet.
void JoinNicPorts(const std::string& root, Machine* machine);

// UUID, model and memory of AMD GPUs from their PCI function, and from the compute nodes of the
// kernel (kfd): what the GPU is divided into (MI300 partitions are several nodes on one function,
// and become several GPUs) and its XGMI links. A function without any compute node is no GPU that
// can be used, if others have some: its `problem` says so.
void JoinAmd(const std::string& root, Machine* machine);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_SYSFS_H_
