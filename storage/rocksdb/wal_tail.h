// The end of the newest write-ahead log after a power cut. Some file systems leave zeros where
// bytes were to be that nobody had synced yet: a file's length reaches the disk before its content.
// RocksDB takes a record with such zeros in it for damage. Here it is told from damage, and cut
// off:
//
//   | record | record | rec|000000000000000000000|      good = 2 records, bad = where "rec" begins
//                          ^ a sector begins      ^ the file ends
//
// Damage, and left alone, is everything else: a bad record that no zeros reach into, a good one
// after it, anything after the zeros. A batch ends with a hash, so that zeros at the end of a log
// are none of what was written.
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

// What was cut off is kept below the store's directory: of each cut a beginning, of the last few.
inline constexpr absl::string_view kQuarantineName = "quarantine";
inline constexpr size_t kQuarantineFiles = 4;
inline constexpr size_t kQuarantineBytes = size_t{4} << 20;  // of each

// A file in RocksDB's log format (write-ahead logs and MANIFEST). Offsets in bytes.
struct LogScan {
  uint64_t good = 0;            // where the last whole record ends
  std::optional<uint64_t> bad;  // where the first one begins that is none; an end that is only cut
                                // off is not bad
  bool zeros = false;  // it is bad as zeros reach into it, from a sector's beginning or from
                       // its own to the end of the file
};
LogScan ScanLog(absl::string_view content);

// Where the file is damaged, for people: "000012.log: no valid record at byte 98304"; "" if it is
// not, or cannot be read.
std::string DamageOf(rocksdb::FileSystem& file_system, const std::string& path);

// Cuts the log `directory`/`name`, the newest, where zeros begin that were never synced; keeps what
// is cut off. It is whole up to `acknowledged`, else nothing is cut: DATA_LOSS. With `read_only`
// FAILED_PRECONDITION instead of a cut. Nobody has the database open.
absl::Status CutUnsyncedTail(rocksdb::FileSystem& file_system, const std::string& directory,
                             const std::string& name, uint64_t acknowledged, bool read_only);

// What a program that was killed wrote without a sync is read by the next one, and told to others:
// it has to be on the disk by then.
rocksdb::IOStatus SyncFile(rocksdb::FileSystem& file_system, const std::string& path);
rocksdb::IOStatus SyncDirectory(rocksdb::FileSystem& file_system, const std::string& path);

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_WAL_TAIL_H_
