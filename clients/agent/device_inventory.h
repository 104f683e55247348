// From what discovery finds to the devices that the node registers.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
#define BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/discovery/machine.h"

namespace berth {

// What discovery adds at most: what a node may register.
inline constexpr int kMaxRegisteredDevices = 128;
inline constexpr char kMigDevices[] = "mig";
// The NVLink fabric that the GPUs share with those of other nodes: CLUSTERUUID.CLIQUEID, as
// NVIDIA's own discovery labels nodes.
inline constexpr char kCliqueLabel[] = "nvidia.com/gpu.clique";

// Adds the machine's GPUs, NPUs and NICs to config->devices(), and takes its host memory where the
// configuration names none. What is declared stays as it is: a found device with the UUID or the
// PCI address of a declared one is left out. One with a problem is registered as unhealthy; so is a
// NIC whose port is down. A GPU that is divided by MIG cannot be given out whole: its instances are
// registered instead, of kind "mig" with the profile for a model; without any it is unhealthy. If
// the configuration allows to divide it anew it is registered, too: of kind "mig", unhealthy, as
// nobody can have it whole. Where all GPUs that tell of an NVLink fabric between hosts tell of the
// same, the node is labelled so, unless it is already.
// Gives what an operator should know, one line each.
std::vector<std::string> AddDiscovered(const discovery::Machine& machine,
                                       config::v1::Agent* config);

// Adds the devices of `known` that config has not, as unhealthy: they were there, and vanished.
// Gives a line for each. Dividing a GPU anew is no loss: neither the GPU nor its former instances
// have vanished while `machine`, if there is one, shows the GPU.
std::vector<std::string> AddVanished(const v1::NodeInventory& known, config::v1::Agent* config,
                                     const discovery::Machine* machine = nullptr,
                                     std::map<std::string, std::string>* vanished = nullptr);

// What an instance (MIG) is part of, in the driver's terms.
struct MigPlace {
  std::string gpu;  // UUID
  int gpu_instance = -1;
  int compute_instance = -1;
};

// One of AMD's GPUs, in the driver's terms.
struct AmdGpu {
  int render_minor = -1;  // /dev/dri/renderDN
  int index = -1;         // among the GPUs of the compute driver
  std::string uuid;       // that AMD's libraries know it by; empty: it has none of its own
};

struct DiscoveredDevices {
  std::vector<std::string> lines;  // what went wrong, or should be known
  v1::NodeInventory known;         // all devices but the declared ones; for SaveKnownDevices
  v1::DeviceTopology topology;     // of config->devices(), as they stand then
  bool read = false;               // the machine could be looked at
  std::map<std::string, std::string> vanished;  // by UUID: what is no more, in words
  std::map<std::string, MigPlace> mig;          // instances by UUID
  std::map<std::string, AmdGpu> amd;            // by the UUID it is registered with
};

// Runs the probe as config->discovery() says and does both of the above; the devices known so far
// are those of STATE_DIRECTORY/devices. If the topology file cannot be used the machine is read
// without it; if discovery fails, all known devices are unhealthy. Never fails. Cut short when
// `stop` becomes true.
DiscoveredDevices DiscoverInto(const std::string& probe, config::v1::Agent* config,
                               const std::atomic<bool>* stop = nullptr);

// Writes STATE_DIRECTORY/devices. For the one agent that holds the directory.
absl::Status SaveKnownDevices(const v1::NodeInventory& known, const std::string& state_directory);

// discovery.timeout, or what it is by default.
absl::Duration ProbeTimeout(const config::v1::Discovery& config);
// discovery.interval, likewise.
absl::Duration DiscoveryInterval(const config::v1::Discovery& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
