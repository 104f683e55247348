// berth-agent --discover: prints what the agent finds, without a server.
#ifndef BERTH_CLIENTS_AGENT_DISCOVER_COMMAND_H_
#define BERTH_CLIENTS_AGENT_DISCOVER_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"

namespace berth {

struct DiscoverFlags {
  std::string from{};     // XML file or folder; "" = this machine
  std::string output{};   // "table" (or "") or "json"
  std::string compare{};  // a saved `nvidia-smi topo -m`; "" = none
};

// Returns the text to print. With `compare`, the differences are the text; FAILED_PRECONDITION with
// them if there are any. INVALID_ARGUMENT for invalid flags; otherwise the probe's errors.
absl::StatusOr<std::string> DiscoverText(const std::string& probe, const DiscoverFlags& flags,
                                         const config::v1::Discovery& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DISCOVER_COMMAND_H_
