// AckedFile: the number of acknowledged batches, and the write-ahead log and byte at which they
// end. It reveals that the end of a log was lost; RocksDB cannot distinguish that from writes that
// never happened.
//
//   batch 00000000000000000283 log 00000000000000000012 bytes 00000000000000098304 sum 1a2b3c4d
//
// Two such lines, in separate sectors, are overwritten alternately after the sync of each group of
// batches. They are never synced themselves, so they cost only a write to memory. After a power cut
// the file may be out of date or empty, but never ahead of the log, which was synced before the
// file was written.
#ifndef BERTH_STORAGE_ROCKSDB_ACKED_FILE_H_
#define BERTH_STORAGE_ROCKSDB_ACKED_FILE_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace berth {

// The file's name in the store's directory.
inline constexpr absl::string_view kAckedName = "ACKED";

struct Acknowledged {
  uint64_t batch = 0;  // the last one; 0: unknown
  uint64_t log = 0;    // number of its log file; 0: unknown
  uint64_t bytes = 0;  // synced bytes of that file
};

// Not thread-safe.
class AckedFile {
 public:
  AckedFile(std::shared_ptr<rocksdb::FileSystem> file_system, std::string path)
      : file_system_(std::move(file_system)), path_(std::move(path)) {}

  // The content of the file; empty if it is missing or unreadable. It is a lower bound.
  Acknowledged Read();
  // If it cannot be written, the next call writes it.
  void Write(const Acknowledged& acknowledged);

 private:
  bool Open();

  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  uint64_t slot_ = 0;  // the next to be overwritten: the older one
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_ACKED_FILE_H_
