// From what discovery finds to the devices that the node registers.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
#define BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/discovery/machine.h"

namespace berth {

// What discovery adds at most: what a node may register.
inline constexpr int kMaxRegisteredDevices = 128;

// Adds the machine's GPUs, NPUs and NICs to config->devices(), and takes its host memory where the
// configuration names none. What is declared stays as it is: a found device with the UUID or the
// PCI address of a declared one is left out. One with a problem is registered as unhealthy; so is a
// NIC whose port is down, and a GPU that is divided by MIG, as it cannot be given out whole, and
// its parts not yet at all. Gives what an operator should know, one line each.
std::vector<std::string> AddDiscovered(const discovery::Machine& machine,
                                       config::v1::Agent* config);

// Adds the devices of `known` that config has not, as unhealthy: they were there, and vanished.
// Gives a line for each.
std::vector<std::string> AddVanished(const v1::NodeInventory& known, config::v1::Agent* config);

struct DiscoveredDevices {
  std::vector<std::string> lines;  // what went wrong, or should be known
  v1::NodeInventory known;         // all devices but the declared ones; for SaveKnownDevices
  v1::DeviceTopology topology;     // of config->devices(), as they stand then
};

// Runs the probe as config->discovery() says and does both of the above; the devices known so far
// are those of STATE_DIRECTORY/devices. If the topology file cannot be used the machine is read
// without it; if discovery fails, all known devices are unhealthy. Never fails.
DiscoveredDevices DiscoverInto(const std::string& probe, config::v1::Agent* config);

// Writes STATE_DIRECTORY/devices. For the one agent that holds the directory.
absl::Status SaveKnownDevices(const v1::NodeInventory& known, const std::string& state_directory);

// discovery.timeout, or what it is by default.
absl::Duration ProbeTimeout(const config::v1::Discovery& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
