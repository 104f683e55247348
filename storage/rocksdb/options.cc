#include "storage/rocksdb/options.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "absl/strings/str_join.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr size_t kRecentComplaints = 8;

rocksdb::ColumnFamilyOptions FamilyOptions(const rocksdb::BlockBasedTableOptions& table) {
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kLZ4Compression;
  // No single family is ever flushed for its size, only all together (db_write_buffer_size).
  // Opening ignores that limit, so it writes no table, however long the log is.
  options.write_buffer_size = kNeverFull;
  options.max_write_buffer_number = 3;
  options.target_file_size_base = uint64_t{32} << 20;
  return options;
}

rocksdb::BlockBasedTableOptions TableOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.cache_index_and_filter_blocks = true;  // so that they count towards the cache's limit
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.block_size = size_t{16} << 10;
  table.format_version = 5;
  return table;
}

}  // namespace

WarningLog::WarningLog(std::string directory)
    : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), directory_(std::move(directory)) {}

void WarningLog::Logv(const char* format, va_list arguments) {
  Logv(rocksdb::InfoLogLevel::WARN_LEVEL, format, arguments);
}

void WarningLog::Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) {
  if (level < rocksdb::InfoLogLevel::WARN_LEVEL || level == rocksdb::InfoLogLevel::HEADER_LEVEL) {
    return;
  }
  std::array<char, 1024> line;
  std::vsnprintf(line.data(), line.size(), format, arguments);
  LogWarn("rocksdb", {{"directory", directory_}, {"text", line.data()}});
  absl::MutexLock lock(&mutex_);
  lines_.emplace_back(line.data());
  if (lines_.size() > kRecentComplaints) lines_.pop_front();
}

std::string WarningLog::Recent() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrJoin(lines_, "; ");
}

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env, std::shared_ptr<rocksdb::Logger> log) {
  rocksdb::DBOptions options;
  options.env = env;
  options.info_log = std::move(log);
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // Damage is refused, never skipped. The default mode would silently drop acknowledged batches.
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  // Bounds memory and restart time.
  options.db_write_buffer_size = kWriteBufferBytes;
  options.max_total_wal_size = kMaxWalBytes;
  options.max_open_files = 512;
  options.max_background_jobs = 2;
  options.bytes_per_sync = uint64_t{1} << 20;
  // Opening writes almost nothing, so that it is faster and works on a nearly full disk. This
  // option alone does not stop the flush of a family that reaches its own write_buffer_size.
  options.avoid_flush_during_recovery = true;
  // Berth has its own statistics, and recovers from a full disk itself (RocksDbStore::Reopen).
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_bgerror_resume_count = 0;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> ColumnFamilies() {
  const rocksdb::BlockBasedTableOptions table = TableOptions();
  rocksdb::BlockBasedTableOptions point_reads = table;
  point_reads.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, FamilyOptions(table));
  for (size_t i = 0; i < kRecordKinds; ++i) {
    const auto kind = static_cast<RecordKind>(i);
    families.emplace_back(std::string(RecordKindName(kind)),
                          FamilyOptions(kind == RecordKind::kJobSpec ? point_reads : table));
  }
  return families;
}

}  // namespace berth
