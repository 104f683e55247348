// A file system that remembers what failed below RocksDB: which sync, and which file met a full
// disk. RocksDB's own status cannot distinguish a write that found no space (nothing is lost: retry
// later) from a sync that reported it (earlier writes may be gone: never continue). An exhausted
// quota becomes "no space". It also keeps the list of write-ahead logs up to date.
#ifndef BERTH_STORAGE_ROCKSDB_WATCHED_FILE_SYSTEM_H_
#define BERTH_STORAGE_ROCKSDB_WATCHED_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/rocksdb/wal_list.h"

namespace berth {

// Thread-safe. Shared by the file system and all its files.
class DiskErrors {
 public:
  void Note(const rocksdb::IOStatus& status, absl::string_view file, bool was_sync)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ignores failures of files with this prefix; "" = none.
  void Ignore(const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  // "FILE: REASON" of the first failed sync, except for tables that met a full disk; empty if none
  // failed.
  std::string FailedSync() const ABSL_LOCKS_EXCLUDED(mutex_);
  // "FILE: REASON" of the latest write that found no space; empty if there was none.
  std::string NoSpace() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::string failed_sync_ ABSL_GUARDED_BY(mutex_);
  std::string no_space_ ABSL_GUARDED_BY(mutex_);
  std::string ignored_ ABSL_GUARDED_BY(mutex_);
};

class WatchedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  WatchedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target,
                    std::shared_ptr<DiskErrors> troubles, std::shared_ptr<WalList> wals)
      : FileSystemWrapper(target), disk_errors_(std::move(troubles)), wals_(std::move(wals)) {}

  const char* Name() const override { return "BerthWatched"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  rocksdb::IOStatus Watch(const std::string& name, bool is_new, rocksdb::IOStatus status,
                          std::unique_ptr<rocksdb::FSWritableFile>* file);

  const std::shared_ptr<DiskErrors> disk_errors_;
  const std::shared_ptr<WalList> wals_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_WATCHED_FILE_SYSTEM_H_
