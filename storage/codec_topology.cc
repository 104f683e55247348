// Records of HyperNodes, and topology constraints of jobs.
#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(HyperNodeMember::Type::kHyperNode) == pb::MEMBER_HYPER_NODE);
static_assert(static_cast<int>(HyperNodeMember::Match::kRegex) == pb::MATCH_REGEX);
static_assert(static_cast<int>(HyperNodeMember::Match::kLabel) == pb::MATCH_LABEL);
static_assert(static_cast<int>(DomainHealth::kDegraded) == pb::DOMAIN_DEGRADED);
static_assert(static_cast<int>(TopologyMode::kHard) == pb::TOPOLOGY_HARD);
static_assert(static_cast<int>(TopologyMode::kSoft) == pb::TOPOLOGY_SOFT);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<HyperNodeSpec> == 10);
static_assert(kFields<HyperNodeMember> == 3);
static_assert(kFields<StoredHyperNode> == 3);
static_assert(kFields<TopologyConstraint> == 5);

HyperNodeMember GetMember(const pb::HyperNodeMember& message, Reader& reader) {
  return {.type = reader.Enum<HyperNodeMember::Type>(
              message.type(), pb::MemberType_IsValid(message.type()), "type of member"),
          .match = reader.Enum<HyperNodeMember::Match>(
              message.match(), pb::MemberMatch_IsValid(message.match()), "match of member"),
          .text = message.text()};
}

}  // namespace

void SetHyperNodeSpec(const HyperNodeSpec& spec, pb::HyperNodeSpec* out) {
  out->set_name(spec.name);
  if (spec.kind != kNetworkKind) out->set_kind(spec.kind);
  out->set_tier(spec.tier);
  out->set_tier_name(spec.tier_name);
  for (const HyperNodeMember& member : spec.members) {
    pb::HyperNodeMember* message = out->add_members();
    message->set_type(static_cast<pb::MemberType>(member.type));
    message->set_match(static_cast<pb::MemberMatch>(member.match));
    message->set_text(member.text);
  }
  out->set_bandwidth_gbps(spec.bandwidth_gbps);
  out->set_latency_us(spec.latency_us);
  out->set_health(static_cast<pb::DomainHealth>(spec.health));
  out->set_health_reason(spec.health_reason);
  out->set_source(spec.source);
}

HyperNodeSpec GetHyperNodeSpec(const pb::HyperNodeSpec& message, Reader& reader) {
  HyperNodeSpec spec{.name = message.name(),
                     .kind = message.has_kind() ? message.kind() : kNetworkKind,
                     .tier = message.tier(),
                     .tier_name = message.tier_name(),
                     .members = {},
                     .bandwidth_gbps = message.bandwidth_gbps(),
                     .latency_us = message.latency_us(),
                     .health = reader.Enum<DomainHealth>(
                         message.health(), pb::DomainHealth_IsValid(message.health()), "health"),
                     .health_reason = message.health_reason(),
                     .source = message.source()};
  spec.members.reserve(static_cast<size_t>(message.members_size()));
  for (const pb::HyperNodeMember& member : message.members()) {
    spec.members.push_back(GetMember(member, reader));
  }
  return spec;
}

void SetTopology(const TopologyConstraint& topology, pb::Topology* out) {
  out->set_mode(static_cast<pb::TopologyMode>(topology.mode));
  out->set_highest_tier(topology.highest_tier);
  out->set_highest_tier_name(topology.highest_tier_name);
  if (topology.kind != kNetworkKind) out->set_kind(topology.kind);
  if (topology.patience != absl::ZeroDuration()) {
    SetDuration(topology.patience, out->mutable_patience());
  }
}

TopologyConstraint GetTopology(const pb::Topology& message, Reader& reader) {
  return {.mode = reader.Enum<TopologyMode>(
              message.mode(), pb::TopologyMode_IsValid(message.mode()), "mode of topology"),
          .highest_tier = message.highest_tier(),
          .highest_tier_name = message.highest_tier_name(),
          .kind = message.has_kind() ? message.kind() : kNetworkKind,
          .patience = reader.GetDuration(message.has_patience(), message.patience(),
                                         absl::ZeroDuration(), "patience")};
}

}  // namespace codec

std::string EncodeHyperNodeRecord(const HyperNodeSpec& spec, uint64_t revision) {
  codec::pb::HyperNodeRecord message;
  codec::SetHyperNodeSpec(spec, message.mutable_spec());
  message.set_revision(revision);
  return message.SerializeAsString();
}

absl::StatusOr<StoredHyperNode> DecodeHyperNodeRecord(absl::string_view key,
                                                      absl::string_view value,
                                                      std::string* unknown) {
  codec::pb::HyperNodeRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  absl::StatusOr<HyperNodeId> id = ParseHyperNodeKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kHyperNode, key);
  codec::Reader reader;
  StoredHyperNode domain{.id = *id,
                         .spec = codec::GetHyperNodeSpec(message.spec(), reader),
                         .revision = message.revision()};
  status = codec::Verdict(reader, RecordKind::kHyperNode, key);
  if (!status.ok()) return status;
  return domain;
}

}  // namespace berth
