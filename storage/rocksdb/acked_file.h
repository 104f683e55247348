// AckedFile: how many batches were acknowledged, and in which write-ahead log up to which byte.
// What was cut off from a log's end since then is missed by it; RocksDB cannot tell it from what
// was never written.
//
//   batch 00000000000000000283 log 00000000000000000012 bytes 00000000000000098304 sum 1a2b3c4d
//
// Two such lines, in sectors of their own, are overwritten in turn after the sync of each group of
// batches, and never synced themselves: that costs a write to memory. So after a power cut the file
// may say less than there was, or nothing; never more, as what it tells of was synced before it was
// written.
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
  uint64_t batch = 0;  // the last one; 0: none that is known
  uint64_t log = 0;    // number of the file that it went to; 0: not known
  uint64_t bytes = 0;  // of that file, which were synced by then
};

// Not thread-safe.
class AckedFile {
 public:
  AckedFile(std::shared_ptr<rocksdb::FileSystem> file_system, std::string path)
      : file_system_(std::move(file_system)), path_(std::move(path)) {}

  // What stands there; nothing, if it is not there or not readable: it is a lower bound.
  Acknowledged Read();
  // What cannot be written is written with the next one.
  void Write(const Acknowledged& acknowledged);

 private:
  bool Open();

  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::string path_;
  std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  uint64_t slot_ = 0;  // the next to be written: not the one with the latest
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_ACKED_FILE_H_
