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
// time. How much of the newest of them must be there stands in ACKED (acked_file.h).
#ifndef BERTH_STORAGE_ROCKSDB_WAL_LIST_H_
#define BERTH_STORAGE_ROCKSDB_WAL_LIST_H_

#include <rocksdb/file_system.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/rocksdb/acked_file.h"

namespace berth {

// The file's name in the store's directory.
inline constexpr absl::string_view kWalListName = "WALS";
// The acknowledged batch is written each time that it has doubled, and at the latest after so many:
// ACKED knows better, but is not synced.
inline constexpr uint64_t kAcknowledgedStep = 1024;

// Thread-safe.
class WalList {
 public:
  WalList(std::shared_ptr<rocksdb::FileSystem> file_system, std::string directory);

  // Compares the list with the directory, before the database is opened. DATA_LOSS naming the file
  // that is missing, or too short; UNAVAILABLE if the list is there and cannot be read. A store
  // without list is taken as it is.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Check, before the database is opened: cuts off what a power cut left of what was never
  // synced (wal_tail.h), and syncs all that is there. With `read_only` only looks. Errors as of
  // CutUnsyncedTail.
  absl::Status Mend(bool read_only) ABSL_LOCKS_EXCLUDED(mutex_);
  // The log file that the last acknowledged batch went to, for people.
  std::string Newest() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the log files are damaged, for people.
  std::string Damage() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A log file of this directory; others are none of ours.
  bool Covers(absl::string_view path) const;
  // It was made, and may be used if this works.
  rocksdb::IOStatus Add(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is about to be deleted, and may be if this works.
  rocksdb::IOStatus Remove(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);

  // So many bytes of the log file are durable. Not acknowledged yet.
  void Synced(absl::string_view path, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The batch is durable. What cannot be noted now is noted later.
  void Acknowledge(uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last batch that is certain to have been acknowledged; 0 = none.
  uint64_t acknowledged() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string PathOf(absl::string_view name) const;
  absl::Status Parse(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLength() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> Names() const ABSL_LOCKS_EXCLUDED(mutex_);  // the oldest first
  uint64_t AcknowledgedBytes(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  rocksdb::IOStatus Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::string directory_;
  mutable absl::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  AckedFile acked_ ABSL_GUARDED_BY(mutex_);
  Acknowledged last_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_note_ ABSL_GUARDED_BY(mutex_) = 1;  // batch
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_WAL_LIST_H_
