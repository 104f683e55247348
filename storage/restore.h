// Replaces a store by a backup. A backup is a copy of a store's directory: of a stopped berthd, or
// an atomic snapshot of the file system.
#ifndef BERTH_STORAGE_RESTORE_H_
#define BERTH_STORAGE_RESTORE_H_

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace berth {

// Copies the backup to a sibling of `directory`, checks the copy as Fsck does, with lines in
// `report`, and renames it to `directory`: complete and synced, or not at all. The copy gets a new
// incarnation and the newest format: tasks that the previous store started are foreign to it
// (storage/incarnation.h). The backup is not changed. `directory` must not exist or be empty; else
// ALREADY_EXISTS. NOT_FOUND: no store in `backup`. UNAVAILABLE: a berthd has the backup open. Else
// as for Fsck, and INTERNAL or RESOURCE_EXHAUSTED for the disk. `longest_lease`: the longest that
// agents of the previous store may hold. For that long, tasks of nodes that do not reconnect are
// not replaced.
absl::Status Restore(const std::string& backup, const std::string& directory, std::ostream& report,
                     absl::Duration longest_lease = absl::Hours(1));

// The command that restores a backup, for operators whose `directory` is damaged.
std::string HowToRestore(const std::string& directory);

}  // namespace berth

#endif  // BERTH_STORAGE_RESTORE_H_
