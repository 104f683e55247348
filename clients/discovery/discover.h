// All sources together, in this process. On files of others only the probe does this (probe.h).
#ifndef BERTH_CLIENTS_DISCOVERY_DISCOVER_H_
#define BERTH_CLIENTS_DISCOVERY_DISCOVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/discovery/machine.h"

namespace berth::discovery {

struct DiscoverOptions {
  std::string from{};           // an XML file, or a folder with copies of /proc and /sys; "" = live
  std::string topology_file{};  // where devices sit, told by an operator (override.h); "" = none
  std::string nvml_library{};   // "" = libnvidia-ml.so.1. Asked only when live
};

// Distances are filled in. Errors name the file or folder. A machine without any GPU, NIC, NVML or
// NUMA is no error.
absl::StatusOr<Machine> Discover(const DiscoverOptions& options);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_DISCOVER_H_
