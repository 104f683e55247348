// Putting a backup in the place of a store. A backup is a copy of a store's directory: of a berthd
// that was stopped, or a snapshot that the file system makes at one moment.
#ifndef BERTH_STORAGE_RESTORE_H_
#define BERTH_STORAGE_RESTORE_H_

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace berth {

// Copies the backup beside `directory`, checks the copy as Fsck does, with its lines in `report`,
// and gives it that name: all of it, synced, or nothing. It has a new incarnation then, and the
// newest format: tasks that the store before started are foreign to it (storage/incarnation.h). The
// backup stays as it is; `directory` is not there yet, or empty. ALREADY_EXISTS: it is neither.
// NOT_FOUND: no store in `backup`. UNAVAILABLE: a berthd has the backup open. Else as Fsck, and
// INTERNAL or RESOURCE_EXHAUSTED for the disk.
// `longest_lease`: that agents may still hold of the store whose place it takes; for so long it
// replaces no task of a node that does not come back.
absl::Status Restore(const std::string& backup, const std::string& directory, std::ostream& report,
                     absl::Duration longest_lease = absl::Hours(1));

// For who finds `directory` damaged: the command that goes back to a backup.
std::string HowToRestore(const std::string& directory);

}  // namespace berth

#endif  // BERTH_STORAGE_RESTORE_H_
