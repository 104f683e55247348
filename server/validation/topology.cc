#include "server/validation/topology.h"

#include "absl/strings/str_cat.h"
#include "core/model/hyper_node.h"
#include "server/convert/topology.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

using Topology = v1::TopologyConstraint;

void CheckTier(const FieldPath& path, const Topology& topology, Findings& findings) {
  const bool named = !topology.highest_tier_name().empty();
  if (topology.highest_tier() < 0 || topology.highest_tier() > kMaxHyperNodeTier) {
    findings.Invalid({path, "highest_tier"},
                     absl::StrCat("must be 1..", kMaxHyperNodeTier,
                                  " (1 is closest), or 0 if highest_tier_name is set, is ",
                                  topology.highest_tier()));
  }
  if (named) CheckDnsLabel({path, "highest_tier_name"}, topology.highest_tier_name(), findings);
  if (named && topology.highest_tier() != 0) {
    findings.Invalid({path, "highest_tier_name"},
                     "set either highest_tier or highest_tier_name, not both");
  }
  if (topology.mode() == Topology::HARD && !named && topology.highest_tier() == 0) {
    findings.Invalid({path, "highest_tier"}, "HARD requires highest_tier or highest_tier_name");
  }
}

}  // namespace

void CheckTopology(const FieldPath& path, const Topology& topology, Findings& findings) {
  CheckEnum({path, "mode"}, topology.mode(), findings);
  if (topology.mode() == Topology::MODE_UNSPECIFIED) {
    findings.Invalid({path, "mode"}, "required: HARD or SOFT");
  }
  CheckTier(path, topology, findings);
  if (!topology.kind().empty()) CheckDnsLabel({path, "kind"}, topology.kind(), findings);
  if (!topology.has_patience()) return;
  CheckDuration({path, "patience"}, topology.patience(), absl::ZeroDuration(), kMaxDuration,
                findings);
  if (topology.mode() == Topology::HARD) {
    findings.Invalid({path, "patience"}, "only with SOFT: HARD waits without a time limit");
  }
}

namespace {

void CheckTerms(const FieldPath& path, absl::string_view field,
                const google::protobuf::RepeatedPtrField<v1::JobAffinityTerm>& terms,
                Findings& findings) {
  if (terms.size() > kMaxAffinityTerms) {
    findings.Invalid({path, field},
                     absl::StrCat("at most ", kMaxAffinityTerms, " entries, has ", terms.size()));
    return;
  }
  for (int i = 0; i < terms.size(); ++i) {
    const FieldPath entry(path, field, i);
    const v1::JobAffinityTerm& term = terms[i];
    if (term.match_labels().empty() || term.match_labels_size() > kMaxAffinityLabels) {
      findings.Invalid({entry, "match_labels"},
                       absl::StrCat("must be 1..", kMaxAffinityLabels, " labels, has ",
                                    term.match_labels_size()));
    } else {
      CheckLabels(entry, "match_labels", term.match_labels(), findings);
    }
    CheckRange({entry, "tier"}, term.tier(), 0, kMaxHyperNodeTier, findings);
  }
}

}  // namespace

void CheckJobAffinity(const FieldPath& path, const v1::JobAffinity& affinity, Findings& findings) {
  CheckTerms(path, "near", affinity.near(), findings);
  CheckTerms(path, "apart_from", affinity.apart_from(), findings);
}

void CheckAffinityTier(const FieldPath& path, const v1::TaskAffinity& affinity,
                       Findings& findings) {
  CheckRange({path, "tier"}, affinity.tier(), 0, kMaxHyperNodeTier, findings);
  if (affinity.tier() == 0) return;
  if (affinity.near_groups().empty() && affinity.apart_from_groups().empty()) {
    findings.Invalid({path, "tier"}, "requires near_groups or apart_from_groups");
  }
}

bool CheckCopies(const FieldPath& group_path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                 Findings& findings) {
  const size_t before = findings.size();
  const FieldPath path(group_path, "copies_of");
  const std::string& of = group.copies_of().group();
  const auto has_name = [&](const v1::TaskGroup& other) { return other.name() == of; };
  if (of == group.name()) {
    findings.Invalid({path, "group"}, "must be another group");
  } else if (std::none_of(spec.groups().begin(), spec.groups().end(), has_name)) {
    findings.Invalid({path, "group"}, absl::StrCat("the job has no group ", Quoted(of)));
  }
  CheckRange({path, "apart_tier"}, group.copies_of().apart_tier(), 0, kMaxHyperNodeTier, findings);
  if (group.has_affinity()) findings.Invalid(path, "a group has it or affinity, not both");
  return findings.size() == before;
}

void CheckCommunication(const FieldPath& group_path, const v1::TaskGroup& group,
                        Findings& findings) {
  if (group.communication_size() > kMaxCommunicationEntries) {
    findings.Invalid({group_path, "communication"},
                     absl::StrCat("at most ", kMaxCommunicationEntries, " entries, has ",
                                  group.communication_size()));
    return;
  }
  for (const auto& [pattern, weight] : group.communication()) {
    const FieldPath entry(group_path, "communication", pattern);
    if (pattern.empty() || !IsLabelValue(pattern)) {
      findings.Invalid(entry, "its key must be 1..63 letters, digits, '-', '_' and '.'");
    }
    if (WeightFrom(weight).has_value()) continue;
    findings.Invalid(entry, absl::StrCat("must be low, medium, high or a number of 1..", kMaxWeight,
                                         ", is ", Quoted(weight)));
  }
}

}  // namespace berth
