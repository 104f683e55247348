// Builds the environment of a task. The contract with users is in docs/users/training.md; change
// both together.
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

// A longer BERTH_NODES is omitted (the kernel's limit is 128 KiB per string); BERTH_HOSTFILE is
// always set.
inline constexpr size_t kMaxNodesVariableBytes = size_t{64} << 10;

struct EnvironmentContext {
  std::string node;
  std::string address;  // where other nodes reach this node
  bool has_gpus = false;
  std::string mps_pipe_directory = {};                // empty: no sharing by MPS
  std::map<std::string, int64_t> device_memory = {};  // bytes of shared devices, by uuid
  std::string nccl_topo_file = {};                    // absolute; empty: none
  std::vector<DeviceAccess> access = {};              // of devices that are not NVIDIA's
  std::string socket_interface = {};                  // for members of gangs; empty: not set
  std::string user;
  std::string home;
  std::string scratch = {}, tmp = {};       // the task's private directories; empty: not set
  std::string hostfile = {};                // empty: in task_directory
  std::string notify_socket = {};           // empty: none
  std::string server = {};                  // for `berth` in the task; empty: not set
  std::string keep = {}, keep_memory = {};  // what stays for the job's next attempt; empty: nothing
  std::string task_directory;  // absolute; unique on this machine, even with several agents
  Environment image = {};      // of the task's image; all other variables except PATH override it
};

// The user's variables (launch.env) override all others except BERTH_TASK_DIR, by which the agent
// finds the task's processes, and those that define the task's share of a device.
Environment BuildEnvironment(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                             const EnvironmentContext& context);

// "NAME=value" of the variable that marks every process of the task.
std::string TaskMarker(const std::string& task_directory);

// One address per line, by node rank.
std::string HostfileText(const v1::Start& start, const EnvironmentContext& context);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_ENVIRONMENT_H_
