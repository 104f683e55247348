// Turns what the files of a Slurm cluster say into manifests and configuration of Berth.
//
// With accounts, each account is a queue below that of its parent, with its share as weight and its
// Grp limits; an account that has users and sub-accounts gets a leaf "NAME-users" for its users.
// Partitions are then sets of nodes with limits of time (slurm.yaml). Without accounts, each
// partition is a queue. Features and partitions become labels of nodes; a QOS a priority class.
//
// Pure: no files, no server. The same site gives the same result.
#ifndef BERTH_CLIENTS_CLI_MIGRATE_MIGRATED_CLUSTER_H_
#define BERTH_CLIENTS_CLI_MIGRATE_MIGRATED_CLUSTER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/config/v1/slurm.pb.h"
#include "berth/v1/priority_class.pb.h"
#include "berth/v1/queue.pb.h"
#include "clients/cli/migrate/slurm_site.h"

namespace berth {

inline constexpr int kMostAccountDepth = 16;  // as the server's limit of the queue tree

struct MigratedLabels {
  std::vector<std::string> nodes;
  std::map<std::string, std::string> labels;
};

struct MigratedGrant {
  std::string role;
  std::string user;
  std::string queue;  // "": the cluster
};

struct MigratedCluster {
  std::vector<v1::Queue> queues;  // parents before children
  std::vector<v1::PriorityClass> priority_classes;
  config::v1::SlurmConfig config;
  std::vector<MigratedLabels> labels;
  std::vector<MigratedGrant> grants;
  std::vector<LeftOut> left_out;  // of the site too, by file and line
};

// INVALID_ARGUMENT: an account that is there twice or has no parent, a cycle, too deep a tree.
absl::StatusOr<MigratedCluster> MigrateSite(const SlurmSite& site);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_MIGRATED_CLUSTER_H_
