// Files of a store that RocksDB does not write itself.
#ifndef BERTH_STORAGE_FILES_H_
#define BERTH_STORAGE_FILES_H_

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"

namespace berth {

// In a copy that Store::Backup made: it is no store that goes on. Restore leaves it out.
inline constexpr char kBackupMark[] = "BACKUP";

// OK without an error. Else, with the path: RESOURCE_EXHAUSTED if no space is left, INTERNAL.
absl::Status FileStatus(const std::error_code& error, const std::filesystem::path& path);

// What was written to the file, or which names the directory has, outlasts a power cut.
absl::Status SyncPath(const std::filesystem::path& path);

}  // namespace berth

#endif  // BERTH_STORAGE_FILES_H_
