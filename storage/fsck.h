// fsck: checks everything that can be checked in a store that no process has open. Changes nothing.
#ifndef BERTH_STORAGE_FSCK_H_
#define BERTH_STORAGE_FSCK_H_

#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace berth {

// Step by step, each with a line in `report`:
//   1. the directory opens: all write-ahead logs, the format and the column families are valid
//   2. every block of every table matches its checksum
//   3. the whole kept log follows the hash chain, ends where the meta record says, and every event
//   decodes
//   4. every record decodes and all ids that it refers to exist (LoadState)
//   5. all derived data follow from the facts (CheckConsistency)
//   6. if the log is complete from its beginning or from a base: folding its events gives the same
//   state as loading its records
// Returns the first failure, as RocksDbStore::Open and LoadState do; UNAVAILABLE while a berthd has
// the store open.
absl::Status Fsck(const std::string& directory, std::ostream& report);

// The chains of the audit in the directory of a store, if there are any: every hash. A failure is
// none of the store, and no reason to restore it. FAILED_PRECONDITION naming the entry that was
// changed.
absl::Status FsckAudit(const std::string& directory, std::ostream& report);

}  // namespace berth

#endif  // BERTH_STORAGE_FSCK_H_
