#include "server/validation/containers.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/validation/group.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

constexpr int kMaxContainers = 16;
constexpr absl::Duration kLongestStep = absl::Hours(24 * 7);
constexpr int kMaxPatterns = 4;
constexpr size_t kMaxPattern = 512;

// A container has a command, environment, image and volumes as a group has them.
v1::TaskGroup AsGroup(const v1::Container& container) {
  v1::TaskGroup group;
  *group.mutable_command() = container.command();
  *group.mutable_args() = container.args();
  *group.mutable_env() = container.env();
  *group.mutable_volumes() = container.volumes();
  group.set_working_dir(container.working_dir());
  group.set_image(container.image());
  group.set_image_pull_policy(container.image_pull_policy());
  group.set_registry_auth(container.registry_auth());
  return group;
}

using NamedHosts = absl::flat_hash_map<std::string, std::string>;  // name -> group

void CheckNamesOf(const FieldPath& path, const std::string& pattern, const v1::TaskGroup& group,
                  NamedHosts& named, Findings& findings) {
  const auto names =
      pattern.size() <= kMaxPattern
          ? ExpandNamePattern(pattern)
          : absl::InvalidArgumentError(absl::StrCat("at most ", kMaxPattern, " characters"));
  if (!names.ok()) return findings.Invalid(path, std::string(names.status().message()));
  if (static_cast<int64_t>(names->size()) != ReplicasOf(group)) {
    return findings.Invalid(
        path, absl::StrCat("must be as many names as replicas, ", ReplicasOf(group), ", are ",
                           names->size(), ": write a range such as worker-[0-7]"));
  }
  for (const std::string& name : *names) {
    if (!IsDnsName(name))
      return findings.Invalid(path, absl::StrCat(Quoted(name), " is no name of a host"));
    if (name == "localhost") return findings.Invalid(path, "localhost is each task's own node");
    const auto [other, added] = named.emplace(name, group.name());
    if (added) continue;
    return findings.Invalid(
        path, absl::StrCat(Quoted(name), " is already a name of group ", other->second));
  }
}

}  // namespace

void CheckContainers(const FieldPath& path, const v1::TaskGroup& group, Findings& findings) {
  if (group.containers_size() > kMaxContainers) {
    return findings.Invalid(
        {path, "containers"},
        absl::StrCat("at most ", kMaxContainers, " containers, has ", group.containers_size()));
  }
  absl::flat_hash_set<absl::string_view> names;
  for (int i = 0; i < group.containers_size(); ++i) {
    const v1::Container& container = group.containers(i);
    const FieldPath entry(path, "containers", i);
    CheckDnsLabel({entry, "name"}, container.name(), findings);
    if (!names.insert(container.name()).second) {
      findings.Invalid({entry, "name"},
                       absl::StrCat(Quoted(container.name()), " is the name of two containers"));
    }
    CheckEnum({entry, "kind"}, container.kind(), findings);
    CheckProcess(entry, AsGroup(container), findings);
    if (!container.has_timeout()) continue;
    if (container.kind() != v1::Container::INIT)
      findings.Invalid({entry, "timeout"}, "only of a container of kind INIT");
    CheckDuration({entry, "timeout"}, container.timeout(), absl::Seconds(1), kLongestStep,
                  findings);
  }
}

void CheckHostNames(const FieldPath& path, const v1::JobSpec& spec, Findings& findings) {
  int64_t tasks = 0;
  for (const v1::TaskGroup& group : spec.groups()) tasks += ReplicasOf(group);
  NamedHosts named;
  for (int g = 0; g < spec.groups_size(); ++g) {
    const v1::TaskGroup& group = spec.groups(g);
    if (group.host_names().empty()) continue;
    const FieldPath entry(path, "groups", g);
    const FieldPath list(entry, "host_names");
    if (tasks > kMaxNamedTasks)
      return findings.Invalid(list, absl::StrCat("only in jobs of at most ", kMaxNamedTasks,
                                                 " tasks, this one has ", tasks));
    if (group.host_names_size() > kMaxPatterns) {
      findings.Invalid(
          list, absl::StrCat("at most ", kMaxPatterns, " entries, has ", group.host_names_size()));
      continue;
    }
    for (int i = 0; i < group.host_names_size(); ++i)
      CheckNamesOf({entry, "host_names", i}, group.host_names(i), group, named, findings);
  }
}

}  // namespace berth
