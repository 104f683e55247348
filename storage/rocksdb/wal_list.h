// WalList: the write-ahead log files that must exist. RocksDB records only those that it closed
// itself. Without the newest one, or one that a restart left unchanged, a database opens as if
// their content had never existed, or as a new one. Their names are therefore kept in a separate
// file:
//
//   batch 1024        at least this many were acknowledged
//   000012.log        must exist; it may hold acknowledged batches
//   000019.log
//
// The list is written before a log file is used and again before one is deleted, so that every
// acknowledged batch is in a listed file. It is written under a temporary name, synced and renamed,
// and so always complete. ACKED records how much of the newest file must exist (acked_file.h).
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
// The acknowledged batch is written each time that it has doubled, and at the latest after this
// many: ACKED is more current, but not synced.
inline constexpr uint64_t kAcknowledgedStep = 1024;

// Thread-safe.
class WalList {
 public:
  WalList(std::shared_ptr<rocksdb::FileSystem> file_system, std::string directory);

  // Compares the list with the directory, before the database is opened. DATA_LOSS naming the file
  // that is missing or too short; UNAVAILABLE if the list exists but cannot be read. A store
  // without a list is accepted.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Check, before the database is opened: cuts off the unsynced tail that a power cut left
  // (wal_tail.h), and syncs the rest. With `read_only` changes nothing. Errors as for
  // CutUnsyncedTail.
  absl::Status Mend(bool read_only) ABSL_LOCKS_EXCLUDED(mutex_);
  // The log file of the last acknowledged batch, for messages.
  std::string Newest() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the log files are damaged, for messages.
  std::string Damage() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether it is a log file of this directory; others do not concern the list.
  bool Covers(absl::string_view path) const;
  // It was created, and may be used if this succeeds.
  rocksdb::IOStatus Add(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is about to be deleted, and may be if this succeeds.
  rocksdb::IOStatus Remove(absl::string_view path) ABSL_LOCKS_EXCLUDED(mutex_);

  // This many bytes of the log file are durable, but not acknowledged yet.
  void Synced(absl::string_view path, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The batch is durable. If it cannot be recorded now, it is recorded later.
  void Acknowledge(uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last batch that was certainly acknowledged; 0 = none.
  uint64_t acknowledged() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string PathOf(absl::string_view name) const;
  absl::Status Parse(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLength() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> Names() const ABSL_LOCKS_EXCLUDED(mutex_);  // oldest first
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
