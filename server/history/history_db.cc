#include "server/history/history_db.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/rocksdb/options.h"

namespace berth {
namespace {

constexpr size_t kHistoryWriteBytes = size_t{16} << 20;
constexpr size_t kHistoryCacheBytes = size_t{16} << 20;
constexpr char kInMemory[] = "/history";

constexpr std::array<const char*, kHistoryFamilies> kFamilyNames = {
    "meta",         "queue",  "node",        "job_spec", "labels",          "task",
    "job",          "minute", "hour",        "day",      "minute_capacity", "hour_capacity",
    "day_capacity", "ended",  "ended_by_uid"};

rocksdb::Slice SliceOf(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view ViewOf(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status HistoryStatus(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("the usage history: ", status.ToString());
  if (status.IsNotFound()) return absl::NotFoundError(text);
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(text);
  const bool damaged = status.IsCorruption() || status.IsInvalidArgument();
  return damaged ? absl::DataLossError(text) : absl::InternalError(text);
}

rocksdb::DBOptions DatabaseSettings(rocksdb::Env* env, const std::string& directory) {
  rocksdb::DBOptions options;
  options.env = env;
  options.info_log = std::make_shared<WarningLog>(directory);
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.db_write_buffer_size = kHistoryWriteBytes;
  options.max_total_wal_size = 4 * kHistoryWriteBytes;
  options.max_open_files = 128;
  options.max_background_jobs = 1;
  options.bytes_per_sync = uint64_t{1} << 20;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.max_bgerror_resume_count = 0;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> HistoryColumns() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kHistoryCacheBytes);
  table.cache_index_and_filter_blocks = true;
  table.block_size = size_t{16} << 10;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kLZ4Compression;
  options.target_file_size_base = uint64_t{16} << 20;
  std::vector<rocksdb::ColumnFamilyDescriptor> columns;
  columns.emplace_back(rocksdb::kDefaultColumnFamilyName, options);
  for (const char* name : kFamilyNames) columns.emplace_back(name, options);
  return columns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistoryDb>> HistoryDb::Open(const std::string& directory) {
  std::unique_ptr<HistoryDb> opened(new HistoryDb());
  if (directory.empty()) opened->memory_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  rocksdb::Env* env = directory.empty() ? opened->memory_.get() : rocksdb::Env::Default();
  const std::string place = directory.empty() ? kInMemory : directory;
  env->CreateDirIfMissing(place).PermitUncheckedError();  // Open says why not
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(DatabaseSettings(env, place), place,
                                                   HistoryColumns(), &opened->families_, &db);
  opened->db_.reset(db);
  if (!status.ok()) return HistoryStatus(status);
  return opened;
}

HistoryDb::~HistoryDb() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
  db_->Close().PermitUncheckedError();
}

absl::Status HistoryDb::Write(const HistoryBatch& batch) {
  rocksdb::WriteBatch writes;
  rocksdb::Status status;
  for (const HistoryBatch::Entry& entry : batch.entries_) {
    rocksdb::ColumnFamilyHandle* family = Family(entry.family);
    if (entry.range) {
      status = writes.DeleteRange(family, entry.key, *entry.value);
    } else if (entry.value.has_value()) {
      status = writes.Put(family, entry.key, *entry.value);
    } else {
      status = writes.Delete(family, entry.key);
    }
    if (!status.ok()) return HistoryStatus(status);
  }
  rocksdb::WriteOptions options;
  options.low_pri = true;
  return HistoryStatus(db_->Write(options, &writes));
}

HistoryDb::View::View(const HistoryDb& db) : db_(db), snapshot_(db.db_->GetSnapshot()) {}
HistoryDb::View::~View() { db_.db_->ReleaseSnapshot(snapshot_); }

absl::StatusOr<std::string> HistoryDb::View::Get(HistoryFamily family,
                                                 absl::string_view key) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  std::string value;
  const rocksdb::Status status = db_.db_->Get(options, db_.Family(family), SliceOf(key), &value);
  if (!status.ok()) return HistoryStatus(status);
  return value;
}

absl::Status HistoryDb::View::Scan(HistoryFamily family, absl::string_view from,
                                   absl::string_view to, Visit visit, bool back) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  const rocksdb::Slice lower = SliceOf(from), upper = SliceOf(to);
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> at(db_.db_->NewIterator(options, db_.Family(family)));
  for (back ? at->SeekToLast() : at->SeekToFirst(); at->Valid(); back ? at->Prev() : at->Next()) {
    if (!visit(ViewOf(at->key()), ViewOf(at->value()))) break;
  }
  return HistoryStatus(at->status());
}

uint64_t HistoryDb::Bytes() const {
  uint64_t sum = 0;
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    uint64_t bytes = 0;
    if (db_->GetIntProperty(family, rocksdb::DB::Properties::kTotalSstFilesSize, &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

absl::Status HistoryDb::Compact(HistoryFamily family, absl::string_view from,
                                absl::string_view to) {
  const rocksdb::Slice begin = SliceOf(from), end = SliceOf(to);
  return HistoryStatus(
      db_->CompactRange(rocksdb::CompactRangeOptions(), Family(family), &begin, &end));
}

}  // namespace berth
