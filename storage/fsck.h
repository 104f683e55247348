// fsck: everything that can be checked about a store that nobody has open. Changes nothing.
#ifndef BERTH_STORAGE_FSCK_H_
#define BERTH_STORAGE_FSCK_H_

#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace berth {

// Step by step, each with a line in `report`:
//   1. the directory opens: all write-ahead logs are there, format, column families
//   2. every block of every table has its checksum
//   3. the whole kept log follows the hash chain, ends where the meta record says, and every event
//   decodes
//   4. every record decodes and fits the others: all ids exist (LoadState)
//   5. everything derived follows from the facts (CheckConsistency)
//   6. if the log is kept from its beginning, or from a base on: folding its events gives the same
//   state as loading its records
// Returns the first failure, as in RocksDbStore::Open and LoadState; UNAVAILABLE while a berthd has
// the store open.
absl::Status Fsck(const std::string& directory, std::ostream& report);

}  // namespace berth

#endif  // BERTH_STORAGE_FSCK_H_
