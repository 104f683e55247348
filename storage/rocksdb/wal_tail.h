// The end of the newest write-ahead log after a power cut. Some file systems leave zeros in place
// of bytes that were not synced, as a file's length reaches the disk before its content. RocksDB
// treats a record with such zeros as damage. This code distinguishes them from damage, and cuts
// them off:
//
//   | record | record | rec|000000000000000000000|      good = 2 records, bad = where "rec" begins
//                          ^ a sector begins      ^ the file ends
//
// Everything else is damage, and stays unchanged: a bad record that zeros do not extend into, a
// good record after it, anything after the zeros. A batch ends with a hash, so zeros at the end of
// a log are never part of one.
#ifndef BERTH_STORAGE_ROCKSDB_WAL_TAIL_H_
#define BERTH_STORAGE_ROCKSDB_WAL_TAIL_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Where cut-off data is kept, below the store's directory: a prefix of each of the last few cuts.
inline constexpr absl::string_view kQuarantineName = "quarantine";
inline constexpr size_t kQuarantineFiles = 4;
inline constexpr size_t kQuarantineBytes = size_t{4} << 20;  // of each

// A file in RocksDB's log format (write-ahead logs and MANIFEST). Offsets in bytes.
struct LogScan {
  uint64_t good = 0;            // end of the last complete record
  std::optional<uint64_t> bad;  // start of the first invalid record; a merely truncated end is
                                // not bad
  bool zeros = false;  // it is bad because zeros extend from the start of a sector in it, or
                       // from its own start, to the end of the file
};
LogScan ScanLog(absl::string_view content);

// Where the file is damaged, for messages: "000012.log: no valid record at byte 98304"; "" if it is
// not damaged or cannot be read.
std::string DamageOf(rocksdb::FileSystem& file_system, const std::string& path);

// Cuts `directory`/`name`, the newest log, where unsynced zeros begin, and keeps what is cut off.
// If data up to `acknowledged` is affected, nothing is cut: DATA_LOSS. With `read_only`
// FAILED_PRECONDITION instead of a cut. The database must not be open.
absl::Status CutUnsyncedTail(rocksdb::FileSystem& file_system, const std::string& directory,
                             const std::string& name, uint64_t acknowledged, bool read_only);

// Unsynced writes of a killed program are read by the next one, and may be reported to clients, so
// they must be on disk by then.
rocksdb::IOStatus SyncFile(rocksdb::FileSystem& file_system, const std::string& path);
rocksdb::IOStatus SyncDirectory(rocksdb::FileSystem& file_system, const std::string& path);

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_WAL_TAIL_H_
