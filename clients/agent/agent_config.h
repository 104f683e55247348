// Turns the configuration file into the agent's settings; rejects what cannot work.
#ifndef BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_
#define BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/node.pb.h"
#include "support/tls.h"

namespace berth {

// Fills in unset fields: server, node name, address, state directory, CPU and memory as the kernel
// reports them, ports, log bounds, keep_ended.
void SetAgentDefaults(config::v1::Agent* config);

// INVALID_ARGUMENT with every problem, one per line. `uid`: the user that the agent runs as. Root
// without task_user is a problem, unless allow_root_tasks is set.
absl::Status CheckAgentConfig(const config::v1::Agent& config, unsigned uid);

// Without the topology of the devices, which discovery reports.
v1::NodeInventory MakeInventory(const config::v1::Agent& config);

// The absolute path of discovery.topology_file if it is an NCCL file (its XML has a <system>) and
// not an hwloc file; empty if there is none, or it cannot be read.
std::string NcclTopologyFile(const config::v1::Discovery& config);

// socket_interface, or the interface that has the agent's address; empty if neither exists.
std::string SocketInterface(const config::v1::Agent& config);

// The kernel's id of this boot.
absl::Status ReadBootId(std::string* boot_id);
// 128 random bits in hex: an agent id.
std::string NewAgentId();

// With `join`: where the agent keeps its certificate.
std::string IdentityDirectory(const config::v1::Agent& config);

TlsFiles ToTlsFiles(const config::v1::Tls& tls);
// Why there is no connection, with the possible cause (ConnectionHint).
std::string ExplainedError(const config::v1::Tls& tls, const std::string& error);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_AGENT_CONFIG_H_
