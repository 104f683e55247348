// Turns the result of discovery into the devices that the node registers.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
#define BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/discovery/machine.h"

namespace berth {

// The maximum that discovery adds: the registration limit of a node.
inline constexpr int kMaxRegisteredDevices = 128;
inline constexpr char kMigDevices[] = "mig";
// The NVLink fabric that the GPUs share with other nodes: CLUSTERUUID.CLIQUEID, as NVIDIA's GPU
// feature discovery labels nodes.
inline constexpr char kCliqueLabel[] = "nvidia.com/gpu.clique";

// Adds the machine's GPUs, NPUs and NICs to config->devices(), and sets the memory to its host
// memory if the configuration has none. Declared devices stay unchanged: a found device with the
// UUID or PCI address of a declared one is skipped. A device with a problem is registered as
// unhealthy, and so is a NIC whose port is down. A GPU divided by MIG cannot be allocated whole:
// its instances are registered instead, with kind "mig" and the profile as model; without instances
// the GPU is unhealthy. If the configuration allows reconfiguring it, the GPU is also registered:
// with kind "mig" and unhealthy, as no task can have it whole. If all GPUs on a multi-host NVLink
// fabric report the same fabric, the node gets its label, unless it has one. Returns warnings for
// operators, one per line.
std::vector<std::string> AddDiscovered(const discovery::Machine& machine,
                                       config::v1::Agent* config);

// Adds the devices of `known` that config does not have, as unhealthy: they have disappeared.
// Returns a line for each. A reconfigured GPU is not lost: neither the GPU nor its former instances
// count as missing while `machine`, if given, shows the GPU.
std::vector<std::string> AddVanished(const v1::NodeInventory& known, config::v1::Agent* config,
                                     const discovery::Machine* machine = nullptr,
                                     std::map<std::string, std::string>* vanished = nullptr);

// The parent of a MIG instance, in the driver's terms.
struct MigPlace {
  std::string gpu;  // UUID
  int gpu_instance = -1;
  int compute_instance = -1;
};

// An AMD GPU, in the driver's terms.
struct AmdGpu {
  int render_minor = -1;  // /dev/dri/renderDN
  int index = -1;         // among the GPUs of the compute driver
  std::string uuid;       // its UUID in AMD's libraries; empty: it has none
};

struct DiscoveredDevices {
  std::vector<std::string> lines;  // errors and warnings
  v1::NodeInventory known;         // all devices but the declared ones; for SaveKnownDevices
  v1::DeviceTopology topology;     // of config->devices() at that time
  bool read = false;               // discovery succeeded
  std::map<std::string, std::string> vanished;  // messages about missing devices, by UUID
  std::map<std::string, MigPlace> mig;          // instances by UUID
  std::map<std::string, AmdGpu> amd;            // by the registered UUID
};

// Runs the probe as configured by config->discovery() and does both of the above; the known devices
// are read from STATE_DIRECTORY/devices. If the topology file cannot be used, discovery runs
// without it; if discovery fails, all known devices are unhealthy. Never fails. Returns early when
// `stop` becomes true.
DiscoveredDevices DiscoverInto(const std::string& probe, config::v1::Agent* config,
                               const std::atomic<bool>* stop = nullptr);

// Writes STATE_DIRECTORY/devices. Only for the agent that holds the directory.
absl::Status SaveKnownDevices(const v1::NodeInventory& known, const std::string& state_directory);

// Whole ones, or parts of divided ones.
bool HasGpus(const google::protobuf::RepeatedPtrField<v1::Device>& devices);

// discovery.timeout, or its default.
absl::Duration ProbeTimeout(const config::v1::Discovery& config);
// discovery.interval, or its default.
absl::Duration DiscoveryInterval(const config::v1::Discovery& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_INVENTORY_H_
