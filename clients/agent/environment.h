// What a task finds in its environment. The contract with users is docs/agent.md; change both
// together.
#ifndef BERTH_CLIENTS_AGENT_ENVIRONMENT_H_
#define BERTH_CLIENTS_AGENT_ENVIRONMENT_H_

#include <map>
#include <string>
#include <vector>

#include "berth/v1/agent.pb.h"
#include "clients/agent/device_access.h"
#include "clients/agent/task_id.h"

namespace berth {

using Environment = std::map<std::string, std::string>;

// A longer BERTH_NODES is left out (the kernel takes 128 KiB a string); BERTH_HOSTFILE is always
// there.
inline constexpr size_t kMaxNodesVariableBytes = size_t{64} << 10;

struct EnvironmentContext {
  std::string node;
  std::string address;  // how others reach this node
  bool has_gpus = false;
  std::string mps_pipe_directory = {};                // empty: GPUs are not shared by MPS
  std::map<std::string, int64_t> device_memory = {};  // bytes, by uuid; of shared ones
  std::string nccl_topo_file = {};                    // absolute; empty: there is none
  std::vector<DeviceAccess> access = {};              // of devices that are not NVIDIA's
  std::string socket_interface = {};                  // for the members of gangs; empty: not named
  std::string user;
  std::string home;
  std::string scratch = {}, tmp = {};  // directories of the task's own; empty: not named
  std::string hostfile = {};           // empty: in task_directory
  std::string task_directory;  // absolute: unique on this machine, also with several agents on it
  Environment image = {};      // of the task's image: what all else overrides, but for PATH
};

// The user's own variables (launch.env) override all but BERTH_TASK_DIR, by which the agent finds
// the task's processes, and what says how much of a device the task has.
Environment BuildEnvironment(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                             const EnvironmentContext& context);

// "NAME=value" of the variable that marks every process of the task.
std::string TaskMarker(const std::string& task_directory);

// One address a line, by node rank.
std::string HostfileText(const v1::Start& start, const EnvironmentContext& context);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_ENVIRONMENT_H_
