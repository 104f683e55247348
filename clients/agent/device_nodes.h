// The device files below /dev, as reported by the kernel's drivers.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
#define BERTH_CLIENTS_AGENT_DEVICE_NODES_H_

#include <map>
#include <string>
#include <vector>

#include "berth/v1/agent.pb.h"
#include "clients/agent/device_access.h"
#include "clients/agent/device_inventory.h"

namespace berth {

// Files of NVIDIA's driver. A whole GPU is /dev/nvidiaN. A MIG instance is its GPU's file plus the
// right to use it: to open /dev/nvidia-caps/nvidia-capC, one for the GPU instance and one for its
// compute instance. /proc/driver/nvidia-caps maps each capC.
struct NvidiaFiles {
  std::map<std::string, int> minors;    // UUID of a GPU -> N
  std::map<std::string, int> caps;      // "gpu0/gi3/access" -> C; N is the GPU's minor
  int caps_major = 0;                   // 0: the driver has none
  std::map<std::string, MigPlace> mig;  // from discovery
};

// Reads all but `mig`. `proc` is /proc, or a copy for tests.
NvidiaFiles ReadNvidiaFiles(const std::string& proc = "/proc");

// The device numbers that the task must not open: "195:N" of every GPU that it does not have, in
// whole or in part, and "MAJOR:C" of every instance that it does not have and of the rights to
// configure MIG and to monitor all instances. Empty if the task has a device that is unknown here:
// then the devices of others are unknown, too. Then the numbers of files of other vendors' devices
// that it does not have.
std::vector<std::string> DeniedDevices(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                       const std::vector<DeviceAccess>& access = {});

// Files of /dev that a task in an image sees in addition to the usual ones: those of its GPUs,
// instances and other vendors' devices and, if it has a NIC, of InfiniBand. Only existing files;
// NVIDIA's and InfiniBand's in `dev` (for tests).
std::vector<std::string> DeviceFiles(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                     const std::vector<DeviceAccess>& access = {},
                                     const std::string& dev = "/dev");

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
