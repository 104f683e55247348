#include "server/validation/hyper_node.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/convert/topology.h"
#include "server/planning/selectors.h"
#include "server/validation/job.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/errors.h"

namespace berth {
namespace {

using Member = v1::HyperNodeSpec::Member;

constexpr char kByServer[] = "is set by the server; leave it out";

void CheckLabelSelector(const FieldPath& path, const std::string& text, Findings& findings) {
  const absl::Status status =
      CheckSelector({.match = HyperNodeMember::Match::kLabel, .text = text});
  if (!status.ok()) return findings.Invalid(path, std::string(status.message()));
  for (absl::string_view pair : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> label =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (!IsLabelKey(label.first)) {
      findings.Invalid(path, absl::StrCat(Quoted(label.first), " is not a valid label key"));
    } else if (!IsLabelValue(label.second)) {
      findings.Invalid(path, absl::StrCat(Quoted(label.second), " is not a valid label value"));
    }
  }
}

void CheckNodeMember(const FieldPath& path, const Member& member, Findings& findings) {
  switch (member.selector_case()) {
    case Member::kExact:
      return CheckDnsName({path, "exact"}, member.exact(), findings);
    case Member::kRegex: {
      const absl::Status status = CheckSelector(MemberFrom(member));
      if (!status.ok()) findings.Invalid({path, "regex"}, std::string(status.message()));
      return;
    }
    case Member::kLabel:
      return CheckLabelSelector({path, "label"}, member.label(), findings);
    case Member::SELECTOR_NOT_SET:
      return findings.Invalid(path, "requires one of exact, regex and label");
  }
}

void CheckMember(const FieldPath& path, const Member& member, Findings& findings) {
  CheckEnum({path, "type"}, member.type(), findings);
  if (member.type() == Member::NODE) return CheckNodeMember(path, member, findings);
  if (member.type() != Member::HYPER_NODE) {
    return findings.Invalid({path, "type"}, "required: NODE or HYPER_NODE");
  }
  if (member.selector_case() != Member::kExact) {
    return findings.Invalid(path, "a HyperNode must be selected by its exact name");
  }
  CheckDnsLabel({path, "exact"}, member.exact(), findings);
}

void CheckMembers(const FieldPath& spec, const v1::HyperNodeSpec& value, Findings& findings) {
  if (value.members_size() > static_cast<int>(kMaxHyperNodeMembers)) {
    findings.Invalid({spec, "members"}, absl::StrCat("at most ", kMaxHyperNodeMembers,
                                                     " entries, has ", value.members_size()));
    return;
  }
  absl::flat_hash_set<absl::string_view> children;
  for (int i = 0; i < value.members_size(); ++i) {
    const FieldPath path(spec, "members", i);
    const Member& member = value.members(i);
    CheckMember(path, member, findings);
    if (member.type() == Member::HYPER_NODE && !children.insert(member.exact()).second) {
      findings.Invalid({path, "exact"}, absl::StrCat(Quoted(member.exact()), " is named twice"));
    }
  }
}

void CheckSource(const FieldPath& path, absl::string_view source, Findings& findings) {
  if (source.empty() || source == "agents") return;
  absl::string_view name = source;
  if (absl::ConsumePrefix(&name, "import/") && IsDnsLabel(name)) return;
  findings.Invalid(
      path, absl::StrCat("must be empty, \"agents\" or \"import/NAME\", is ", Quoted(source)));
}

void CheckHyperNodeMessage(const FieldPath& path, const v1::HyperNode& value, bool update,
                           Findings& findings) {
  CheckDnsLabel({path, "name"}, value.name(), findings);
  if (value.has_status() && !update) findings.Invalid({path, "status"}, kByServer);
  if (!value.etag().empty() && !update) findings.Invalid({path, "etag"}, kByServer);
  const FieldPath spec(path, "spec");
  const v1::HyperNodeSpec& s = value.spec();
  CheckRange({spec, "tier"}, s.tier(), 1, kMaxHyperNodeTier, findings);
  if (!s.tier_name().empty()) CheckDnsLabel({spec, "tier_name"}, s.tier_name(), findings);
  if (!s.kind().empty()) CheckDnsLabel({spec, "kind"}, s.kind(), findings);
  CheckMembers(spec, s, findings);
  CheckRange({spec, "bandwidth_gbps"}, s.bandwidth_gbps(), 0, 1'000'000, findings);
  CheckRange({spec, "latency_us"}, s.latency_us(), 0, 1'000'000'000, findings);
  CheckEnum({spec, "health"}, s.health(), findings);
  if (s.health_reason().size() > kMaxHealthReasonBytes) {
    findings.Invalid(
        {spec, "health_reason"},
        absl::StrCat("at most ", kMaxHealthReasonBytes, " bytes, has ", s.health_reason().size()));
  }
  CheckSource({spec, "source"}, s.source(), findings);
}

// Within one call: each name once, and not both given and deleted.
void CheckApplyNames(const v1::ApplyHyperNodesRequest& request, Findings& findings) {
  const FieldPath root;
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < request.hyper_nodes_size(); ++i) {
    const FieldPath path(root, "hyper_nodes", i);
    const std::string& name = request.hyper_nodes(i).name();
    if (names.insert(name).second) continue;
    findings.Invalid({path, "name"}, absl::StrCat(Quoted(name), " is given twice"));
  }
  for (int i = 0; i < request.delete_names_size(); ++i) {
    const std::string& name = request.delete_names(i);
    if (names.insert(name).second) continue;
    findings.Invalid({root, "delete_names", i},
                     absl::StrCat(Quoted(name), " is named twice, or given and deleted"));
  }
}

}  // namespace

absl::Status ValidateCreateHyperNode(const v1::CreateHyperNodeRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckRequestId(request.request_id(), findings);
  CheckHyperNodeMessage({root, "hyper_node"}, request.hyper_node(), false, findings);
  return findings.ToStatus();
}

absl::Status ValidateUpdateHyperNode(const v1::UpdateHyperNodeRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckHyperNodeMessage({root, "hyper_node"}, request.hyper_node(), true, findings);
  return findings.ToStatus();
}

absl::Status ValidateApplyHyperNodes(const v1::ApplyHyperNodesRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckRequestId(request.request_id(), findings);
  const int count = request.hyper_nodes_size() + request.delete_names_size();
  if (count > kMaxHyperNodesPerCall) {
    findings.Invalid({root, "hyper_nodes"},
                     absl::StrCat("at most ", kMaxHyperNodesPerCall,
                                  " given and deleted in one call, has ", count));
    return findings.ToStatus();
  }
  for (int i = 0; i < request.hyper_nodes_size(); ++i) {
    CheckHyperNodeMessage({root, "hyper_nodes", i}, request.hyper_nodes(i), true, findings);
  }
  CheckApplyNames(request, findings);
  return findings.ToStatus();
}

absl::Status CheckHyperNodesFit(const ClusterState& state, size_t created, size_t deleted) {
  if (state.hyper_nodes().size() + created <= kMaxHyperNodes + deleted) return absl::OkStatus();
  return RetryLaterError(absl::StatusCode::kResourceExhausted,
                         absl::StrCat("at most ", kMaxHyperNodes, " HyperNodes"), absl::Minutes(1));
}

absl::Status CheckSourceKept(const HyperNodeSpec& before, const HyperNodeSpec& after) {
  if (after.source.empty() || after.source == before.source) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("HyperNode ", Quoted(before.name), " is managed by ",
                   before.source.empty() ? "hand" : before.source, ", not by ", after.source,
                   ": a source can only be changed to empty"));
}

}  // namespace berth
