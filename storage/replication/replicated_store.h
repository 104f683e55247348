// ReplicatedStore: the store of a member of a cluster with high availability. Batches are durable
// when etcd has them (ReplicatedLog); the local store is written afterwards and so is never ahead.
// It serves all reads.
//
//   Follow   while another member leads: takes over what it committed
//   Lead     from then on Append works, until the term is over
//
// Follow, Lead, Append, Load: one thread at a time. The rest: as the local store.
#ifndef BERTH_STORAGE_REPLICATION_REPLICATED_STORE_H_
#define BERTH_STORAGE_REPLICATION_REPLICATED_STORE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "storage/local_store.h"
#include "storage/replication/replicated_log.h"
#include "support/clock.h"

namespace berth {

class ReplicatedStore final : public Store {
 public:
  // `log` and `clock` outlive it. `deposed` is called once, from Append, when another term has
  // begun: nothing more is acknowledged, and Append does not return before it does.
  ReplicatedStore(std::unique_ptr<LocalStore> local, ReplicatedLog* log, Clock* clock,
                  std::function<void(const absl::Status&)> deposed);

  // Appends the group to the local store. FAILED_PRECONDITION: it does not follow: DATA_LOSS:
  // it follows another batch with that number: the local store is not of this log.
  absl::Status Follow(const ReplicatedBatches& group);
  void Lead(uint64_t term) { term_ = term; }

  absl::Status Append(const std::vector<const Batch*>& batches) override;
  // Since when the batches have waited that Append is to write, or to try again: for etcd or for
  // the local disk. Steady time in nanoseconds; 0: none wait.
  int64_t append_began() const { return append_began_.load(); }

  // Groups that can be deleted from etcd's log: the last batch up to `synced` by all members that
  // is the last of its group, or more if the log is larger than the bounds, but never more than
  // this disk holds. 0: none.
  struct Cut {
    uint64_t through = 0;
    ChainHash hash{};
  };
  Cut Trimmable(uint64_t synced, const ReplicatedLogSize& bounds) const ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteTrimmed(uint64_t through) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of etcd's log, as far as this process has seen it.
  ReplicatedLogSize log_size() const ABSL_LOCKS_EXCLUDED(mutex_);

  LocalStore& local() { return *local_; }

  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) override {
    return local_->Load(visit);
  }
  uint64_t LastSequence() const override { return local_->LastSequence(); }
  std::string ClusterId() const override { return local_->ClusterId(); }
  uint64_t Incarnation() const override { return local_->Incarnation(); }
  uint32_t Format() const override { return local_->Format(); }
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override {
    return local_->Read(kind, key);
  }
  absl::Status NoteRead(absl::Status status) const override {
    return local_->NoteRead(std::move(status));
  }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override {
    return local_->ReadLog(after, limit);
  }
  absl::Status TrimLog(uint64_t sequence) override { return local_->TrimLog(sequence); }
  absl::Status Backup(const std::string& directory) override { return local_->Backup(directory); }
  absl::StatusOr<uint64_t> KeepBase() override { return local_->KeepBase(); }
  absl::StatusOr<std::vector<uint64_t>> Bases() const override { return local_->Bases(); }
  absl::Status LoadBase(
      uint64_t sequence,
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view key, absl::string_view value)>
          visit) const override {
    return local_->LoadBase(sequence, visit);
  }

 private:
  struct Group {
    uint64_t last = 0;
    ChainHash hash{};
    uint64_t bytes = 0, parts = 0;
  };
  void Note(uint64_t last, const ReplicatedLogSize& size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Syncs the local store when much of it is not.
  absl::Status Write(const std::vector<const Batch*>& batches, const ReplicatedLogSize& size);

  const std::unique_ptr<LocalStore> local_;
  ReplicatedLog* const log_;
  Clock* const clock_;
  const std::function<void(const absl::Status&)> deposed_;
  std::atomic<uint64_t> term_{0};  // 0: it does not lead
  std::atomic<int64_t> append_began_{0};
  uint64_t unsynced_bytes_ = 0;
  mutable absl::Mutex mutex_;
  std::deque<Group> groups_ ABSL_GUARDED_BY(mutex_);  // in etcd's log, by `last`
  ReplicatedLogSize size_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_STORAGE_REPLICATION_REPLICATED_STORE_H_
