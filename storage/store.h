// Store: the durable part of the state machine. Small on purpose, so that another implementation
// (etcd) stays possible.
//
// One Batch is written per loop turn, atomically: the turn's events (one log record) and every
// record that they changed. Batches are numbered 1, 2, 3, ... without gaps and chained by a hash,
// so that a start with a gap is impossible. Implementations: storage/rocksdb (embedded, default),
// storage/memory (tests, simulation).
#ifndef BERTH_STORAGE_STORE_H_
#define BERTH_STORAGE_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace berth {

// The format of records and log: FORMAT.md. Newer formats are refused; older ones are read from
// kOldestStoreFormat on. A store keeps the format in which it was created until a batch upgrades it
// to the newest (`berth cluster finalize`). Until then an older version can still open it, so
// nothing may be written that such a version would misread.
inline constexpr uint32_t kStoreFormat = 10;
inline constexpr uint32_t kOldestStoreFormat = 5;

// Each has a column family; FORMAT.md describes keys and values.
enum class RecordKind : uint8_t {
  kMeta,  // format version, cluster id, last sequence and hash
  kQueue,
  kNode,
  kHyperNode,
  kJobSpec,    // written once per job: hot part, then cold part
  kJobStatus,  // only if it differs from a job just submitted
  kTask,       // only if it differs from a task just submitted
  kRequest,    // responses to request ids
  kLog,        // one record per batch: its events
};
inline constexpr size_t kRecordKinds = 9;

struct Record {
  RecordKind kind = RecordKind::kMeta;
  std::string key;                   // big-endian numbers, so that byte order is numeric order
  std::optional<std::string> value;  // nullopt = delete
};

struct Batch {
  uint64_t sequence = 0;
  std::vector<Record> records;  // without the log record
  std::string log;              // encoded store.v1.LogTurn
  bool newest_format = false;   // the store's format from this batch on
};

struct LogEntry {
  uint64_t sequence = 0;
  std::string turn;  // encoded store.v1.LogTurn
};

class Store {
 public:
  virtual ~Store() = default;

  // Visits every record of the kinds that live in memory (not kLog, nor the store's own; for
  // kJobSpec the whole value), kind by kind in key order. Stops at the visitor's first error and
  // returns it.
  virtual absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) = 0;

  // Sequence of the last durable batch; 0 for an empty store.
  virtual uint64_t LastSequence() const = 0;

  // Assigned when the store is created, never changed.
  virtual std::string ClusterId() const = 0;
  // Assigned when the store is created and increased by each restore; storage/incarnation.h. 0:
  // created by a version without incarnations, and never restored since.
  virtual uint64_t Incarnation() const { return 0; }

  // The format of the durable data. Thread-safe.
  virtual uint32_t Format() const { return kStoreFormat; }

  // Writes batches that follow LastSequence() without a gap, in one atomic write, synced on return.
  // INVALID_ARGUMENT: a gap, or a record that belongs to the store itself; nothing was written.
  // RESOURCE_EXHAUSTED: the disk is full, nothing was written, the same batches may be retried. Any
  // other error: the state of the disk is unknown; the process must exit and restart (an fsync is
  // never retried).
  virtual absl::Status Append(const std::vector<const Batch*>& batches) = 0;

  // The value of one record, or NOT_FOUND. Thread-safe, also during Append.
  virtual absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const = 0;

  // Reports the outcome of using a record from Read. DATA_LOSS, for a record that does not decode,
  // is counted like a read of damaged data if the store has a StoreHealth. Returns the status.
  // Thread-safe.
  virtual absl::Status NoteRead(absl::Status status) const { return status; }

  // Up to `limit` log entries with sequence > after, in order. Only an empty result means the end.
  // OUT_OF_RANGE if `after` + 1 is no longer kept. Thread-safe, also during Append.
  virtual absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const = 0;

  // Deletes log entries up to `sequence`, but never the last one, and bases up to there except the
  // last of them, which stays with the log that follows it. A log that is complete from batch 1
  // stays so until such a base exists, if the store keeps bases. Thread-safe, also during Append.
  virtual absl::Status TrimLog(uint64_t sequence) = 0;

  // Copies the whole store, as of the last durable batch or a later one, to `directory`, which must
  // not exist: complete and synced, or not at all. The copy is a backup for Restore
  // (storage/restore.h). Slow: call it from a background thread, one at a time with KeepBase and
  // TrimLog; Append may run. ALREADY_EXISTS, RESOURCE_EXHAUSTED, INTERNAL: nothing has changed.
  virtual absl::Status Backup(const std::string& directory) {
    return absl::UnimplementedError(absl::StrCat("this store cannot be copied to ", directory));
  }

  // ---- Bases: copies of the records as of some batch. The log can be folded and verified from a
  // base once its beginning has been deleted (LoadEarliest, storage/load.h). A store may keep none,
  // as these defaults do. KeepBase and TrimLog: one thread at a time; Append may run.

  // Copies the records that Load visits, except responses to requests, as of the last durable
  // batch, and returns its sequence. Reads all of them, so call it from a background thread.
  // UNAVAILABLE, RESOURCE_EXHAUSTED: not at the moment, and nothing has changed.
  virtual absl::StatusOr<uint64_t> KeepBase() {
    return absl::UnimplementedError("this store keeps no bases");
  }
  // Sequences of the bases, in ascending order.
  virtual absl::StatusOr<std::vector<uint64_t>> Bases() const { return std::vector<uint64_t>(); }
  // Like Load, for one base; for kJobSpec the hot part. DATA_LOSS if it is damaged or does not fit
  // the log.
  virtual absl::Status LoadBase(
      uint64_t sequence,
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) const {
    (void)visit;
    return absl::NotFoundError(absl::StrCat("no base at batch ", sequence));
  }
};

}  // namespace berth

#endif  // BERTH_STORAGE_STORE_H_
