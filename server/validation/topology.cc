#include "server/validation/topology.h"

#include "absl/strings/str_cat.h"
#include "core/model/hyper_node.h"
#include "server/convert_topology.h"
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
                                  " (1 is closest), or 0 where highest_tier_name says it, is ",
                                  topology.highest_tier()));
  }
  if (named) CheckDnsLabel({path, "highest_tier_name"}, topology.highest_tier_name(), findings);
  if (named && topology.highest_tier() != 0) {
    findings.Invalid({path, "highest_tier_name"},
                     "says the same as highest_tier; give one of the two");
  }
  if (topology.mode() == Topology::HARD && !named && topology.highest_tier() == 0) {
    findings.Invalid({path, "highest_tier"},
                     "required with HARD, or highest_tier_name: the whole cluster holds every job");
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
    findings.Invalid({path, "patience"},
                     "only with SOFT: a HARD one waits for as long as it takes");
  }
}

void CheckAffinityTier(const FieldPath& path, const v1::TaskAffinity& affinity,
                       Findings& findings) {
  CheckRange({path, "tier"}, affinity.tier(), 0, kMaxHyperNodeTier, findings);
  if (affinity.tier() == 0) return;
  if (affinity.near_groups().empty() && affinity.apart_from_groups().empty()) {
    findings.Invalid({path, "tier"}, "needs near_groups or apart_from_groups");
  }
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
