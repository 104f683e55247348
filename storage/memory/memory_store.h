// MemoryStore: a store without a disk, for tests and simulation. Its content survives a "crash"
// (the object outlives the server that uses it), and it can inject faults.
#ifndef BERTH_STORAGE_MEMORY_MEMORY_STORE_H_
#define BERTH_STORAGE_MEMORY_MEMORY_STORE_H_

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/local_store.h"

namespace berth {

// Thread-safe.
class MemoryStore final : public LocalStore {
 public:
  explicit MemoryStore(std::string cluster_id = "memory", uint32_t format = kStoreFormat,
                       uint64_t incarnation = 0)
      : cluster_id_(std::move(cluster_id)), incarnation_(incarnation), format_(format) {}

  // The result of restoring a backup: everything in this store, with another incarnation.
  std::unique_ptr<MemoryStore> Copy(uint64_t incarnation) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Called before each Append, which returns its error and writes nothing. The contract applies:
  // RESOURCE_EXHAUSTED may be followed by success, any other error ends this store (all later
  // writes fail with it).
  void SetFault(std::function<absl::Status()> fault) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) override ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t LastSequence() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string ClusterId() const override { return cluster_id_; }
  uint64_t Incarnation() const override { return incarnation_; }
  uint32_t Format() const override { return format_; }
  absl::Status Append(const std::vector<const Batch*>& batches) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  ChainHash LastHash() const override ABSL_LOCKS_EXCLUDED(mutex_);
  // What is not synced by then, LosePower loses.
  absl::Status AppendBehind(const std::vector<const Batch*>& batches) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Sync() override ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t SyncedSequence() const override ABSL_LOCKS_EXCLUDED(mutex_);
  // As it is after a power cut: `kept` of the batches that were not synced are there.
  std::unique_ptr<MemoryStore> LosePower(size_t kept) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status NoteRead(absl::Status status) const override {
    if (absl::IsDataLoss(status)) ++read_errors_;
    return status;
  }
  int read_errors() const { return read_errors_.load(); }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TrimLog(uint64_t sequence) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<uint64_t> KeepBase() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<uint64_t>> Bases() const override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LoadBase(
      uint64_t sequence,
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Records = std::map<std::string, std::string, std::less<>>;
  using AllRecords = std::array<Records, kRecordKinds>;
  using RecordVisitor =
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>;

  // What takes back a batch that was appended behind another log and is not synced.
  struct Undo {
    std::vector<Record> records;  // as they were before it
    ChainHash hash{};
    uint32_t format = 0;
  };

  static absl::Status Visit(const AllRecords& records, RecordVisitor visit);

  absl::Status Check(const std::vector<const Batch*>& batches) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `undo`: receives what takes the batches back; may be null.
  absl::Status Write(const std::vector<const Batch*>& batches, std::vector<Undo>* undo)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Undo UndoOf(const Batch& batch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutRecord(const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(const Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string cluster_id_;
  const uint64_t incarnation_;
  std::atomic<uint32_t> format_;
  mutable std::atomic<int> read_errors_{0};
  mutable absl::Mutex mutex_;
  AllRecords records_ ABSL_GUARDED_BY(mutex_);                    // everything except the log
  std::map<uint64_t, AllRecords> bases_ ABSL_GUARDED_BY(mutex_);  // by sequence
  std::map<uint64_t, std::string> log_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  ChainHash last_hash_ ABSL_GUARDED_BY(mutex_){};
  std::vector<Undo> unsynced_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status()> fault_ ABSL_GUARDED_BY(mutex_);
  absl::Status dead_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_STORAGE_MEMORY_MEMORY_STORE_H_
