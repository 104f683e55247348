#include "server/convert/topology.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/convert/values.h"

namespace berth {
namespace {

static_assert(v1::TopologyConstraint::HARD == static_cast<int>(TopologyMode::kHard));
static_assert(v1::TopologyConstraint::SOFT == static_cast<int>(TopologyMode::kSoft));

std::string KindOr(const std::string& kind) { return kind.empty() ? kNetworkKind : kind; }

void RenderMember(const HyperNodeMember& member, v1::HyperNodeSpec::Member* out) {
  const bool node = member.type == HyperNodeMember::Type::kNode;
  out->set_type(node ? v1::HyperNodeSpec::Member::NODE : v1::HyperNodeSpec::Member::HYPER_NODE);
  switch (member.match) {
    case HyperNodeMember::Match::kExact:
      return out->set_exact(member.text);
    case HyperNodeMember::Match::kRegex:
      return out->set_regex(member.text);
    case HyperNodeMember::Match::kLabel:
      return out->set_label(member.text);
  }
}

void RenderHyperNodeSpec(const HyperNodeSpec& spec, v1::HyperNodeSpec* out) {
  out->set_tier(spec.tier);
  out->set_tier_name(spec.tier_name);
  out->set_kind(spec.kind);
  for (const HyperNodeMember& member : spec.members) RenderMember(member, out->add_members());
  out->set_bandwidth_gbps(spec.bandwidth_gbps);
  out->set_latency_us(spec.latency_us);
  out->set_health(spec.health == DomainHealth::kDegraded ? v1::HyperNodeSpec::DEGRADED
                                                         : v1::HyperNodeSpec::OK);
  out->set_health_reason(spec.health_reason);
  out->set_source(spec.source);
}

}  // namespace

TopologyConstraint TopologyFrom(const v1::TopologyConstraint& topology) {
  TopologyConstraint result;
  if (topology.mode() == v1::TopologyConstraint::MODE_UNSPECIFIED) return result;
  result.mode = static_cast<TopologyMode>(topology.mode());
  result.highest_tier = topology.highest_tier();
  result.highest_tier_name = topology.highest_tier_name();
  result.kind = KindOr(topology.kind());
  result.patience = DurationFrom(topology.patience());
  return result;
}

void ToProto(const TopologyConstraint& topology, v1::TopologyConstraint* out) {
  out->set_mode(static_cast<v1::TopologyConstraint::Mode>(topology.mode));
  out->set_highest_tier(topology.highest_tier);
  out->set_highest_tier_name(topology.highest_tier_name);
  out->set_kind(topology.kind);
  if (topology.patience > absl::ZeroDuration()) {
    ToProto(topology.patience, out->mutable_patience());
  }
}

std::optional<int32_t> WeightFrom(absl::string_view text) {
  if (text == "low") return 1;
  if (text == "medium") return 10;
  if (text == "high") return 100;
  int32_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1 || number > kMaxWeight) return std::nullopt;
  return number;
}

int32_t CommunicationFrom(const google::protobuf::Map<std::string, std::string>& communication) {
  int32_t sum = 0;
  for (const auto& [pattern, weight] : communication) sum += WeightFrom(weight).value_or(0);
  return sum;
}

HyperNodeMember MemberFrom(const v1::HyperNodeSpec::Member& member) {
  using Member = v1::HyperNodeSpec::Member;
  HyperNodeMember result;
  if (member.type() == Member::HYPER_NODE) result.type = HyperNodeMember::Type::kHyperNode;
  switch (member.selector_case()) {
    case Member::kRegex:
      result.match = HyperNodeMember::Match::kRegex;
      result.text = member.regex();
      break;
    case Member::kLabel:
      result.match = HyperNodeMember::Match::kLabel;
      result.text = member.label();
      break;
    default:
      result.text = member.exact();
  }
  return result;
}

HyperNodeSpec HyperNodeSpecFrom(const v1::HyperNode& hyper_node) {
  const v1::HyperNodeSpec& spec = hyper_node.spec();
  HyperNodeSpec result;
  result.name = hyper_node.name();
  result.kind = KindOr(spec.kind());
  result.tier = spec.tier();
  result.tier_name = spec.tier_name();
  result.members.reserve(static_cast<size_t>(spec.members_size()));
  for (const auto& member : spec.members()) result.members.push_back(MemberFrom(member));
  result.bandwidth_gbps = spec.bandwidth_gbps();
  result.latency_us = spec.latency_us();
  if (spec.health() == v1::HyperNodeSpec::DEGRADED) result.health = DomainHealth::kDegraded;
  result.health_reason = spec.health_reason();
  result.source = spec.source();
  return result;
}

void RenderHyperNode(const ClusterState& state, const HyperNode& domain, v1::HyperNode* out) {
  out->set_name(domain.spec.name);
  RenderHyperNodeSpec(domain.spec, out->mutable_spec());
  v1::HyperNodeStatus* status = out->mutable_status();
  const HyperNode* parent = state.hyper_nodes().Find(domain.parent);
  if (parent != nullptr) status->set_parent(parent->spec.name);
  status->set_children(static_cast<int64_t>(domain.children.size()));
  for (const HyperNode* at = &domain; at != nullptr; at = state.hyper_nodes().Find(at->parent)) {
    if (at->spec.health != DomainHealth::kDegraded) continue;
    status->set_degraded(true);
    status->set_reason(at == &domain ? at->spec.health_reason
                                     : absl::StrCat("in ", at->spec.name,
                                                    at->spec.health_reason.empty() ? "" : ": ",
                                                    at->spec.health_reason));
    break;
  }
  out->set_etag(absl::StrCat(domain.revision));
}

}  // namespace berth
