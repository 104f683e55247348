// Reads slurm.conf (man slurm.conf): ClusterName, NodeName, NodeSet, PartitionName with their
// DEFAULT lines. Every other parameter is listed in SlurmSite::left_out.
#ifndef BERTH_CLIENTS_CLI_MIGRATE_SLURM_CONFIG_READER_H_
#define BERTH_CLIENTS_CLI_MIGRATE_SLURM_CONFIG_READER_H_

#include <vector>

#include "absl/status/status.h"
#include "clients/cli/migrate/slurm_site.h"

namespace berth {

// Several files are read as one. INVALID_ARGUMENT with file and line of every error.
absl::Status ReadSlurmConfigFiles(const std::vector<SourceText>& texts, SlurmSite* site);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_SLURM_CONFIG_READER_H_
