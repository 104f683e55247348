// An open RocksDB with one column family per record kind. Only opens and closes it; the meaning of
// records is elsewhere.
#ifndef BERTH_STORAGE_ROCKSDB_DATABASE_H_
#define BERTH_STORAGE_ROCKSDB_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/write_buffer_manager.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/rocksdb/options.h"
#include "storage/store.h"

namespace berth {

// The location of a database and the objects used to access it. Everything except the directory is
// shared and outlives it.
struct DatabasePlace {
  std::string directory;
  bool read_only = false;
  rocksdb::Env* env = nullptr;
  std::shared_ptr<WarningLog> complaints;
  std::shared_ptr<rocksdb::WriteBufferManager> write_buffers;  // null: RocksDB's default
};

// "DIRECTORY: REASON [RocksDB's last complaints]". Corruption becomes DATA_LOSS, a full disk
// RESOURCE_EXHAUSTED, everything else INTERNAL.
absl::Status ToStatus(const rocksdb::Status& status, const DatabasePlace& place);

// Locking the directory failed because another process, or this one, has it.
bool IsLocked(const rocksdb::Status& status);

// While it lives, no other process has the database open. RocksDB takes the same lock, so destroy
// this first. Without a directory there is nothing to lock; with `read_only` the caller has the
// lock.
class DirectoryLock {
 public:
  explicit DirectoryLock(const DatabasePlace& place);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // UNAVAILABLE: another process has it.
  const absl::Status& status() const { return status_; }

 private:
  rocksdb::Env* const env_;
  rocksdb::FileLock* lock_ = nullptr;
  absl::Status status_;
};

// Thread-safe, like RocksDB.
class Database {
 public:
  // Errors as in RocksDbStore::Open.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const DatabasePlace& place);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* Family(RecordKind kind) const {
    return families_[static_cast<size_t>(kind) + 1];
  }
  // For one pass over many records (start, fsck) or for a page.
  std::unique_ptr<rocksdb::Iterator> Scan(RecordKind kind) const;
  std::unique_ptr<rocksdb::Iterator> Page(RecordKind kind) const;

 private:
  Database() = default;

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned; "default" first
};

inline rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_DATABASE_H_
