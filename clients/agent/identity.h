// Who an agent is, as its journal says.
#ifndef BERTH_CLIENTS_AGENT_IDENTITY_H_
#define BERTH_CLIENTS_AGENT_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "clients/agent/journal.h"

namespace berth {

// The agent's id is for the life of the state directory: `new_id` for one that has none yet. True
// if this is another boot than the last one, so that nothing of before runs any more. On an error
// the agent must end.
absl::StatusOr<bool> KeepIdentity(FileJournal& journal, const std::string& boot_id,
                                  const std::string& new_id);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IDENTITY_H_
