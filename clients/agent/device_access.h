// How a task gets at its devices, where they are not NVIDIA's: the variable that lists them for the
// vendor's library, and their files. What is said here of a vendor is in docs/agent.md.
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
  std::string name;                // what stands for it in the variable; empty: nothing can
  std::vector<std::string> files;  // absolute
};

// Devices of one vendor, or of one kind that the configuration tells of.
struct DeviceAccess {
  std::string variable;                               // empty: none
  std::map<std::string, AccessibleDevice> devices{};  // all of the node, by UUID
  std::vector<std::string> shared_files{};            // that whoever has one of them needs
};

// Of the node's devices: first the kinds of config.device_access(), by name, then AMD's GPUs:
//   ROCR_VISIBLE_DEVICES=GPU-a1b2...,GPU-c3d4...   /dev/kfd, /dev/dri/renderDN
// by their UUIDs, or, without one (partitions), by their numbers. With `barred`, where tasks cannot
// open others' files, the driver shows a task its own only and numbers these, so nothing is named.
std::vector<DeviceAccess> AccessOf(const config::v1::Agent& config,
                                   const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                                   const std::map<std::string, AmdGpu>& amd, bool barred);

// Whether the device is one of these.
bool Includes(const std::vector<DeviceAccess>& access, const std::string& uuid);

// What is wrong with config.device_access(), a line each.
std::vector<std::string> DeviceAccessProblems(const config::v1::Agent& config);

// NAME=LIST of the task's devices, in the order of its launch: for each vendor that the node has
// devices of. Empty for a task that has none of them; no such variable if one has no name.
std::map<std::string, std::string> AccessVariables(const std::vector<DeviceAccess>& access,
                                                   const v1::TaskLaunch& launch);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_ACCESS_H_
