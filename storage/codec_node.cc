// Records of nodes.
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(NodeState::kReady) == pb::NODE_READY);
static_assert(static_cast<int>(NodeState::kSilent) == pb::NODE_SILENT);
static_assert(static_cast<int>(NodeState::kLost) == pb::NODE_LOST);

void SetDevice(const Device& device, pb::Device* out) {
  out->set_kind(device.kind);
  out->set_uuid(device.uuid);
  out->set_model(device.model);
  out->set_memory_bytes(device.memory_bytes);
  out->set_numa_node(device.numa_node);
  out->set_pci_bus_id(device.pci_bus_id);
  out->set_unhealthy(device.unhealthy);
}

Device GetDevice(const pb::Device& message) {
  return {.kind = message.kind(),
          .uuid = message.uuid(),
          .model = message.model(),
          .memory_bytes = message.memory_bytes(),
          .numa_node = message.numa_node(),
          .pci_bus_id = message.pci_bus_id(),
          .unhealthy = message.unhealthy()};
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
  if (status.backoff_until != absl::InfinitePast()) {
    SetTime(status.backoff_until, out->mutable_backoff_until());
  }
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
          .refusals = message.refusals(),
          .refused_jobs = message.refused_jobs(),
          .last_refused = JobId{message.last_refused()},
          .backoff_until = reader.GetTime(message.has_backoff_until(), message.backoff_until(),
                                          absl::InfinitePast(), "backoff_until")};
}

}  // namespace

void SetNodeSpec(const NodeSpec& spec, pb::NodeSpec* out) {
  out->set_name(spec.name);
  out->set_address(spec.address);
  out->set_cpu_millis(spec.cpu_millis);
  out->set_memory_bytes(spec.memory_bytes);
  for (const Device& device : spec.devices) SetDevice(device, out->add_devices());
  SetAmounts(spec.extended, out->mutable_extended());
  SetLabels(spec.labels, out->mutable_labels());
  for (const Taint& taint : spec.taints) {
    pb::Taint* message = out->add_taints();
    message->set_key(taint.key);
    message->set_value(taint.value);
  }
  out->set_os(spec.os);
  out->set_architecture(spec.architecture);
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
                .architecture = message.architecture()};
  if (static_cast<size_t>(message.devices_size()) > kMaxDevicesPerNode) {
    reader.Refuse(absl::StrCat(message.devices_size(), " devices"));
    return spec;
  }
  for (const pb::Device& device : message.devices()) spec.devices.push_back(GetDevice(device));
  for (const pb::Taint& taint : message.taints()) {
    spec.taints.push_back({.key = taint.key(), .value = taint.value()});
  }
  return spec;
}

}  // namespace codec

std::string EncodeLeaseRecord(Duration longest) {
  codec::pb::LeaseRecord message;
  codec::SetDuration(longest, message.mutable_longest());
  return message.SerializeAsString();
}

absl::StatusOr<Duration> DecodeLeaseRecord(absl::string_view value) {
  codec::pb::LeaseRecord message;
  absl::Status status = codec::ParseMessage(value, &message, nullptr);
  if (!status.ok()) return NameRecord(status, RecordKind::kMeta, kLeaseKey);
  codec::Reader reader;
  const Duration longest = reader.GetDuration(message.has_longest(), message.longest(),
                                              absl::ZeroDuration(), "longest lease");
  if (longest <= absl::ZeroDuration() || longest == absl::InfiniteDuration()) {
    reader.Refuse("a lease that is none");
  }
  status = codec::Verdict(reader, RecordKind::kMeta, kLeaseKey);
  if (!status.ok()) return status;
  return longest;
}

std::string EncodeNodeRecord(const NodeSpec& spec, const NodeStatus& status,
                             absl::Span<const HyperNodeId> domains, uint64_t revision) {
  codec::pb::NodeRecord message;
  codec::SetNodeSpec(spec, message.mutable_spec());
  codec::SetNodeStatus(status, message.mutable_status());
  for (HyperNodeId domain : domains) message.add_domains(domain.value);
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
                  .revision = message.revision()};
  for (uint32_t domain : message.domains()) node.domains.push_back(HyperNodeId{domain});
  status = codec::Verdict(reader, RecordKind::kNode, key);
  if (!status.ok()) return status;
  return node;
}

}  // namespace berth
