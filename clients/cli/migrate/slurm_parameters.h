// Which parameters of slurm.conf have no counterpart, and what there is instead.
#ifndef BERTH_CLIENTS_CLI_MIGRATE_SLURM_PARAMETERS_H_
#define BERTH_CLIENTS_CLI_MIGRATE_SLURM_PARAMETERS_H_

#include "absl/strings/string_view.h"

namespace berth {

// `key` in lower case. The text for people: "queues share by weight: ...".
absl::string_view InsteadOfParameter(absl::string_view key);
absl::string_view InsteadOfPartitionKey(absl::string_view key);
absl::string_view InsteadOfNodeKey(absl::string_view key);
absl::string_view InsteadOfLimit(absl::string_view key);  // of accounts and users
absl::string_view InsteadOfQosKey(absl::string_view key);

// Of NodeName lines: what agents find out by themselves, so that nothing is lost without it.
bool IsDiscovered(absl::string_view key);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_SLURM_PARAMETERS_H_
