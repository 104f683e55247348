// How a task accesses devices that are not NVIDIA's: the variable that lists them for the vendor's
// library, and their files. docs/operators/devices.md describes the vendors.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_ACCESS_H_
#define BERTH_CLIENTS_AGENT_DEVICE_ACCESS_H_

#include <map>
#include <string>
#include <vector>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/device_inventory.h"

namespace berth {

struct AccessibleDevice {
  std::string name;                // its name in the variable; empty: it cannot be named
  std::vector<std::string> files;  // absolute
};

// Devices of one vendor, or of one kind in the configuration.
struct DeviceAccess {
  std::string variable;                               // empty: none
  std::map<std::string, AccessibleDevice> devices{};  // all of the node, by UUID
  std::vector<std::string> shared_files{};            // needed by every task with such a device
};

// The access to the node's devices: first the kinds of config.device_access(), by name, then AMD's
// GPUs:
//   ROCR_VISIBLE_DEVICES=GPU-a1b2...,GPU-c3d4...   /dev/kfd, /dev/dri/renderDN
// by UUID or, for partitions without one, by index. If `barred`, tasks cannot open the files of
// other tasks: the driver then shows a task only its own devices and numbers those, so none is
// named.
std::vector<DeviceAccess> AccessOf(const config::v1::Agent& config,
                                   const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                                   const std::map<std::string, AmdGpu>& amd, bool barred);

// Whether the device is one of these.
bool Includes(const std::vector<DeviceAccess>& access, const std::string& uuid);

// The problems of config.device_access(), one per line.
std::vector<std::string> DeviceAccessProblems(const config::v1::Agent& config);

// NAME=LIST of the task's devices, in the order of its launch, for each vendor with devices on the
// node. The list is empty for a task without such devices; the variable is missing if a device has
// no name.
std::map<std::string, std::string> AccessVariables(const std::vector<DeviceAccess>& access,
                                                   const v1::TaskLaunch& launch);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_ACCESS_H_
