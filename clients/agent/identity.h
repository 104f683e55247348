// The agent's identity, from its journal.
#ifndef BERTH_CLIENTS_AGENT_IDENTITY_H_
#define BERTH_CLIENTS_AGENT_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/agent/journal.h"

namespace berth {

// The agent's id lasts for the life of the state directory: `new_id` is used if there is none yet.
// Returns true if the machine was rebooted, so that no earlier task runs. On an error the agent
// must end.
absl::StatusOr<bool> KeepIdentity(FileJournal& journal, const std::string& boot_id,
                                  const std::string& new_id);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IDENTITY_H_
