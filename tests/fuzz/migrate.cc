// Files of a Slurm cluster: they become queues in the order in which they can be made, with names
// that are there once, and manifests that read back; or they are an error with a reason.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "clients/cli/manifest.h"
#include "clients/cli/migrate/association_reader.h"
#include "clients/cli/migrate/migrated_cluster.h"
#include "clients/cli/migrate/slurm_config_reader.h"
#include "clients/cli/migration_files.h"
#include "core/base/check.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

bool Reads(const absl::Status& status) {
  BERTH_CHECK(status.ok() || (absl::IsInvalidArgument(status) && !status.message().empty()));
  return status.ok();
}

void CheckQueues(const MigratedCluster& cluster) {
  std::set<std::string> names;
  for (const v1::Queue& queue : cluster.queues) {
    BERTH_CHECK(queue.spec().parent().empty() || names.contains(queue.spec().parent()));
    BERTH_CHECK(names.insert(queue.name()).second);
  }
  for (const MigratedGrant& grant : cluster.grants)
    BERTH_CHECK(grant.queue.empty() || names.contains(grant.queue));
  for (const auto& account : cluster.config.accounts())
    BERTH_CHECK(names.contains(account.queue().empty() ? account.name() : account.queue()));
}

}  // namespace

// slurm.conf, associations and QOS, with lines "----" between them.
void FuzzOne(absl::string_view input) {
  std::vector<std::string> parts = absl::StrSplit(input, absl::MaxSplits("\n----\n", 2));
  parts.resize(3);
  SlurmSite site;
  if (!Reads(ReadSlurmConfigFiles({{"c", parts[0]}}, &site))) return;
  if (!parts[1].empty() && !Reads(ReadAssociations({"a", parts[1]}, &site))) return;
  if (!parts[2].empty() && !Reads(ReadQosTable({"q", parts[2]}, &site))) return;
  const auto cluster = MigrateSite(site);
  if (!Reads(cluster.status())) return;
  CheckQueues(*cluster);
  LinesOf(cluster->left_out);
  for (const MigrationFile& file : FilesOf(*cluster, {})) {
    if (file.name != "queues.yaml") continue;
    std::vector<std::string> warnings;
    const auto manifests = ReadManifests(file.text, file.name, {}, &warnings);
    BERTH_CHECK(manifests.ok() &&
                manifests->size() == cluster->queues.size() + cluster->priority_classes.size());
  }
}

}  // namespace berth::fuzz
