// RocksDbStore: the store in one local directory (storage/FORMAT.md). One process at a time has it
// open.
//
// Opening refuses a damaged store, one with a gap and one of a newer format, naming file and
// reason. Append and Load: one thread at a time; Read, ReadLog, TrimLog and the functions for
// bases: any thread.
#ifndef BERTH_STORAGE_ROCKSDB_ROCKSDB_STORE_H_
#define BERTH_STORAGE_ROCKSDB_ROCKSDB_STORE_H_

#include <rocksdb/write_batch.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "storage/hash_chain.h"
#include "storage/local_store.h"
#include "storage/rocksdb/database.h"
#include "storage/rocksdb/watched_file_system.h"
#include "storage/store.h"
#include "storage/store_health.h"

namespace berth {

// In the store's directory: the bases, one file each.
inline constexpr char kBasesName[] = "/bases";
// How much of the log's end is checked against the chain when the store is opened. fsck checks all
// of it.
inline constexpr size_t kVerifiedTailBytes = size_t{16} << 20;
// Limit for one ReadLog, unless the first entry is larger.
inline constexpr size_t kMaxReadLogBytes = size_t{8} << 20;
// A full disk counts as having space again once this much is free, plus twice the pending batches.
inline constexpr uint64_t kSpaceToGoOn = uint64_t{2} << 20;
// Free space required for writing memory to tables.
inline constexpr uint64_t kSpaceToFlush = kWriteBufferBytes;

struct RocksDbOptions {
  std::string directory = {};   // created if missing (its parent must exist)
  std::string cluster_id = {};  // of a new store; "" = a random one
  // A copy that replaces a store: it gets a new incarnation, and the newest format, as older
  // versions cannot tell incarnations apart.
  bool restored = false;
  // For a restored store: the longest lease that agents of the previous store may hold. The copy's
  // own record of leases misses grants after the backup.
  absl::Duration longest_lease = absl::Hours(1);
  std::function<absl::Time()> now = absl::Now;  // for incarnations
  bool read_only = false;  // for fsck: creates and changes nothing; Append fails
  std::shared_ptr<rocksdb::FileSystem> file_system =
      {};                                         // null = the machine's; tests inject faults
  size_t write_buffer_bytes = kWriteBufferBytes;  // of all records together; tests use less
  // Receives failed reads, and has the reserve; null = no reporting and no reserve.
  std::shared_ptr<StoreHealth> health = {};
};

class RocksDbStore final : public LocalStore {
 public:
  // UNAVAILABLE: another process has it open. FAILED_PRECONDITION: a newer format, or a backup that
  // was moved here by hand. DATA_LOSS: damaged. NOT_FOUND: there is none (read_only).
  // RESOURCE_EXHAUSTED: no space. INTERNAL: other disk errors.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(RocksDbOptions options);

  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) override;
  uint64_t LastSequence() const override { return last_sequence_.load(); }
  uint32_t Format() const override { return format_; }
  std::string ClusterId() const override { return cluster_id_; }
  uint64_t Incarnation() const override { return incarnation_; }
  absl::Status Append(const std::vector<const Batch*>& batches) override;
  absl::Status AppendBehind(const std::vector<const Batch*>& batches) override;
  absl::Status Sync() override;
  ChainHash LastHash() const override { return last_hash_; }
  uint64_t SyncedSequence() const override { return synced_sequence_.load(); }
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override;
  absl::Status NoteRead(absl::Status status) const override {
    return health_ == nullptr ? status : health_->NoteRead(std::move(status));
  }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override;
  // rocksdb_bases.cc
  absl::Status TrimLog(uint64_t sequence) override;
  absl::StatusOr<uint64_t> KeepBase() override;
  absl::Status Backup(const std::string& directory) override;  // rocksdb_backup.cc
  absl::StatusOr<std::vector<uint64_t>> Bases() const override;
  absl::Status LoadBase(
      uint64_t sequence,
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) const override;

  // Reads every block of every table and compares checksums. DATA_LOSS naming the file.
  absl::Status VerifyChecksums() const;
  // Checks the whole kept log against the chain; calls visit(sequence, turn) for each entry.
  absl::Status VerifyChain(
      absl::FunctionRef<absl::Status(uint64_t sequence, absl::string_view turn)> visit) const;

 private:
  using RecordVisitor =
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>;
  using LogVisitor = absl::FunctionRef<absl::Status(uint64_t sequence, absl::string_view turn)>;

  explicit RocksDbStore(RocksDbOptions options);
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> TryOpen(const RocksDbOptions& options);
  // On a full disk: releases as much of the reserve as is allowed while running.
  bool MakeRoom(uint64_t bytes);

  // The database, kept open while the result lives. UNAVAILABLE while a full disk prevents
  // reopening it.
  absl::StatusOr<std::shared_ptr<const Database>> Get() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Set(std::shared_ptr<const Database> database) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the database, and what precedes that.
  absl::Status CheckLogs();
  absl::StatusOr<std::unique_ptr<Database>> OpenDatabase();
  std::string MissingBatches() const;
  absl::Status ReadMeta(const Database& database);
  absl::Status MakeMeta(const Database& database);
  absl::Status BeginIncarnation(const Database& database, absl::Duration longest_lease);
  std::string EncodeMeta(uint64_t sequence, const ChainHash& hash, uint32_t format) const;
  absl::Status VerifyTail(const Database& database) const;
  absl::Status VerifyFrom(const Database& database, uint64_t first, LogVisitor visit) const;
  absl::Status LoadKind(const Database& database, RecordKind kind, RecordVisitor visit) const;

  absl::Status AddBatch(const Database& database, const Batch& batch, uint64_t sequence,
                        ChainHash* hash);
  absl::Status AppendGroup(const std::vector<const Batch*>& batches, bool sync);
  absl::Status Write(const Database& database, bool sync);
  void FlushOnlyWithRoom();
  absl::Status Reopen(size_t bytes);
  bool HasRoom(uint64_t bytes) const;
  absl::Status DiskFull() const;
  absl::Status CopyTo(const std::string& directory) const;
  absl::Status CheckRoomForBase(const Database& database) const;
  absl::Status CheckBase(uint64_t sequence, absl::string_view meta) const;
  absl::Status LostBatches() const;
  absl::Status Damaged(absl::string_view reason) const;

  const std::shared_ptr<StoreHealth> health_;
  const std::shared_ptr<rocksdb::FileSystem> file_system_;
  const std::shared_ptr<DiskErrors> disk_errors_;
  const std::shared_ptr<WalList> wals_;
  const std::unique_ptr<rocksdb::Env> env_;  // outlives the database
  const size_t write_buffer_bytes_;
  const DatabasePlace place_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Database> database_ ABSL_GUARDED_BY(mutex_);

  const std::function<absl::Time()> now_;
  std::string cluster_id_;
  std::atomic<uint64_t> incarnation_{0};
  std::string meta_rest_;  // encoded fields of Meta that do not change, and unknown ones
  std::atomic<uint64_t> last_sequence_{0}, synced_sequence_{0};
  std::atomic<uint32_t> format_{kStoreFormat};
  ChainHash last_hash_{};
  bool full_ = false;            // the last write found no space
  rocksdb::WriteBatch pending_;  // reused
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_ROCKSDB_STORE_H_
