// Reads what sacctmgr prints: accounts, users and QOS.
//
//   sacctmgr dump CLUSTER file=FILE                     Account - 'physics':Fairshare=50:...
//   sacctmgr show assoc tree -P format=...              Cluster|Account|ParentName|User|Share|...
//   sacctmgr show qos -P                                Name|Priority|...|Preempt|...
#ifndef BERTH_CLIENTS_CLI_MIGRATE_ASSOCIATION_READER_H_
#define BERTH_CLIENTS_CLI_MIGRATE_ASSOCIATION_READER_H_

#include "absl/status/status.h"
#include "clients/cli/migrate/slurm_site.h"

namespace berth {

// A dump or a table, as its first line shows. Of a table with several clusters, those of
// `site->cluster_name`. Accounts come before their users and sub-accounts. INVALID_ARGUMENT with
// file and line of every error.
absl::Status ReadAssociations(const SourceText& text, SlurmSite* site);

absl::Status ReadQosTable(const SourceText& text, SlurmSite* site);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_ASSOCIATION_READER_H_
