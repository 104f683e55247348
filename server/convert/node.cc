#include "server/convert/node.h"

#include "absl/strings/str_cat.h"
#include "server/convert/values.h"

namespace berth {
namespace {

static_assert(v1::NODE_LOST == static_cast<int>(NodeState::kLost) + 1);

void RenderDevices(const Node& node, v1::Node* out) {
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    v1::Device* added = out->mutable_inventory()->add_devices();
    added->set_kind(device.kind);
    added->set_uuid(device.uuid);
    added->set_model(device.model);
    added->set_memory_bytes(device.memory_bytes);
    added->set_numa_node(device.numa_node);
    added->set_pci_bus_id(device.pci_bus_id);
    added->set_unhealthy(device.unhealthy);
    added->set_max_tasks(device.max_tasks);
    if (device.oversubscription > 100) added->set_oversubscription(device.oversubscription);
    added->set_compute_capability(ComputeCapabilityText(device.compute_capability));
    const int64_t used = kWhole - node.devices_used.FreeOf(i);
    if (used > 0) out->mutable_status()->add_devices_in_use(device.uuid);
    if (node.devices_used.SharesOf(i) == nullptr) continue;
    (*out->mutable_status()->mutable_shares_in_use())[device.uuid] = InUnits(used, kWhole);
  }
}

// In the order of the rendered devices, which is that of the topology.
void RenderTopology(const DeviceTopology& topology, v1::DeviceTopology* out) {
  for (const DeviceLink& link : topology.links) {
    v1::DeviceLink* added = out->add_links();
    added->set_link(static_cast<v1::LinkClass>(link.link));
    added->set_count(link.count);
    added->set_mb_per_s(link.mb_per_s);
    added->set_same_package(link.same_package);
  }
  out->set_between(topology.between);
  for (const NumaNode& numa : topology.numa_nodes) {
    v1::NumaNode* added = out->add_numa_nodes();
    added->set_id(numa.id);
    added->set_package(numa.package);
    added->set_cpus(numa.cpus);
    added->set_memory_bytes(numa.memory_bytes);
  }
}

void RenderInventory(const NodeSpec& spec, v1::NodeInventory* out) {
  out->set_cpu_millis(spec.cpu_millis);
  out->set_memory_bytes(spec.memory_bytes);
  out->set_divides_gpus(spec.divides_gpus);
  out->set_freezes(spec.freezes);
  out->set_checkpoints_devices(spec.checkpoints_devices);
  out->set_max_tasks(spec.max_tasks);
  for (const NamedAmount& entry : spec.extended) {
    if (entry.name == kScratchName) {
      out->set_scratch_bytes(entry.amount);
      continue;
    }
    (*out->mutable_extended())[entry.name] = entry.amount / kWhole;
  }
  ToProto(spec.labels, out->mutable_labels());
  for (const Taint& taint : spec.taints) {
    v1::Taint* added = out->add_taints();
    added->set_key(taint.key);
    added->set_value(taint.value);
    added->set_effect(taint.evicts ? v1::Taint::NO_EXECUTE : v1::Taint::NO_SCHEDULE);
  }
  out->set_address(spec.address);
  out->set_os(spec.os);
  out->set_architecture(spec.architecture);
}

void RenderDrain(const Node& node, v1::NodeDrain* out) {
  const Drain& drain = node.status.drain;
  out->set_mode(DrainModeToApi(DrainModeOf(node.status)));
  if (drain.begin != absl::InfinitePast()) ToProto(drain.begin, out->mutable_begin_time());
  const Time deadline = DrainDeadline(node.status);
  if (deadline != absl::InfiniteFuture()) ToProto(deadline, out->mutable_deadline());
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (drain.devices.Has(i)) out->add_devices(node.spec.devices[i].uuid);
  }
}

void RenderNodeStatus(const ClusterState& state, const Node& node, v1::NodeStatus* out) {
  const NodeStatus& status = node.status;
  out->set_state(NodeStateToApi(status.state));
  out->set_cordoned(status.cordoned);
  out->set_draining(status.draining);
  out->set_reason(status.reason);
  out->set_epoch(status.epoch);
  out->set_boot_id(status.boot_id);
  out->set_agent_version(status.agent_version);
  if (status.registered != absl::InfinitePast()) {
    ToProto(status.registered, out->mutable_registered_time());
  }
  ToProto(node.capacity, state.interner(), out->mutable_capacity());
  ToProto(node.allocated, state.interner(), out->mutable_allocated());
  ToProto(FreeOf(node), state.interner(), out->mutable_free());
  out->set_tasks(static_cast<int32_t>(node.tasks.size()));
  if (status.backoff_until != absl::InfinitePast()) {
    ToProto(status.backoff_until, out->mutable_backoff_until());
  }
  out->set_refusals(status.refusals);
  out->set_refusal(status.refusal);
  if (status.faults.thousandths > 0) {
    out->set_faults(static_cast<double>(status.faults.thousandths) / 1000);
    ToProto(status.faults.at, out->mutable_fault_time());
  }
  if (status.draining || !status.drain.devices.Empty()) RenderDrain(node, out->mutable_drain());
  RenderDomains(state, node, out->mutable_domains());
}

}  // namespace

v1::NodeState NodeStateToApi(NodeState state) {
  return static_cast<v1::NodeState>(static_cast<int>(state) + 1);
}

v1::NodeDrain::Mode DrainModeToApi(DrainMode mode) {
  switch (mode) {
    case DrainMode::kNow:
      return v1::NodeDrain::NOW;
    case DrainMode::kCheckpoint:
      return v1::NodeDrain::CHECKPOINT;
    case DrainMode::kWait:
      return v1::NodeDrain::WAIT;
    case DrainMode::kWhenPlaced:
      return v1::NodeDrain::WHEN_PLACED;
  }
  return v1::NodeDrain::MODE_UNSPECIFIED;
}

DrainMode DrainModeFrom(v1::NodeDrain::Mode mode) {
  switch (mode) {
    case v1::NodeDrain::CHECKPOINT:
      return DrainMode::kCheckpoint;
    case v1::NodeDrain::WAIT:
      return DrainMode::kWait;
    case v1::NodeDrain::WHEN_PLACED:
      return DrainMode::kWhenPlaced;
    default:
      return DrainMode::kNow;
  }
}

void RenderDomains(const ClusterState& state, const Node& node,
                   google::protobuf::Map<std::string, std::string>* out) {
  for (HyperNodeId id : node.domains) {
    const HyperNodeSpec& domain = state.hyper_nodes().At(id).spec;
    (*out)[domain.kind] = domain.name;
  }
}

void RenderNode(const ClusterState& state, const Node& node, bool devices, v1::Node* out) {
  out->set_name(node.spec.name);
  RenderInventory(node.spec, out->mutable_inventory());
  RenderNodeStatus(state, node, out->mutable_status());
  if (devices) RenderDevices(node, out);
  if (devices && !node.spec.topology.Empty()) {
    RenderTopology(node.spec.topology, out->mutable_inventory()->mutable_topology());
  }
  out->set_etag(absl::StrCat(node.revision));
}

}  // namespace berth
