// RocksDB's options, and its warnings. All tuning is here.
#ifndef BERTH_STORAGE_ROCKSDB_OPTIONS_H_
#define BERTH_STORAGE_ROCKSDB_OPTIONS_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace berth {

// Memory that the store may use, in bytes: half for writes that are not yet in tables, the rest for
// reads. The whole server may use 1,536 MiB for a million jobs.
inline constexpr size_t kWriteBufferBytes = size_t{64} << 20;
inline constexpr size_t kBlockCacheBytes = size_t{32} << 20;
// Bounds what a restart replays.
inline constexpr size_t kMaxWalBytes = size_t{128} << 20;
// More log data than memory ever holds.
inline constexpr size_t kNeverFull = 8 * kMaxWalBytes;

// Keeps RocksDB's last warnings, which name the file when its status does not, and copies them to
// our log.
class WarningLog final : public rocksdb::Logger {
 public:
  explicit WarningLog(std::string directory);
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override;

  // The last few, oldest first, joined with "; ". Thread-safe.
  std::string Recent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string directory_;
  mutable absl::Mutex mutex_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env, std::shared_ptr<rocksdb::Logger> log);

// "default", which stays empty, and one per RecordKind, in the order of the enum.
std::vector<rocksdb::ColumnFamilyDescriptor> ColumnFamilies();

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_OPTIONS_H_
