#include "clients/cli/migration_files.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/manifest.h"
#include "clients/cli/topology/node_names.h"
#include "support/visible.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

constexpr char kDocumentEnd[] = "---\n";

template <class Resource>
void AddManifests(const std::vector<Resource>& resources, std::vector<std::string>* texts) {
  for (const Resource& resource : resources) texts->push_back(WriteManifest(resource));
}

std::string LabelDocuments(const std::vector<MigratedLabels>& all) {
  std::string text =
      "# Labels for the configurations of agents (agent.yaml): each block for the nodes above "
      "it.\n";
  for (const MigratedLabels& each : all) {
    absl::StrAppend(&text, "# ", absl::StrJoin(FoldNames(each.nodes), " "), "\nlabels:\n");
    for (const auto& [key, value] : each.labels)
      absl::StrAppend(&text, "  ", key, ": \"", value, "\"\n");
    absl::StrAppend(&text, kDocumentEnd);
  }
  return text.substr(0, text.size() - std::string(kDocumentEnd).size());
}

// Names of users were checked, and those of queues are DNS labels: nothing needs quotes.
std::string GrantScript(const std::vector<MigratedGrant>& grants) {
  std::string text =
      "#!/bin/sh\n# Who may submit where, after `berth access init --everyone none`.\nstatus=0\n";
  for (const MigratedGrant& grant : grants) {
    absl::StrAppend(&text, "berth access grant ", grant.role, " --user ", grant.user,
                    grant.queue.empty() ? "" : absl::StrCat(" --queue ", grant.queue),
                    " || status=1\n");
  }
  return text + "exit $status\n";
}

}  // namespace

std::vector<MigrationFile> FilesOf(const MigratedCluster& cluster,
                                   const std::vector<v1::HyperNode>& hyper_nodes) {
  std::vector<MigrationFile> files;
  std::vector<std::string> manifests, topology;
  AddManifests(cluster.queues, &manifests);
  AddManifests(cluster.priority_classes, &manifests);
  AddManifests(hyper_nodes, &topology);
  if (!manifests.empty())
    files.push_back({"queues.yaml", absl::StrJoin(manifests, kDocumentEnd), "berth apply -f"});
  if (!topology.empty())
    files.push_back({"hypernodes.yaml", absl::StrJoin(topology, kDocumentEnd), "berth apply -f"});
  files.push_back({"slurm.yaml", WriteYaml(cluster.config), "install as /etc/berth/slurm.yaml"});
  if (!cluster.labels.empty())
    files.push_back(
        {"labels.yaml", LabelDocuments(cluster.labels), "add to agent.yaml of the nodes"});
  if (!cluster.grants.empty())
    files.push_back({"access.sh", GrantScript(cluster.grants), "sh, after berth access init"});
  return files;
}

std::vector<std::string> LinesOf(const std::vector<LeftOut>& left_out) {
  struct Group {
    const LeftOut* first;
    size_t more = 0;
  };
  std::map<std::pair<std::string, std::string>, size_t> known;
  std::vector<Group> groups;
  for (const LeftOut& each : left_out) {
    // "MaxJobs of user ada" and "MaxJobs of account lab" together.
    const std::string kind = each.name.substr(0, each.name.find(" of "));
    const auto inserted = known.emplace(std::make_pair(kind, each.instead), groups.size());
    if (inserted.second) {
      groups.push_back({&each});
    } else {
      ++groups[inserted.first->second].more;
    }
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    const SourcePlace& place = group.first->place;
    const std::string where =
        place.position.line == 0 ? "" : absl::StrCat(place.file, ":", place.position.line, ": ");
    const std::string more = group.more == 0 ? "" : absl::StrCat(" (and ", group.more, " more)");
    lines.push_back(absl::StrCat(Visible(where), Visible(group.first->name), "=",
                                 Visible(group.first->value), more, ": ", group.first->instead));
  }
  return lines;
}

}  // namespace berth
