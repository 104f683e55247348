#include "server/validation/group.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/containers.h"
#include "server/validation/graph.h"
#include "server/validation/job.h"
#include "server/validation/lifecycle.h"
#include "server/validation/text.h"
#include "server/validation/topology.h"
#include "server/validation/values.h"
#include "server/validation/volumes.h"

namespace berth {
namespace {

constexpr int32_t kGreatestSkew = 10'000;

void CheckCommand(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  if (group.command().empty()) {
    if (group.image().empty()) {
      findings.Invalid({path, "command"}, "required without image: the program and its arguments");
    }
  } else if (group.command(0).empty()) {
    findings.Invalid({path, "command", 0}, "the program must not be empty");
  }
  for (int i = 0; i < group.command_size(); ++i) {
    CheckNoNul({path, "command", i}, group.command(i), findings);
  }
  for (int i = 0; i < group.args_size(); ++i) {
    CheckNoNul({path, "args", i}, group.args(i), findings);
  }
}

constexpr size_t kMaxPath = 4096;

void CheckEnv(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < group.env_size(); ++i) {
    const v1::EnvVar& variable = group.env(i);
    const FieldPath entry(path, "env", i);
    if (!IsEnvName(variable.name())) {
      findings.Invalid(
          {entry, "name"},
          absl::StrCat("must be letters, digits and '_' and not begin with a digit, is ",
                       Quoted(variable.name())));
    } else if (!names.insert(variable.name()).second) {
      findings.Invalid({entry, "name"}, absl::StrCat(variable.name(), " is set twice"));
    }
    CheckNoNul({entry, "value"}, variable.value(), findings);
    if (variable.from_file().empty()) continue;
    CheckNoNul({entry, "from_file"}, variable.from_file(), findings);
    if (variable.from_file()[0] != '/' || variable.from_file().size() > kMaxPath) {
      findings.Invalid({entry, "from_file"},
                       absl::StrCat("must be an absolute path of at most ", kMaxPath, " bytes"));
    }
    if (!variable.value().empty()) findings.Invalid({entry, "value"}, "not together with fromFile");
  }
}

void CheckWorkingDir(const FieldPath& path, const std::string& directory, Findings& findings) {
  if (directory.empty()) return;
  if (directory[0] != '/') {
    findings.Invalid(path, absl::StrCat("must be an absolute path, is ", Quoted(directory)));
  }
  CheckNoNul(path, directory, findings);
}

void CheckNodeSelector(const FieldPath& path, const v1::NodeSelector& selector,
                       Findings& findings) {
  CheckLabels(path, "match_labels", selector.match_labels(), findings);
  if (selector.exclude_nodes_size() > kMaxExcludedNodes) {
    findings.Invalid({path, "exclude_nodes"},
                     absl::StrCat("at most ", kMaxExcludedNodes, " entries, has ",
                                  selector.exclude_nodes_size()));
    return;
  }
  for (int i = 0; i < selector.exclude_nodes_size(); ++i) {
    CheckDnsName({path, "exclude_nodes", i}, selector.exclude_nodes(i), findings);
  }
}

void CheckTolerations(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  if (group.tolerations_size() > kMaxTolerations) {
    findings.Invalid(
        {path, "tolerations"},
        absl::StrCat("at most ", kMaxTolerations, " entries, has ", group.tolerations_size()));
  }
  for (int i = 0; i < group.tolerations_size(); ++i) {
    const v1::Toleration& toleration = group.tolerations(i);
    const FieldPath entry(path, "tolerations", i);
    if (!toleration.key().empty() && !IsLabelKey(toleration.key())) {
      findings.Invalid({entry, "key"}, "must be empty (every key) or a label key");
    }
    if (!IsLabelValue(toleration.value())) {
      findings.Invalid({entry, "value"}, "must be empty (every value) or a label value");
    }
  }
}

void CheckImage(const FieldPath& path, const std::string& image, Findings& findings) {
  if (image.empty() || IsImageName(image)) return;
  findings.Invalid(path, absl::StrCat("must be names of letters, digits, '.', '_', '-', ':', '@' "
                                      "and '+' with '/' between, none beginning with '.', at most "
                                      "512 bytes, is ",
                                      Quoted(image)));
}

void CheckPull(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  CheckEnum({path, "image_pull_policy"}, group.image_pull_policy(), findings);
  const std::string& auth = group.registry_auth();
  CheckNoNul({path, "registry_auth"}, auth, findings);
  if (!auth.empty() && (auth[0] != '/' || auth.size() > kMaxPath)) {
    findings.Invalid({path, "registry_auth"},
                     absl::StrCat("must be an absolute path of at most ", kMaxPath, " bytes"));
  }
  if (!group.image().empty()) return;
  if (group.image_pull_policy() != v1::IMAGE_PULL_POLICY_UNSPECIFIED) {
    findings.Invalid({path, "image_pull_policy"}, "needs image");
  }
  if (!auth.empty()) findings.Invalid({path, "registry_auth"}, "needs image");
}

void CheckPartition(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                    Findings& findings) {
  const v1::Partition& partition = group.partition();
  const int32_t minimum = MinAvailableOf(spec, group);
  if (partition.has_topology()) CheckTopology({path, "topology"}, partition.topology(), findings);
  if (partition.size() < 1) {
    findings.Invalid({path, "size"}, absl::StrCat("must be at least 1, is ", partition.size()));
    return;
  }
  for (const auto& [what, tasks] :
       {std::pair("replicas", ReplicasOf(group)), std::pair("min_available", minimum)}) {
    if (tasks % partition.size() == 0) continue;
    findings.Invalid({path, "size"}, absl::StrCat("must divide ", what, ", which is ", tasks,
                                                  "; is ", partition.size()));
  }
  const int64_t wanted = partition.min_partitions();
  if (wanted < 0 || wanted * partition.size() > ReplicasOf(group)) {
    findings.Invalid({path, "min_partitions"},
                     absl::StrCat("must be 0..", ReplicasOf(group) / partition.size(),
                                  " (replicas / size), is ", wanted));
  } else if (wanted != 0 && wanted * partition.size() != minimum) {
    findings.Unbuilt({path, "min_partitions"}, "min_partitions other than min_available / size");
  }
}

void CheckSpread(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                 Findings& findings) {
  if (spec.has_topology() || group.has_topology() || group.partition().has_topology()) {
    return findings.Unbuilt(path, "spread of a group that a topology constraint holds together");
  }
  CheckRange({path, "tier"}, group.spread().tier(), 0, kMaxHyperNodeTier, findings);
  CheckRange({path, "max_skew"}, group.spread().max_skew(), 1, kGreatestSkew, findings);
}

// Chooses the device of a node for a share.
void CheckSharesDevices(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  const auto& devices = group.resources().devices();
  const bool shares = std::any_of(devices.begin(), devices.end(), RequestsShare);
  if (group.device_strategy() == v1::STRATEGY_UNSPECIFIED || shares) return;
  findings.Invalid(path, "chooses the device for a share, but the group requests no share");
}

void CheckPriority(const FieldPath& path, const v1::JobSpec& spec, int32_t priority,
                   Findings& findings) {
  CheckRange(path, priority, -kMaxPriority, kMaxPriority, findings);
  // That of a class is known later (server/commands/job_class.h).
  if (priority <= spec.priority() || !spec.priority_class().empty()) return;
  findings.Invalid(path, absl::StrCat("must be at most the job's priority, ", spec.priority(),
                                      ", is ", priority));
}

// A gang is stopped as a whole, so only tasks that it does not need may be stopped alone.
void CheckPreemptible(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                      Findings& findings) {
  if (!group.preemptible() && (!spec.has_preemptible() || spec.preemptible())) {
    findings.Unbuilt(path,
                     "false in a job that may be preemptible (set preemptible: false for the "
                     "job, and true for groups with min_available 0)");
  }
  if (!group.preemptible() || spec.preemptible()) return;
  int64_t of_groups = 0;
  for (const v1::TaskGroup& one : spec.groups()) of_groups += MinAvailableOf(spec, one);
  const int64_t wanted = std::max<int64_t>(spec.min_available(), std::max<int64_t>(of_groups, 1));
  if (MinAvailableOf(spec, group) > 0) {
    findings.Invalid(path,
                     "true in a job that is not preemptible needs min_available 0: a gang is "
                     "stopped as a whole");
  } else if (wanted > of_groups) {
    findings.Invalid(path, absl::StrCat("true in a job that is not preemptible: the job's "
                                        "min_available, ",
                                        wanted, ", must be at most ", of_groups,
                                        ", the sum of its groups' minimums"));
  }
}

// "a -> b -> a"
std::string DescribeGroupCycle(const v1::JobSpec& spec, const std::vector<int>& cycle) {
  std::string text;
  for (const int group : cycle) absl::StrAppend(&text, spec.groups(group).name(), " -> ");
  return absl::StrCat(text, spec.groups(cycle.front()).name());
}

using GroupIndex = absl::flat_hash_map<absl::string_view, int>;

// The groups named by one list of an affinity; unknown ones are reported and left out.
std::vector<int> AffinityEdges(const FieldPath& path, absl::string_view field,
                               const google::protobuf::RepeatedPtrField<std::string>& names,
                               const GroupIndex& index, Findings& findings) {
  std::vector<int> edges;
  for (int i = 0; i < names.size(); ++i) {
    const auto found = index.find(names[i]);
    if (found == index.end()) {
      findings.Invalid({path, field, i}, absl::StrCat("the job has no group ", Quoted(names[i])));
    } else if (std::find(edges.begin(), edges.end(), found->second) != edges.end()) {
      findings.Invalid({path, field, i}, absl::StrCat(Quoted(names[i]), " is named twice"));
    } else {
      edges.push_back(found->second);
    }
  }
  return edges;
}

// The groups that `group` must be near to.
std::vector<int> NearEdges(const FieldPath& group_path, const v1::TaskGroup& group,
                           const GroupIndex& index, Findings& findings) {
  const FieldPath path(group_path, "affinity");
  const v1::TaskAffinity& affinity = group.affinity();
  std::vector<int> near =
      AffinityEdges(path, "near_groups", affinity.near_groups(), index, findings);
  const std::vector<int> apart =
      AffinityEdges(path, "apart_from_groups", affinity.apart_from_groups(), index, findings);
  for (const int other : apart) {
    if (std::find(near.begin(), near.end(), other) == near.end()) continue;
    findings.Invalid(path, "a group cannot be both near to and apart from another");
  }
  return near;
}

// The groups that `group` waits for; unknown ones are reported and left out.
std::vector<int> GroupEdges(const FieldPath& path, const v1::TaskGroup& group,
                            const GroupIndex& index, Findings& findings) {
  std::vector<int> edges;
  for (int i = 0; i < group.depends_on_size(); ++i) {
    const v1::GroupDependency& dependency = group.depends_on(i);
    const FieldPath entry(path, "depends_on", i);
    CheckEnum({entry, "condition"}, dependency.condition(), findings);
    if (dependency.condition() == v1::GroupDependency::CONDITION_UNSPECIFIED) {
      findings.Invalid({entry, "condition"}, "required: RUNNING or COMPLETED");
    }
    const auto found = index.find(dependency.group());
    if (found == index.end()) {
      findings.Invalid({entry, "group"},
                       absl::StrCat("the job has no group ", Quoted(dependency.group())));
    } else if (std::find(edges.begin(), edges.end(), found->second) != edges.end()) {
      findings.Invalid({entry, "group"},
                       absl::StrCat(Quoted(dependency.group()), " is named twice"));
    } else {
      edges.push_back(found->second);
    }
  }
  return edges;
}

}  // namespace

void CheckDeviceStrategy(const FieldPath& path, v1::Strategy strategy, Findings& findings) {
  CheckEnum(path, strategy, findings);
  if (strategy != v1::COLOCATE) return;
  findings.Invalid(path, "must be BINPACK or SPREAD: COLOCATE applies only to nodes");
}

void CheckProcess(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  CheckCommand(path, group, findings);
  CheckEnv(path, group, findings);
  CheckWorkingDir({path, "working_dir"}, group.working_dir(), findings);
  CheckImage({path, "image"}, group.image(), findings);
  CheckPull(path, group, findings);
  CheckVolumes(path, group, findings);
}

void CheckGroup(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                const config::v1::Limits& limits, ResourceTotals& totals, Findings& findings) {
  CheckDnsLabel({path, "name"}, group.name(), findings);
  const int32_t replicas = ReplicasOf(group);
  CheckRange({path, "replicas"}, replicas, 1, limits.tasks_per_job(), findings);
  if (replicas > 0 && (group.min_available() < 0 || group.min_available() > replicas)) {
    findings.Invalid(
        {path, "min_available"},
        absl::StrCat("must be 0..", replicas, " (replicas), is ", group.min_available()));
  }
  CheckRequest({path, "resources"}, group.resources(), replicas, totals, findings);
  CheckProcess(path, group, findings);
  CheckContainers(path, group, findings);
  CheckPolicies(path, group.policies(), spec.has_watchdog(), findings);
  CheckNodeSelector({path, "node_selector"}, group.node_selector(), findings);
  CheckTolerations(path, group, findings);
  CheckEnum({path, "strategy"}, group.strategy(), findings);
  if (group.has_partition()) CheckPartition({path, "partition"}, spec, group, findings);
  if (group.has_spread()) CheckSpread({path, "spread"}, spec, group, findings);
  CheckMembership(path, spec, group, findings);
  CheckDeviceStrategy({path, "device_strategy"}, group.device_strategy(), findings);
  CheckSharesDevices({path, "device_strategy"}, group, findings);
  if (group.has_preemptible()) CheckPreemptible({path, "preemptible"}, spec, group, findings);
  if (group.has_priority()) CheckPriority({path, "priority"}, spec, group.priority(), findings);
  if (group.has_topology()) CheckTopology({path, "topology"}, group.topology(), findings);
  CheckCommunication(path, group, findings);
  if (group.has_affinity()) CheckAffinityTier({path, "affinity"}, group.affinity(), findings);
}

void CheckGroupGraph(const FieldPath& job_spec, const v1::JobSpec& spec, Findings& findings) {
  if (spec.groups_size() == 1 && spec.groups(0).depends_on().empty() &&
      !spec.groups(0).has_affinity()) {
    return;
  }
  GroupIndex index;
  for (int i = 0; i < spec.groups_size(); ++i) {
    const FieldPath path(job_spec, "groups", i);
    const auto [first, added] = index.emplace(spec.groups(i).name(), i);
    if (added || spec.groups(i).name().empty()) continue;
    findings.Invalid({path, "name"},
                     absl::StrCat(Quoted(spec.groups(i).name()), " is already the name of groups[",
                                  first->second, "]"));
  }
  Graph waits, near;
  for (int i = 0; i < spec.groups_size(); ++i) {
    const FieldPath path(job_spec, "groups", i);
    waits.push_back(GroupEdges(path, spec.groups(i), index, findings));
    near.push_back(NearEdges(path, spec.groups(i), index, findings));
  }
  if (const std::vector<int> cycle = FindCycle(waits); !cycle.empty()) {
    const FieldPath path(job_spec, "groups", cycle.front());
    findings.Invalid({path, "depends_on"},
                     absl::StrCat("dependencies between groups form a cycle: ",
                                  DescribeGroupCycle(spec, cycle)));
  }
  if (const std::vector<int> cycle = FindCycle(near); !cycle.empty()) {
    const FieldPath path(job_spec, "groups", cycle.front());
    findings.Invalid({path, "affinity"},
                     absl::StrCat("near_groups form a cycle: ", DescribeGroupCycle(spec, cycle)));
  }
}

}  // namespace berth
