// Records of nodes.
#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(NodeState::kReady) == pb::NODE_READY);
static_assert(static_cast<int>(NodeState::kSilent) == pb::NODE_SILENT);
static_assert(static_cast<int>(NodeState::kLost) == pb::NODE_LOST);
static_assert(static_cast<int>(LinkClass::kUnknown) == pb::LINK_UNKNOWN);
static_assert(static_cast<int>(LinkClass::kNvlink) == pb::LINK_NVLINK);
static_assert(static_cast<int>(LinkClass::kSys) == pb::LINK_SYS);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<NodeSpec> == 15);
static_assert(kFields<Device> == 10);
static_assert(kFields<DeviceTopology> == 3);
static_assert(kFields<DeviceLink> == 4);
static_assert(kFields<NumaNode> == 4);
static_assert(kFields<Taint> == 3);
static_assert(kFields<NodeStatus> == 17);
static_assert(kFields<Drain> == 4);
static_assert(static_cast<int>(DrainMode::kCheckpoint) == pb::DRAIN_CHECKPOINT);
static_assert(static_cast<int>(DrainMode::kWait) == pb::DRAIN_WAIT);
static_assert(static_cast<int>(DrainMode::kWhenPlaced) == pb::DRAIN_WHEN_PLACED);
static_assert(kFields<StoredNode> == 6);
static_assert(kFields<GrantedLease> == 3);

void SetDevice(const Device& device, pb::Device* out) {
  out->set_kind(device.kind);
  out->set_uuid(device.uuid);
  out->set_model(device.model);
  out->set_memory_bytes(device.memory_bytes);
  out->set_numa_node(device.numa_node);
  out->set_pci_bus_id(device.pci_bus_id);
  out->set_unhealthy(device.unhealthy);
  out->set_max_tasks(device.max_tasks > 1 ? device.max_tasks : 0);
  out->set_oversubscription(device.oversubscription > 100 ? device.oversubscription : 0);
  out->set_compute_capability(device.compute_capability);
}

Device GetDevice(const pb::Device& message) {
  return {.kind = message.kind(),
          .uuid = message.uuid(),
          .model = message.model(),
          .memory_bytes = message.memory_bytes(),
          .numa_node = message.numa_node(),
          .pci_bus_id = message.pci_bus_id(),
          .unhealthy = message.unhealthy(),
          .max_tasks = std::max(message.max_tasks(), 1),
          .oversubscription = std::max(message.oversubscription(), 100),
          .compute_capability = message.compute_capability()};
}

void SetTopology(const DeviceTopology& topology, pb::DeviceTopology* out) {
  for (const DeviceLink& link : topology.links) {
    pb::DeviceLink* added = out->add_links();
    added->set_link(static_cast<pb::LinkClass>(link.link));
    added->set_count(link.count);
    added->set_mb_per_s(link.mb_per_s);
    added->set_same_package(link.same_package);
  }
  out->set_between(topology.between);
  for (const NumaNode& numa : topology.numa_nodes) {
    pb::NumaNode* added = out->add_numa_nodes();
    added->set_id(numa.id);
    added->set_package(numa.package);
    added->set_cpus(numa.cpus);
    added->set_memory_bytes(numa.memory_bytes);
  }
}

// Refuses references to devices that do not exist.
void CheckTopology(const DeviceTopology& topology, size_t devices, Reader& reader) {
  if (topology.links.size() > kMaxDeviceLinks || topology.numa_nodes.size() > kMaxNumaNodes) {
    reader.Refuse("a device topology that is too large");
  }
  if (!topology.between.empty() && topology.between.size() != PairsOf(devices)) {
    reader.Refuse(
        absl::StrCat("the links of ", topology.between.size(), " pairs of ", devices, " devices"));
  }
  for (const char code : topology.between) {
    if (static_cast<uint8_t>(code) > topology.links.size()) {
      return reader.Refuse("a link between devices that do not exist");
    }
  }
}

DeviceTopology GetTopology(const pb::DeviceTopology& message, size_t devices, Reader& reader) {
  DeviceTopology topology;
  for (const pb::DeviceLink& link : message.links()) {
    topology.links.push_back({.link = reader.Enum<LinkClass>(
                                  link.link(), pb::LinkClass_IsValid(link.link()), "link class"),
                              .count = link.count(),
                              .mb_per_s = link.mb_per_s(),
                              .same_package = link.same_package()});
  }
  topology.between = message.between();
  for (const pb::NumaNode& numa : message.numa_nodes()) {
    topology.numa_nodes.push_back({.id = numa.id(),
                                   .package = numa.package(),
                                   .cpus = numa.cpus(),
                                   .memory_bytes = numa.memory_bytes()});
  }
  CheckTopology(topology, devices, reader);
  return topology;
}

void SetFaults(const NodeFaults& faults, pb::NodeFaults* out) {
  out->set_thousandths(faults.thousandths);
  if (faults.at != absl::InfinitePast()) SetTime(faults.at, out->mutable_at());
}

NodeFaults GetFaults(const pb::NodeFaults& message, Reader& reader) {
  if (message.thousandths() < 0 || message.thousandths() > kMaxNodeFaults) {
    reader.Refuse("an impossible number of faults of a node");
    return {};
  }
  return {.thousandths = message.thousandths(),
          .at = reader.GetTime(message.has_at(), message.at(), absl::InfinitePast(), "fault time")};
}

void SetNodeStatus(const NodeStatus& status, pb::NodeStatus* out) {
  out->set_state(static_cast<pb::NodeState>(status.state));
  out->set_cordoned(status.cordoned);
  out->set_draining(status.draining);
  out->set_reason(status.reason);
  out->set_epoch(status.epoch);
  out->set_agent_id(status.agent_id);
  out->set_boot_id(status.boot_id);
  out->set_agent_version(status.agent_version);
  if (status.registered != absl::InfinitePast()) {
    SetTime(status.registered, out->mutable_registered());
  }
  out->set_refusals(status.refusals);
  out->set_refused_jobs(status.refused_jobs);
  out->set_last_refused(status.last_refused.value);
  for (JobId job : status.refused_before) out->add_refused_before(job.value);
  if (status.backoff_until != absl::InfinitePast()) {
    SetTime(status.backoff_until, out->mutable_backoff_until());
  }
  out->set_refusal(status.refusal);
  if (!(status.drain == Drain{})) SetDrain(status.drain, out->mutable_drain());
  if (!(status.faults == NodeFaults{})) SetFaults(status.faults, out->mutable_faults());
}

std::vector<JobId> GetRefusedBefore(const pb::NodeStatus& message, Reader& reader) {
  std::vector<JobId> jobs;
  for (uint64_t job : message.refused_before()) jobs.push_back(JobId{job});
  if (jobs.size() > kMaxRefusedBefore) reader.Refuse("too many jobs that the node refused");
  return jobs;
}

NodeStatus GetNodeStatus(const pb::NodeStatus& message, Reader& reader) {
  return {.state = reader.Enum<NodeState>(message.state(), pb::NodeState_IsValid(message.state()),
                                          "node state"),
          .cordoned = message.cordoned(),
          .draining = message.draining(),
          .reason = message.reason(),
          .epoch = message.epoch(),
          .agent_id = message.agent_id(),
          .boot_id = message.boot_id(),
          .agent_version = message.agent_version(),
          .registered = reader.GetTime(message.has_registered(), message.registered(),
                                       absl::InfinitePast(), "registered"),
          .refusals = reader.Count(message.refusals(), "refusals"),
          .refused_jobs = reader.Count(message.refused_jobs(), "refused jobs"),
          .last_refused = JobId{message.last_refused()},
          .refused_before = GetRefusedBefore(message, reader),
          .backoff_until = reader.GetTime(message.has_backoff_until(), message.backoff_until(),
                                          absl::InfinitePast(), "backoff_until"),
          .refusal = message.refusal(),
          .drain = GetDrain(message.drain(), reader),
          .faults = GetFaults(message.faults(), reader)};
}

}  // namespace

void SetNodeImages(const NodeImagesChanged& event, pb::NodeImagesChanged* out) {
  out->set_id(event.id.value);
  for (ImageId image : event.gained) out->add_gained(image.value);
  for (ImageId image : event.lost) out->add_lost(image.value);
}

NodeImagesChanged GetNodeImages(const pb::NodeImagesChanged& message) {
  return {.id = NodeId{message.id()},
          .gained = GetIds<ImageId>(message.gained()),
          .lost = GetIds<ImageId>(message.lost())};
}

void SetDrain(const Drain& drain, pb::Drain* out) {
  out->set_mode(static_cast<pb::DrainMode>(drain.mode));
  if (drain.begin != absl::InfinitePast()) SetTime(drain.begin, out->mutable_begin());
  if (drain.deadline != absl::InfiniteFuture()) SetTime(drain.deadline, out->mutable_deadline());
  SetDevices(drain.devices, out->mutable_devices());
}

Drain GetDrain(const pb::Drain& m, Reader& reader) {
  return {.mode = reader.Enum<DrainMode>(m.mode(), pb::DrainMode_IsValid(m.mode()), "drain mode"),
          .begin = reader.GetTime(m.has_begin(), m.begin(), absl::InfinitePast(), "drain begin"),
          .deadline = reader.GetTime(m.has_deadline(), m.deadline(), absl::InfiniteFuture(),
                                     "drain deadline"),
          .devices = reader.GetDevices(m.devices(), "drained devices")};
}

void SetNodeSpec(const NodeSpec& spec, pb::NodeSpec* out) {
  out->set_name(spec.name);
  out->set_address(spec.address);
  out->set_cpu_millis(spec.cpu_millis);
  out->set_memory_bytes(spec.memory_bytes);
  for (const Device& device : spec.devices) SetDevice(device, out->add_devices());
  out->set_divides_gpus(spec.divides_gpus);
  out->set_freezes(spec.freezes);
  out->set_checkpoints_devices(spec.checkpoints_devices);
  out->set_max_tasks(spec.max_tasks);
  SetAmounts(spec.extended, out->mutable_extended());
  SetLabels(spec.labels, out->mutable_labels());
  for (const Taint& taint : spec.taints) {
    pb::Taint* message = out->add_taints();
    message->set_key(taint.key);
    message->set_value(taint.value);
    message->set_evicts(taint.evicts);
  }
  out->set_os(spec.os);
  out->set_architecture(spec.architecture);
  if (!(spec.topology == DeviceTopology{})) SetTopology(spec.topology, out->mutable_topology());
}

NodeSpec GetNodeSpec(const pb::NodeSpec& message, Reader& reader) {
  NodeSpec spec{.name = message.name(),
                .address = message.address(),
                .cpu_millis = message.cpu_millis(),
                .memory_bytes = message.memory_bytes(),
                .devices = {},
                .extended = GetAmounts(message.extended()),
                .labels = GetLabels(message.labels()),
                .taints = {},
                .os = message.os(),
                .architecture = message.architecture(),
                .topology = {}};
  if (static_cast<size_t>(message.devices_size()) > kMaxDevicesPerNode) {
    reader.Refuse(absl::StrCat(message.devices_size(), " devices"));
    return spec;
  }
  for (const pb::Device& device : message.devices()) spec.devices.push_back(GetDevice(device));
  spec.divides_gpus = message.divides_gpus();
  spec.freezes = message.freezes();
  spec.checkpoints_devices = message.checkpoints_devices();
  spec.max_tasks = reader.Count(message.max_tasks(), "tasks of a node");
  for (const pb::Taint& taint : message.taints()) {
    spec.taints.push_back({.key = taint.key(), .value = taint.value(), .evicts = taint.evicts()});
  }
  if (message.has_topology()) {
    spec.topology = GetTopology(message.topology(), spec.devices.size(), reader);
  }
  return spec;
}

}  // namespace codec

std::string EncodeLeaseRecord(GrantedLease granted) {
  codec::pb::LeaseRecord message;
  codec::SetDuration(granted.longest, message.mutable_longest());
  if (granted.usual != granted.longest) codec::SetDuration(granted.usual, message.mutable_usual());
  message.set_restored(granted.restored);
  return message.SerializeAsString();
}

absl::StatusOr<GrantedLease> DecodeLeaseRecord(absl::string_view value) {
  codec::pb::LeaseRecord message;
  absl::Status status = codec::ParseMessage(value, &message, nullptr);
  if (!status.ok()) return NameRecord(status, RecordKind::kMeta, kLeaseKey);
  codec::Reader reader;
  const Duration longest = reader.GetDuration(message.has_longest(), message.longest(),
                                              absl::ZeroDuration(), "longest lease");
  if (longest <= absl::ZeroDuration() || longest == absl::InfiniteDuration()) {
    reader.Refuse("an invalid lease");
  }
  const Duration usual =
      reader.GetDuration(message.has_usual(), message.usual(), longest, "usual lease");
  if (usual <= absl::ZeroDuration() || usual > longest) {
    reader.Refuse("a usual lease that is invalid or exceeds the longest");
  }
  status = codec::Verdict(reader, RecordKind::kMeta, kLeaseKey);
  if (!status.ok()) return status;
  return GrantedLease{longest, usual, message.restored()};
}

std::string EncodeNodeRecord(const NodeSpec& spec, const NodeStatus& status,
                             absl::Span<const HyperNodeId> domains,
                             absl::Span<const ImageId> images, uint64_t revision) {
  codec::pb::NodeRecord message;
  codec::SetNodeSpec(spec, message.mutable_spec());
  codec::SetNodeStatus(status, message.mutable_status());
  for (HyperNodeId domain : domains) message.add_domains(domain.value);
  for (ImageId image : images) message.add_images(image.value);
  message.set_revision(revision);
  return message.SerializeAsString();
}

absl::StatusOr<StoredNode> DecodeNodeRecord(absl::string_view key, absl::string_view value,
                                            std::string* unknown) {
  codec::pb::NodeRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  absl::StatusOr<NodeId> id = ParseNodeKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kNode, key);
  codec::Reader reader;
  StoredNode node{.id = *id,
                  .spec = codec::GetNodeSpec(message.spec(), reader),
                  .status = codec::GetNodeStatus(message.status(), reader),
                  .domains = {},
                  .images = codec::GetIds<ImageId>(message.images()),
                  .revision = message.revision()};
  for (uint32_t domain : message.domains()) node.domains.push_back(HyperNodeId{domain});
  status = codec::Verdict(reader, RecordKind::kNode, key);
  if (!status.ok()) return status;
  return node;
}

}  // namespace berth
