#include "storage/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/files.h"
#include "storage/fsck.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr char kLock[] = "LOCK";

// Only looks: the backup may be on a read-only file system.
bool InUse(const fs::path& backup) {
  const int descriptor = open((backup / kLock).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool locked = fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(descriptor);
  return locked;
}

absl::Status CheckPlaces(const fs::path& backup, const fs::path& directory, const fs::path& aside) {
  std::error_code error;
  if (!fs::exists(backup / "CURRENT", error)) {
    return absl::NotFoundError(absl::StrCat(backup.string(), ": no store there"));
  }
  if (InUse(backup)) {
    return absl::UnavailableError(absl::StrCat(
        backup.string(), ": in use by another process: stop it, or restore from a copy"));
  }
  if (fs::exists(directory, error) && (!fs::is_directory(directory) || !fs::is_empty(directory))) {
    return absl::AlreadyExistsError(absl::StrCat(
        directory.string(), ": not empty, and nothing is overwritten: move it away first"));
  }
  if (!fs::exists(aside, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(aside.string(), ": left by a restore that was interrupted: delete it first"));
}

// Copies files and directories; a store contains nothing else. Omits the backup mark.
absl::Status CopyTree(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directory(to, from, error);
  if (error) return FileStatus(error, to);
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    if (entry->path().filename() == kLock || entry->path().filename() == kBackupMark) continue;
    absl::Status copied;
    if (entry->is_directory()) {
      copied = CopyTree(entry->path(), target);
    } else {
      fs::copy_file(entry->path(), target, error);
      copied = error ? FileStatus(error, target) : SyncPath(target);
    }
    if (!copied.ok()) return copied;
  }
  return error ? FileStatus(error, from) : SyncPath(to);
}

// Opens the copy once as a start does, which truncates the tail that a power cut or a snapshot
// left, and gives it a new incarnation: agents must not take tasks of the previous store for its
// own.
absl::Status Fill(const fs::path& backup, const fs::path& aside, std::ostream& report,
                  absl::Duration longest_lease) {
  absl::Status status = CopyTree(backup, aside);
  if (status.ok()) {
    status = RocksDbStore::Open(
                 {.directory = aside.string(), .restored = true, .longest_lease = longest_lease})
                 .status();
  }
  return status.ok() ? Fsck(aside.string(), report) : status;
}

}  // namespace

absl::Status Restore(const std::string& backup, const std::string& directory, std::ostream& report,
                     absl::Duration longest_lease) {
  const fs::path place = std::string(absl::StripSuffix(directory, "/"));
  const fs::path aside = place.string() + ".restoring";
  if (absl::Status status = CheckPlaces(backup, place, aside); !status.ok()) return status;
  absl::Status status = Fill(backup, aside, report, longest_lease);
  std::error_code error;
  if (status.ok()) {
    fs::rename(aside, place, error);  // over an empty directory, if there is one
    status = FileStatus(error, place);
  }
  if (status.ok()) return SyncPath(fs::absolute(place).parent_path());
  fs::remove_all(aside, error);
  return {status.code(), absl::StrCat(backup, ": not restored: ", status.message())};
}

std::string HowToRestore(const std::string& directory) {
  return absl::StrCat("to return to the last backup: mv ", directory, " ", directory,
                      ".damaged && berthd --restore BACKUP --data ", directory,
                      " (this loses what was acknowledged after the backup)");
}

}  // namespace berth
