// The agent's identity, from its journal.
#ifndef BERTH_CLIENTS_AGENT_IDENTITY_H_
#define BERTH_CLIENTS_AGENT_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/agent/journal.h"

namespace berth {

// The agent's id lasts for the life of the state directory: `new_id` is used if there is none yet.
// Returns true if the machine was rebooted, so that no earlier task runs. On an error the agent
// must end.
absl::StatusOr<bool> KeepIdentity(FileJournal& journal, const std::string& boot_id,
                                  const std::string& new_id);

// For an operator: the agent forgets which term its servers have reached, and obeys any server of
// its cluster again. FAILED_PRECONDITION: an agent uses the state directory now; NOT_FOUND: there
// is no journal in it.
absl::Status ForgetTerm(Disk& disk, const std::string& state_directory);

// Takes the state directory for this process, until the descriptor is closed. FAILED_PRECONDITION:
// another agent uses it.
absl::StatusOr<int> LockState(const std::string& state_directory);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IDENTITY_H_
