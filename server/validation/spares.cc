#include "server/validation/spares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/validation/values.h"

namespace berth {
namespace {

// What a spare must have in common with the tasks of its group: its place, and its preparation.
std::string PreparationOf(const v1::TaskGroup& group) {
  v1::TaskGroup same;
  *same.mutable_resources() = group.resources();
  *same.mutable_node_selector() = group.node_selector();
  *same.mutable_tolerations() = group.tolerations();
  same.set_image(group.image());
  same.set_image_pull_policy(group.image_pull_policy());
  same.set_registry_auth(group.registry_auth());
  *same.mutable_volumes() = group.volumes();
  for (const v1::Container& container : group.containers()) {
    v1::Container& prepared = *same.add_containers();
    prepared.set_name(container.name());
    prepared.set_image(container.image());
    prepared.set_image_pull_policy(container.image_pull_policy());
    prepared.set_registry_auth(container.registry_auth());
    *prepared.mutable_volumes() = container.volumes();
  }
  return same.ShortDebugString();  // maps in the order of their keys
}

const v1::TaskGroup* FindGroup(const v1::JobSpec& spec, const std::string& name) {
  const auto found = std::find_if(spec.groups().begin(), spec.groups().end(),
                                  [&](const v1::TaskGroup& group) { return group.name() == name; });
  return found == spec.groups().end() ? nullptr : &*found;
}

// `path`: what asks for spares of the group.
void CheckBuilt(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                Findings& findings) {
  const auto refuse = [&](bool has, const char* what) {
    if (has) findings.Unbuilt(path, absl::StrCat("spares of a group with ", what));
  };
  refuse(group.has_partition(), "partition");
  refuse(group.has_spread(), "spread");
  refuse(group.has_affinity() || group.has_copies_of(), "affinity");
  refuse(group.has_topology(), "a topology of its own (set the job's instead)");
  int32_t of_groups = 0;
  for (const v1::TaskGroup& one : spec.groups()) of_groups += MinAvailableOf(spec, one);
  refuse(spec.min_available() > of_groups,
         "a min_available of the job above the sum of the groups'");
}

void CheckSpareGroup(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& spare,
                     Findings& findings) {
  const v1::TaskGroup* group = FindGroup(spec, spare.spare_of());
  if (group == nullptr || group->role() == v1::SPARE || group->role() == v1::COORDINATOR) {
    findings.Invalid({path, "spare_of"}, "must be the name of a group of workers");
    return;
  }
  CheckBuilt(path, spec, *group, findings);
  const int32_t most = std::min(kMaxSpares, ReplicasOf(*group));
  if (ReplicasOf(spare) > most) {
    findings.Invalid({path, "replicas"},
                     absl::StrCat("at most ", most, " spares, are ", ReplicasOf(spare)));
  }
  if (spare.has_min_available() && spare.min_available() != 0) {
    findings.Invalid({path, "min_available"}, "must be 0: no gang waits for its spares");
  }
  if (spare.policies_size() > 0) findings.Invalid({path, "policies"}, "spares have none");
  if (spare.membership() != v1::MEMBERSHIP_UNSPECIFIED)
    findings.Invalid({path, "membership"}, "spares have none");
  if (PreparationOf(spare) != PreparationOf(*group)) {
    findings.Invalid(path, absl::StrCat("must have the resources, node_selector, tolerations, "
                                        "volumes, image and containers of group ",
                                        group->name()));
  }
  if (spare.has_partition() || spare.has_spread() || spare.has_affinity() || spare.has_topology())
    findings.Invalid(path, "spares have no partition, spread, affinity and topology");
}

}  // namespace

bool CheckSparesOf(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                   Findings& findings) {
  if (group.role() == v1::COORDINATOR || group.role() == v1::SPARE) {
    findings.Invalid({path, "spares"}, "only groups of workers have spares");
    return false;
  }
  CheckBuilt({path, "spares"}, spec, group, findings);
  const int32_t most = std::min(kMaxSpares, ReplicasOf(group));
  if (group.spares() >= 0 && group.spares() <= most) return true;
  findings.Invalid({path, "spares"}, absl::StrCat("must be 0..", most, ", is ", group.spares()));
  return false;
}

void CheckSpareGroups(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  for (int i = 0; i < spec.groups_size(); ++i) {
    const v1::TaskGroup& group = spec.groups(i);
    const FieldPath here(path, "groups", i);
    if (group.role() == v1::SPARE) {
      CheckSpareGroup(here, spec, group, findings);
    } else if (!group.spare_of().empty()) {
      findings.Invalid({here, "spare_of"}, "only with role SPARE");
    }
  }
}

}  // namespace berth
