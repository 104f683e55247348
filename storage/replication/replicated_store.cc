#include "storage/replication/replicated_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr uint64_t kUnsyncedBytes = uint64_t{64} << 20;

}  // namespace

ReplicatedStore::ReplicatedStore(std::unique_ptr<LocalStore> local, ReplicatedLog* log,
                                 Clock* clock, std::function<void(const absl::Status&)> deposed)
    : local_(std::move(local)), log_(log), clock_(clock), deposed_(std::move(deposed)) {}

absl::Status ReplicatedStore::Follow(const ReplicatedBatches& group) {
  const uint64_t last = local_->LastSequence();
  if (group.batches.empty() || group.batches.front().sequence != last + 1) {
    return absl::FailedPreconditionError(absl::StrCat("a group that does not follow batch ", last));
  }
  if (group.hash_before != local_->LastHash()) {
    return absl::DataLossError(absl::StrCat("etcd's log continues another batch ", last,
                                            " than the one in this server's store"));
  }
  std::vector<const Batch*> batches;
  for (const Batch& batch : group.batches) batches.push_back(&batch);
  return Write(batches, {.bytes = group.bytes, .parts = group.parts});
}

absl::Status ReplicatedStore::Append(const std::vector<const Batch*>& batches) {
  if (batches.empty()) return absl::OkStatus();
  const uint64_t term = term_.load();
  if (term == 0) return absl::FailedPreconditionError("this server does not lead the cluster");
  ReplicatedLogSize size;
  // Over all tries of these batches, and until the local store has them, too.
  if (append_began_ == 0) append_began_ = absl::ToInt64Nanoseconds(clock_->Steady());
  absl::Status status = log_->Append(term, local_->LastHash(), batches, &size);
  if (IsDeposed(status)) deposed_(status);
  if (status.ok()) status = Write(batches, size);
  if (status.ok()) append_began_ = 0;
  return status;
}

absl::Status ReplicatedStore::Write(const std::vector<const Batch*>& batches,
                                    const ReplicatedLogSize& size) {
  if (absl::Status status = local_->AppendBehind(batches); !status.ok()) return status;
  Note(batches.back()->sequence, size);
  for (const Batch* batch : batches) {
    unsynced_bytes_ += batch->log.size();
    for (const Record& record : batch->records) {
      unsynced_bytes_ += record.key.size() + (record.value.has_value() ? record.value->size() : 0);
    }
  }
  if (unsynced_bytes_ < kUnsyncedBytes) return absl::OkStatus();
  unsynced_bytes_ = 0;
  return local_->Sync();
}

// ---- What etcd's log holds

void ReplicatedStore::Note(uint64_t last, const ReplicatedLogSize& size) {
  absl::MutexLock lock(&mutex_);
  groups_.push_back(
      {.last = last, .hash = local_->LastHash(), .bytes = size.bytes, .parts = size.parts});
  size_.bytes += size.bytes;
  size_.parts += size.parts;
}

ReplicatedStore::Cut ReplicatedStore::Trimmable(uint64_t synced,
                                                const ReplicatedLogSize& bounds) const {
  const uint64_t here = local_->SyncedSequence();
  absl::MutexLock lock(&mutex_);
  ReplicatedLogSize rest = size_;
  Cut cut;
  for (const Group& group : groups_) {
    const bool too_much = rest.bytes > bounds.bytes || rest.parts > bounds.parts;
    if (group.last > here || (group.last > synced && !too_much)) break;
    cut = {.through = group.last, .hash = group.hash};
    rest.bytes -= group.bytes;
    rest.parts -= group.parts;
  }
  return cut;
}

void ReplicatedStore::NoteTrimmed(uint64_t through) {
  absl::MutexLock lock(&mutex_);
  while (!groups_.empty() && groups_.front().last <= through) {
    size_.bytes -= groups_.front().bytes;
    size_.parts -= groups_.front().parts;
    groups_.pop_front();
  }
}

ReplicatedLogSize ReplicatedStore::log_size() const {
  absl::MutexLock lock(&mutex_);
  return size_;
}

}  // namespace berth
