#include "clients/agent/identity.h"

#include <algorithm>

namespace berth {

absl::StatusOr<bool> KeepIdentity(FileJournal& journal, const std::string& boot_id,
                                  const std::string& new_id) {
  agent::v1::Identity identity = journal.state().identity;
  const bool rebooted = identity.boot_id() != boot_id;
  if (!rebooted && !identity.agent_id().empty()) return false;
  identity.set_version(std::max<uint32_t>(identity.version(), 1));
  identity.set_boot_id(boot_id);
  if (identity.agent_id().empty()) identity.set_agent_id(new_id);
  agent::v1::JournalRecord record;
  *record.mutable_identity() = identity;
  if (absl::Status status = journal.Append({record}); !status.ok()) return status;
  return rebooted;
}

}  // namespace berth
