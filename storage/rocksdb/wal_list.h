// WalList: which write-ahead log files must be there. RocksDB itself knows only of those that it
// closed itself: without the newest one, or one that a restart left as it was, a database opens as
// if what they held had never been, or as a new one. So their names stand in a file beside them:
//
//   batch 1024        at least so many were acknowledged
//   000012.log        must be there; it may hold acknowledged batches
//   000019.log
//
// It is written before a log file is used and again before one is deleted, so that whatever was
// acknowledged is in a file that is named here. Written aside, synced and renamed: whole at any
// time.
#ifndef BERTH_STORAGE_ROCKSDB_WAL_LIST_H_
#define BERTH_STORAGE_ROCKSDB_WAL_LIST_H_

#include <rocksdb/file_system.h>

#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace berth {

// The file's name in the store's directory.
inline constexpr absl::string_view kWalListName = "WALS";
// The acknowledged batch is written each time that it has doubled, and at the latest after so many:
// it shows what was cut off from the end of a log file.
inline constexpr uint64_t kAcknowledgedStep = 1024;

// Thread-safe.
class WalList {
 public:
  WalList(std::shared_ptr<rocksdb::FileSystem> file_system, std::string directory);

  // Compares the list with the directory, before the database is opened. DATA_LOSS naming the file
  // that is missing, UNAVAILABLE if the list is there and cannot be read. A store without list, one
  // that was restored from a backup, is taken as it is.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(mutex_);

  // A log file of this directory; others are none of ours.
  bool Covers(absl::string_view path) const;
  // It was made, and may be used if this works.
  rocksdb::IOStatus Add(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is about to be deleted, and may be if this works.
  rocksdb::IOStatus Remove(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);

  // The batch is durable. What cannot be noted now is noted later.
  void Acknowledge(uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last batch that is certain to have been acknowledged; 0 = none.
  uint64_t acknowledged() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string PathOf(absl::string_view name) const;
  absl::Status Parse(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rocksdb::IOStatus SyncDirectory() const;
  rocksdb::IOStatus Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::string directory_;
  mutable absl::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_note_ ABSL_GUARDED_BY(mutex_) = 1;  // batch
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_WAL_LIST_H_
