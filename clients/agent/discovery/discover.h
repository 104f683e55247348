// Runs all sources in this process. For untrusted files, use the probe (probe.h).
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_DISCOVER_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_DISCOVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

struct DiscoverOptions {
  std::string from{};           // an XML file, or a folder with copies of /proc and /sys; "" = live
  std::string topology_file{};  // an operator's positions of devices (override.h); "" = none
  std::string nvml_library{};   // "" = libnvidia-ml.so.1. Used only when live
};

// Fills in distances. Errors name the file or folder. A machine without GPUs, NICs, NVML or NUMA is
// not an error.
absl::StatusOr<Machine> Discover(const DiscoverOptions& options);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_DISCOVER_H_
