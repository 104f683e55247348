#include "clients/agent/identity.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

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

absl::StatusOr<int> LockState(const std::string& state_directory) {
  const std::string path = state_directory + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return absl::FailedPreconditionError(
      absl::StrCat(state_directory, ": another agent uses this state directory"));
}

absl::Status ForgetTerm(Disk& disk, const std::string& state_directory) {
  const std::string path = state_directory + "/journal";
  if (access(path.c_str(), F_OK) != 0) return ErrnoStatus(errno, path);
  const absl::StatusOr<int> lock = LockState(state_directory);
  if (!lock.ok()) return lock.status();
  const absl::Cleanup unlock = [&] { close(*lock); };
  auto journal = FileJournal::Open(disk, state_directory, {});
  if (!journal.ok()) return journal.status();
  agent::v1::JournalRecord record;
  *record.mutable_identity() = (*journal)->state().identity;
  record.mutable_identity()->clear_term();
  return (*journal)->Append({record});
}

}  // namespace berth
