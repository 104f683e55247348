// The files that a migration writes, and what it says about the rest.
#ifndef BERTH_CLIENTS_CLI_MIGRATION_FILES_H_
#define BERTH_CLIENTS_CLI_MIGRATION_FILES_H_

#include <string>
#include <vector>

#include "berth/v1/hypernode.pb.h"
#include "clients/cli/migrate/migrated_cluster.h"

namespace berth {

struct MigrationFile {
  std::string name;
  std::string text;
  std::string use;  // for people: what to do with it
};

// Only files with something in them: queues.yaml, hypernodes.yaml, slurm.yaml, labels.yaml,
// access.sh.
std::vector<MigrationFile> FilesOf(const MigratedCluster& cluster,
                                   const std::vector<v1::HyperNode>& hyper_nodes);

// One line for each NAME with the same text, with the first of its places:
// "slurm.conf:12: PriorityWeightAge=1000: ...", "assoc:3: MaxJobs of user ada=4 (and 7 more): ...".
// Safe to print.
std::vector<std::string> LinesOf(const std::vector<LeftOut>& left_out);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATION_FILES_H_
