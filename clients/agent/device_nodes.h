// The files below /dev that belong to devices, by what the kernel's drivers tell.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
#define BERTH_CLIENTS_AGENT_DEVICE_NODES_H_

#include <map>
#include <string>
#include <vector>

#include "berth/v1/agent.pb.h"

namespace berth {

// NVIDIA's GPUs: uuid -> minor number of /dev/nvidiaN, from /proc/driver/nvidia (`proc` for tests).
// A slice (MIG) is not among them.
std::map<std::string, int> NvidiaMinors(const std::string& proc = "/proc/driver/nvidia/gpus");

// "195:N" of every GPU in `minors` that the task was not given. None if it holds a GPU that is not
// among them, such as a slice: which whole GPU that is part of is not known.
std::vector<std::string> OthersDevices(const v1::TaskLaunch& launch,
                                       const std::map<std::string, int>& minors);

// Files of /dev that a task in an image sees beside the usual ones: those of its GPUs and, with a
// NIC, of InfiniBand. Only such as exist.
std::vector<std::string> DeviceFiles(const v1::TaskLaunch& launch,
                                     const std::map<std::string, int>& minors);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_NODES_H_
