#include "clients/agent/device_inventory.h"

#include <string.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/device_topology.h"
#include "clients/agent/discovery/probe.h"
#include "clients/agent/discovery/render.h"
#include "clients/agent/supervisor/spec.h"
#include "support/proto_time.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using discovery::Machine;
using Lines = std::vector<std::string>;

constexpr char kKnownFile[] = "devices";
constexpr absl::Duration kInterval = absl::Minutes(5);

v1::Device ToDevice(const discovery::Gpu& gpu) {
  v1::Device device;
  device.set_kind(gpu.kind);
  device.set_uuid(gpu.uuid);
  device.set_model(gpu.model);
  device.set_memory_bytes(gpu.memory_bytes);
  device.set_compute_capability(gpu.compute_capability);
  device.set_numa_node(gpu.numa_node);
  device.set_pci_bus_id(ToString(gpu.pci));
  device.set_unhealthy(!gpu.problem.empty() || gpu.mig_enabled);
  return device;
}

v1::Device ToDevice(const discovery::MigInstance& mig, const discovery::Gpu& gpu) {
  v1::Device device = ToDevice(gpu);
  device.set_kind(kMigDevices);
  device.set_uuid(mig.uuid);
  device.set_model(mig.profile);
  device.set_memory_bytes(mig.memory_bytes);
  device.set_unhealthy(!gpu.problem.empty());
  return device;
}

v1::Device ToDevice(const discovery::Nic& nic) {
  v1::Device device;
  device.set_kind("nic");
  device.set_uuid(nic.name);
  device.set_model(nic.model);
  device.set_numa_node(nic.numa_node);
  device.set_pci_bus_id(ToString(nic.pci));
  device.set_unhealthy(!nic.port_state.empty() && nic.port_state != "active");
  return device;
}

// The UUIDs and addresses of devices that are already listed.
class Present {
 public:
  explicit Present(const config::v1::Agent& config) {
    for (const v1::Device& device : config.devices()) Add(device);
  }
  void Add(const v1::Device& device) {
    uuids_.insert(device.uuid());
    // A declared address covers all partitions of its function.
    if (const auto address = discovery::ParsePciAddress(device.pci_bus_id()))
      declared_.insert(*address);
  }
  bool HasUuid(const std::string& uuid) const { return uuids_.contains(uuid); }
  bool HasAddress(const discovery::PciAddress& address) const {
    return declared_.contains(address);
  }

 private:
  std::set<std::string> uuids_;
  std::set<discovery::PciAddress> declared_;
};

bool Room(const config::v1::Agent& config, const std::string& name, Lines* lines) {
  if (config.devices_size() < kMaxRegisteredDevices) return true;
  lines->push_back(absl::StrCat(name, " is not registered: a node has at most ",
                                kMaxRegisteredDevices, " devices"));
  return false;
}

void AddInstances(const discovery::Gpu& gpu, const Present& declared, config::v1::Agent* config,
                  Lines* lines) {
  for (const discovery::MigInstance& mig : gpu.mig) {
    if (declared.HasUuid(mig.uuid)) continue;
    if (Room(*config, mig.uuid, lines)) *config->add_devices() = ToDevice(mig, gpu);
  }
}

void AddGpus(const Machine& machine, const Present& declared, config::v1::Agent* config,
             Lines* lines) {
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    const discovery::Gpu& gpu = machine.gpus[i];
    const std::string name = absl::StrCat(DeviceName(machine, i), " (", gpu.uuid, ")");
    if (declared.HasUuid(gpu.uuid) || declared.HasAddress(gpu.pci)) continue;
    if (!gpu.problem.empty()) lines->push_back(absl::StrCat(name, ": ", gpu.problem));
    const bool divisible = gpu.mig_enabled && gpu.problem.empty() && config->mig().reconfigure();
    if (divisible && Room(*config, name, lines)) {
      *config->add_devices() = ToDevice(gpu);
      config->mutable_devices(config->devices_size() - 1)->set_kind(kMigDevices);
    }
    if (gpu.mig_enabled && !gpu.mig.empty()) {
      AddInstances(gpu, declared, config, lines);
      continue;
    }
    if (divisible) continue;
    if (gpu.mig_enabled)
      lines->push_back(absl::StrCat(name, " is in MIG mode and has no instances: not schedulable"));
    if (Room(*config, name, lines)) *config->add_devices() = ToDevice(gpu);
  }
}

void AddNics(const Machine& machine, const Present& declared, config::v1::Agent* config,
             Lines* lines) {
  for (const discovery::Nic& nic : machine.nics) {
    if (declared.HasUuid(nic.name) || declared.HasAddress(nic.pci)) continue;
    if (Room(*config, nic.name, lines)) *config->add_devices() = ToDevice(nic);
  }
}

// Changed, but not gone: a GPU that is divided now, or was divided differently.
bool WasRedivided(const v1::Device& device, const Machine& machine) {
  if (device.kind() != "gpu" && device.kind() != kMigDevices) return false;
  const auto address = discovery::ParsePciAddress(device.pci_bus_id());
  for (const discovery::Gpu& gpu : machine.gpus) {
    if (device.kind() == "gpu" && gpu.uuid == device.uuid()) return gpu.mig_enabled;
    if (device.kind() == kMigDevices && address && gpu.pci == *address) return gpu.problem.empty();
  }
  return false;
}

std::map<std::string, MigPlace> MigPlaces(const Machine& machine) {
  std::map<std::string, MigPlace> places;
  for (const discovery::Gpu& gpu : machine.gpus) {
    for (const discovery::MigInstance& mig : gpu.mig)
      places[mig.uuid] = {gpu.uuid, mig.gpu_instance, mig.compute_instance};
  }
  return places;
}

// By the UUID that each is registered with. A declared GPU is also matched by its PCI address.
std::map<std::string, AmdGpu> AmdGpus(
    const Machine& machine, const google::protobuf::RepeatedPtrField<v1::Device>& devices) {
  std::map<std::string, const discovery::Gpu*> by_uuid;
  std::map<discovery::PciAddress, const discovery::Gpu*> by_address;
  for (const discovery::Gpu& gpu : machine.gpus) {
    if (gpu.vendor != "amd" || gpu.compute_index < 0) continue;
    by_uuid[gpu.uuid] = &gpu;
    if (gpu.partition < 0) by_address[gpu.pci] = &gpu;
  }
  std::map<std::string, AmdGpu> gpus;
  for (const v1::Device& device : devices) {
    if (device.kind() != "gpu") continue;
    const discovery::Gpu* gpu = nullptr;
    const auto address = discovery::ParsePciAddress(device.pci_bus_id());
    if (const auto found = by_uuid.find(device.uuid()); found != by_uuid.end()) gpu = found->second;
    if (gpu == nullptr && address.has_value()) {
      const auto found = by_address.find(*address);
      if (found != by_address.end()) gpu = found->second;
    }
    if (gpu == nullptr) continue;
    const bool own = absl::StartsWith(gpu->uuid, "GPU-");
    gpus[device.uuid()] = {gpu->render_minor, gpu->compute_index, own ? gpu->uuid : ""};
  }
  return gpus;
}

discovery::DiscoverOptions Options(const config::v1::Discovery& config) {
  return {.topology_file = config.topology_file(), .nvml_library = config.nvml_library()};
}

absl::StatusOr<Machine> Probe(const std::string& probe, const config::v1::Discovery& config,
                              const std::atomic<bool>* stop, Lines* lines) {
  const absl::Duration timeout = ProbeTimeout(config);
  discovery::DiscoverOptions options = Options(config);
  absl::StatusOr<Machine> machine = discovery::RunProbe(probe, options, timeout, stop);
  if (machine.ok() || options.topology_file.empty()) return machine;
  lines->push_back(absl::StrCat("the topology file is ignored: ", machine.status().message()));
  options.topology_file.clear();
  return discovery::RunProbe(probe, options, timeout, stop);
}

v1::NodeInventory ReadKnown(const std::string& path, Lines* lines) {
  v1::NodeInventory known;
  const absl::Status status = ReadYamlFile(path, &known);
  if (status.ok() || absl::IsNotFound(status)) return known;
  lines->push_back(absl::StrCat("the list of known devices is ignored: ", status.message()));
  return {};
}

// "": no GPU reports a complete fabric, or the GPUs disagree.
std::string CliqueOf(const Machine& machine) {
  std::set<std::string> cliques;
  for (const discovery::Gpu& gpu : machine.gpus) {
    if (gpu.fabric_state.empty()) continue;
    // All zeros: the fabric of a single node.
    const bool spans = gpu.fabric_cluster.find_first_not_of("0-") != std::string::npos;
    const bool known = gpu.fabric_clique >= 0 && spans;
    cliques.insert(known ? absl::StrCat(gpu.fabric_cluster, ".", gpu.fabric_clique) : "");
  }
  return cliques.size() == 1 ? *cliques.begin() : "";
}

}  // namespace

std::vector<std::string> AddDiscovered(const Machine& machine, config::v1::Agent* config) {
  Lines lines = machine.warnings;
  const Present declared(*config);
  AddGpus(machine, declared, config, &lines);
  AddNics(machine, declared, config, &lines);
  if (config->memory_bytes() == 0) config->set_memory_bytes(machine.host_memory_bytes);
  const std::string clique = CliqueOf(machine);
  if (!clique.empty()) config->mutable_labels()->insert({kCliqueLabel, clique});  // unless set
  return lines;
}

std::vector<std::string> AddVanished(const v1::NodeInventory& known, config::v1::Agent* config,
                                     const Machine* machine,
                                     std::map<std::string, std::string>* vanished) {
  Lines lines;
  const Present present(*config);
  for (const v1::Device& device : known.devices()) {
    if (device.kind().empty() || device.uuid().empty() || present.HasUuid(device.uuid())) continue;
    if (machine != nullptr && WasRedivided(device, *machine)) continue;
    if (!Room(*config, device.uuid(), &lines)) continue;
    lines.push_back(absl::StrCat(device.kind(), " ", device.uuid(), " at PCI ", device.pci_bus_id(),
                                 " has disappeared"));
    if (vanished != nullptr) (*vanished)[device.uuid()] = lines.back();
    *config->add_devices() = device;
    config->mutable_devices(config->devices_size() - 1)->set_unhealthy(true);
  }
  return lines;
}

DiscoveredDevices DiscoverInto(const std::string& probe, config::v1::Agent* config,
                               const std::atomic<bool>* stop) {
  DiscoveredDevices found;
  const int declared = config->devices_size();
  const auto add = [&](const Lines& more) {
    found.lines.insert(found.lines.end(), more.begin(), more.end());
  };
  const absl::StatusOr<Machine> machine = Probe(probe, config->discovery(), stop, &found.lines);
  found.read = machine.ok();
  if (machine.ok()) {
    add(AddDiscovered(*machine, config));
  } else {
    add({absl::StrCat("discovery failed: ", machine.status().message())});
  }
  const std::string path = absl::StrCat(config->state_directory(), "/", kKnownFile);
  add(AddVanished(ReadKnown(path, &found.lines), config, machine.ok() ? &*machine : nullptr,
                  &found.vanished));
  for (int i = declared; i < config->devices_size(); ++i)
    *found.known.add_devices() = config->devices(i);
  if (!machine.ok()) return found;
  found.topology = TopologyOf(*machine, config->devices());
  found.mig = MigPlaces(*machine);
  found.amd = AmdGpus(*machine, config->devices());
  return found;
}

absl::Status SaveKnownDevices(const v1::NodeInventory& known, const std::string& state_directory) {
  const int error = WriteFileAtomically(state_directory, kKnownFile, WriteYaml(known));
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(state_directory, "/", kKnownFile, ": ", strerror(error)));
}

absl::Duration DiscoveryInterval(const config::v1::Discovery& config) {
  if (!config.has_interval()) return kInterval;
  return DurationFrom(config.interval());
}

absl::Duration ProbeTimeout(const config::v1::Discovery& config) {
  if (!config.has_timeout()) return discovery::kProbeTimeout;
  return DurationFrom(config.timeout());
}

bool HasGpus(const google::protobuf::RepeatedPtrField<v1::Device>& devices) {
  return std::any_of(devices.begin(), devices.end(), [](const v1::Device& device) {
    return device.kind() == "gpu" || device.kind() == kMigDevices;
  });
}

}  // namespace berth
