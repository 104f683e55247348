// From the configuration file to what the agent runs with; refuses what cannot work.
#ifndef BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_
#define BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/node.pb.h"
#include "support/tls.h"

namespace berth {

// Fills in what is not set: server, node name, address, state directory, CPU and memory as the
// kernel tells, ports, log bounds, keep_ended.
void SetAgentDefaults(config::v1::Agent* config);

// INVALID_ARGUMENT with every problem, one a line. `uid`: who the agent runs as. Root without
// task_user is one of them, unless allow_root_tasks.
absl::Status CheckAgentConfig(const config::v1::Agent& config, unsigned uid);

// Without the topology of the devices, which discovery tells.
v1::NodeInventory MakeInventory(const config::v1::Agent& config);

// discovery.topology_file, absolute, if it is one of NCCL (whose XML has a <system>), not of hwloc;
// empty if there is none, or it cannot be read.
std::string NcclTopologyFile(const config::v1::Discovery& config);

// socket_interface, or the interface that has the agent's address; empty: none is named, and none
// has it.
std::string SocketInterface(const config::v1::Agent& config);

// The kernel's id of this boot.
absl::Status ReadBootId(std::string* boot_id);
// 128 random bits in hex: an agent id.
std::string NewAgentId();

TlsFiles ToTlsFiles(const config::v1::Tls& tls);
// Why there is no connection, and what may be behind it (ConnectionHint).
std::string ExplainedError(const config::v1::Tls& tls, const std::string& error);
absl::Duration FromProto(const google::protobuf::Duration& duration);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_
