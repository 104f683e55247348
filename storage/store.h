// Store: the durable side of the state machine. Small on purpose, so that another implementation
// (etcd) stays possible.
//
// One Batch is written per loop turn, atomically: the turn's events (one log record) and every
// record they changed. Batches are numbered 1, 2, 3, ... without gaps and chained by a hash, so
// that a start with a gap is impossible. Implementations: storage/rocksdb (embedded, default),
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

// Of the records and the log together: FORMAT.md. A greater one is refused; from kOldestStoreFormat
// on smaller ones are read. A store stays in the format that it was made in until a batch takes it
// to the newest (`berth cluster finalize`): so long an older version can go on with it, and what an
// older version would misread must not be written.
inline constexpr uint32_t kStoreFormat = 7;
inline constexpr uint32_t kOldestStoreFormat = 5;

// One column family each; FORMAT.md describes keys and values.
enum class RecordKind : uint8_t {
  kMeta,  // format version, cluster id, last sequence and hash
  kQueue,
  kNode,
  kHyperNode,
  kJobSpec,    // written once per job: hot part, then cold part
  kJobStatus,  // only when it differs from a job just submitted
  kTask,       // only when it differs from a task just submitted
  kRequest,    // answers to request ids
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
  std::vector<Record> records;  // not the log record
  std::string log;              // encoded store.v1.LogTurn
  bool newest_format = false;   // of the store, from this batch on
};

struct LogEntry {
  uint64_t sequence = 0;
  std::string turn;  // encoded store.v1.LogTurn
};

class Store {
 public:
  virtual ~Store() = default;

  // Every record of the kinds that live in memory (not kLog, nor the store's own; of kJobSpec the
  // whole value), kind by kind in key order. Stops at the visitor's first error and returns it.
  virtual absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) = 0;

  // Sequence of the last durable batch; 0 for an empty store.
  virtual uint64_t LastSequence() const = 0;

  // Made with the store, never changed.
  virtual std::string ClusterId() const = 0;
  // Made with the store and anew by each restore, greater each time; storage/incarnation.h. 0: made
  // by a version that knew none, and never restored since.
  virtual uint64_t Incarnation() const { return 0; }

  // The format of what is durable. Thread-safe.
  virtual uint32_t Format() const { return kStoreFormat; }

  // Writes batches that follow LastSequence() without a gap, all in one atomic write, synced when
  // it returns. INVALID_ARGUMENT: a gap, or a record that belongs to the store itself; nothing was
  // written. RESOURCE_EXHAUSTED: the disk is full, nothing was written, the same batches may be
  // tried again. Any other: nothing is known about the disk; the process must end and start again
  // (an fsync is never retried).
  virtual absl::Status Append(const std::vector<const Batch*>& batches) = 0;

  // The value of one record, or NOT_FOUND. Thread-safe beside Append.
  virtual absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const = 0;

  // What using a record that Read gave came to. DATA_LOSS, for one that does not decode, is noted
  // as a read that met damage is, if the store has a StoreHealth. Gives the status back.
  // Thread-safe.
  virtual absl::Status NoteRead(absl::Status status) const { return status; }

  // Up to `limit` log entries with sequence > after, in order; fewer do not mean the end, none
  // does. OUT_OF_RANGE if `after` + 1 is no longer kept. Thread-safe beside Append.
  virtual absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const = 0;

  // Lets log entries up to `sequence` age out, but never the last one. Bases up to there go too,
  // except for the last of them: it stays, with the log that follows it. A log that is whole stays
  // so until there is such a base, if there are any. Thread-safe beside Append.
  virtual absl::Status TrimLog(uint64_t sequence) = 0;

  // Copies all of it, as it is after the last durable batch or a later one, to `directory`, which
  // is not there yet: whole and synced, or not there at all. That is a backup as Restore takes it
  // (storage/restore.h). For a thread that nobody waits for: one at a time with KeepBase and
  // TrimLog, beside Append. ALREADY_EXISTS, RESOURCE_EXHAUSTED, INTERNAL: nothing has changed.
  virtual absl::Status Backup(const std::string& directory) {
    return absl::UnimplementedError(absl::StrCat("this store cannot be copied to ", directory));
  }

  // ---- Bases: copies of the records as they were after some batch. From there the log can be
  // folded and verified once its beginning has aged out (LoadEarliest, storage/load.h). A store may
  // keep none, as these do. KeepBase and TrimLog: one thread at a time, beside Append.

  // Copies the records that Load gives, but for answers to requests, as they are after the last
  // durable batch, and returns its sequence. Reads them all: for a thread that nobody waits for.
  // UNAVAILABLE, RESOURCE_EXHAUSTED: not now, and nothing has changed.
  virtual absl::StatusOr<uint64_t> KeepBase() {
    return absl::UnimplementedError("this store keeps no bases");
  }
  // Sequences of the bases, smallest first.
  virtual absl::StatusOr<std::vector<uint64_t>> Bases() const { return std::vector<uint64_t>(); }
  // As Load, of one of them; of kJobSpec the hot part. DATA_LOSS if it is damaged, or does not fit
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
