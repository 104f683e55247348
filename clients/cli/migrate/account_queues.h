// Accounts and users of Slurm as queues, roles and default accounts.
#ifndef BERTH_CLIENTS_CLI_MIGRATE_ACCOUNT_QUEUES_H_
#define BERTH_CLIENTS_CLI_MIGRATE_ACCOUNT_QUEUES_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "clients/cli/migrate/migrated_cluster.h"

namespace berth {

// DNS labels for names of Slurm, each once.
class MigratedNames {
 public:
  std::string Take(const std::string& name);

 private:
  std::set<std::string> taken_;
};

absl::Status AddAccountQueues(const SlurmSite& site, MigratedCluster* cluster);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_ACCOUNT_QUEUES_H_
