// Files of a store that are not written by RocksDB.
#ifndef BERTH_STORAGE_FILES_H_
#define BERTH_STORAGE_FILES_H_

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"

namespace berth {

// Marks a copy made by Store::Backup, which berthd must not open as a store. Restore omits it.
inline constexpr char kBackupMark[] = "BACKUP";
// The directory of the audit's chains, below the store's (server/audit/audit.h).
inline constexpr char kAuditName[] = "audit";
inline constexpr char kHistoryName[] = "history";  // of usage; not part of backups

// OK without an error. Else, naming the path: RESOURCE_EXHAUSTED if no space is left, INTERNAL.
absl::Status FileStatus(const std::error_code& error, const std::filesystem::path& path);

// Makes a file's content, or a directory's entries, survive a power cut.
absl::Status SyncPath(const std::filesystem::path& path);

}  // namespace berth

#endif  // BERTH_STORAGE_FILES_H_
