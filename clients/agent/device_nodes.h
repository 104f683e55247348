// The files below /dev that belong to devices, by what the kernel's drivers tell.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
#define BERTH_CLIENTS_AGENT_DEVICE_NODES_H_

#include <map>
#include <string>
#include <vector>

#include "berth/v1/agent.pb.h"
#include "clients/agent/device_access.h"
#include "clients/agent/device_inventory.h"

namespace berth {

// Of NVIDIA's driver. A whole GPU is /dev/nvidiaN. An instance (MIG) is its GPU's file and, beside
// it, the right to use it: opening /dev/nvidia-caps/nvidia-capC, one for the GPU instance and one
// for the compute instance in it. What each capC is for stands in /proc/driver/nvidia-caps.
struct NvidiaFiles {
  std::map<std::string, int> minors;    // UUID of a GPU -> N
  std::map<std::string, int> caps;      // "gpu0/gi3/access" -> C; N is the GPU's minor
  int caps_major = 0;                   // 0: the driver has none
  std::map<std::string, MigPlace> mig;  // as discovery found them
};

// All but `mig`. `proc` is /proc, or a copy for tests.
NvidiaFiles ReadNvidiaFiles(const std::string& proc = "/proc");

// "195:N" of every GPU that the task was not given as a whole or in part, and "MAJOR:C" of every
// instance that it was not given and of the rights to divide GPUs and to watch all of them. None if
// it holds a device that is not known here: then it is not known either what is somebody else's.
// Then the numbers of the files of other vendors' devices that it was not given.
std::vector<std::string> OthersDevices(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                       const std::vector<DeviceAccess>& access = {});

// Files of /dev that a task in an image sees beside the usual ones: those of its GPUs and instances
// and of other vendors' devices and, with a NIC, of InfiniBand. Only such as exist; NVIDIA's and
// InfiniBand's in `dev` (for tests).
std::vector<std::string> DeviceFiles(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                     const std::vector<DeviceAccess>& access = {},
                                     const std::string& dev = "/dev");

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
