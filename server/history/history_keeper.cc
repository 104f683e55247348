#include "server/history/history_keeper.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/history/ended_job.h"
#include "server/history/history_records.h"
#include "storage/hash_chain.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {

HistoryKeeper::HistoryKeeper(HistoryOptions options, const Store* store, Clock* clock)
    : options_(std::move(options)), store_(store), clock_(clock) {}

HistoryKeeper::~HistoryKeeper() = default;

absl::StatusOr<std::shared_ptr<HistoryDb>> HistoryKeeper::database() const {
  absl::MutexLock lock(&mutex_);
  if (shared_ != nullptr) return shared_;
  return absl::FailedPreconditionError(absl::StrCat("no usage history: ", why_not_));
}

void HistoryKeeper::Close(const absl::Status& why) {
  fold_.reset();
  new_queues_.clear();
  new_jobs_.clear();
  new_labels_.clear();
  // A database that failed is opened again. Readers may go on with the old one.
  db_.reset();
  absl::MutexLock lock(&mutex_);
  shared_.reset();
  why_not_ = std::string(why.message());
}

absl::StatusOr<bool> HistoryKeeper::Step() {
  if (options_.low_space && options_.low_space()) {
    counters_.failed = true;
    return absl::ResourceExhaustedError("the disk is nearly full: the usage history waits");
  }
  absl::StatusOr<bool> more = StepOrFail();
  counters_.failed = !more.ok();
  if (!more.ok()) Close(more.status());
  return more;
}

absl::StatusOr<bool> HistoryKeeper::StepOrFail() {
  if (!fold_.has_value()) {
    if (absl::Status begun = Begin(); !begun.ok()) return begun;
  }
  const uint64_t last = store_->LastSequence();
  if (done() >= last) return false;
  const absl::StatusOr<std::vector<LogEntry>> entries = store_->ReadLog(done(), kTurnsAtOnce);
  if (absl::IsOutOfRange(entries.status())) {
    if (absl::Status again = BeginAgain("the log was trimmed"); !again.ok()) return again;
    return true;
  }
  if (!entries.ok()) return entries.status();
  for (const LogEntry& entry : *entries) {
    absl::Status folded = Fold(entry.sequence, entry.turn);
    if (absl::IsResourceExhausted(folded)) return folded;  // resource kinds: load what is in use
    if (absl::IsDataLoss(folded) && failed_at_ != entry.sequence) {
      failed_at_ = entry.sequence;
      absl::Status again = BeginAgain(std::string(folded.message()));
      if (!again.ok()) return again;
      return true;
    }
    if (!folded.ok()) return folded;
    if (fold_->changes() >= kChangesAtOnce) break;
  }
  if (absl::Status written = Commit(); !written.ok()) return written;
  return done() < last;
}

absl::Status HistoryKeeper::Fold(uint64_t sequence, absl::string_view turn) {
  const absl::StatusOr<LoggedTurn> logged = DecodeTurn(turn);
  if (!logged.ok()) return logged.status();
  if (absl::Status passed = PassTo(logged->time); !passed.ok()) return passed;
  for (const Event& event : logged->events) {
    if (absl::Status applied = Apply(event); !applied.ok()) return applied;
  }
  position_.set_revision(sequence);
  position_.set_turn_hash(ChainHashBytes(NextChainHash(ChainHash{}, sequence, turn)));
  counters_.events += logged->events.size();
  return absl::OkStatus();
}

// Between turns. Closing many periods may need several writes.
absl::Status HistoryKeeper::PassTo(Time time) {
  while (!fold_->PassTime(time, kChangesAtOnce)) {
    if (absl::Status written = Commit(); !written.ok()) return written;
  }
  return absl::OkStatus();
}

absl::Status HistoryKeeper::Apply(const Event& event) {
  if (const auto* queue = std::get_if<QueueCreated>(&event.body)) {
    new_queues_[queue->id] = queue->spec;
  } else if (const auto* job = std::get_if<JobSubmitted>(&event.body)) {
    new_jobs_[job->id] = ReducedSpec(job->spec);
  } else if (const auto* update = std::get_if<JobUpdated>(&event.body)) {
    // The record of an ended job stays as it is.
    if (fold_->FindJob(update->id) != nullptr) new_labels_[update->id] = update->labels;
  }
  return fold_->Apply(event);
}

absl::StatusOr<bool> HistoryKeeper::PassTime(uint64_t revision, Time now) {
  if (!fold_.has_value() || done() < revision) return false;
  if (MsOf(now) <= position_.time_ms()) return true;
  absl::Status passed = PassTo(now);
  if (passed.ok()) passed = Commit();
  counters_.failed = !passed.ok();
  if (!passed.ok()) Close(passed);
  return passed.ok() ? absl::StatusOr<bool>(true) : passed;
}

// ---- Writing

absl::Status HistoryKeeper::Commit() {
  const HistoryChanges changes = fold_->TakeChanges();
  HistoryBatch batch;
  for (const EndedJobFacts& job : changes.ended) {
    if (absl::Status put = PutEnded(job, &batch); !put.ok()) return put;
  }
  PutRows(changes, &batch);
  PutState(changes, &batch);
  position_.set_time_ms(MsOf(fold_->now()));
  batch.Put(HistoryFamily::kMeta, std::string(kPositionKey), position_.SerializeAsString());
  if (absl::Status written = db_->Write(batch); !written.ok()) return written;
  new_queues_.clear();
  new_jobs_.clear();
  new_labels_.clear();
  counters_.revision = position_.revision();
  counters_.time_ms = position_.time_ms();
  counters_.rows_written += changes.usage.size() + changes.capacity.size();
  counters_.jobs_written += changes.ended.size();
  counters_.keys = fold_->keys().size();
  return absl::OkStatus();
}

void HistoryKeeper::PutRows(const HistoryChanges& changes, HistoryBatch* batch) {
  const auto put = [&](HistoryFamily family, std::string key, const auto& row) {
    if (row.meters.empty()) return batch->Delete(family, std::move(key));
    batch->Put(family, std::move(key), EncodeHistoryRow(row.open, row.meters));
  };
  for (const UsageRow& row : changes.usage) {
    const bool minute = row.period == HistoryPeriod::kMinute;
    put(minute ? HistoryFamily::kMinute : HistoryFamily::kHour,
        UsageRowKey(row.begin_ms, row.key, row.model), row);
  }
  for (const CapacityRow& row : changes.capacity) {
    const bool minute = row.period == HistoryPeriod::kMinute;
    put(minute ? HistoryFamily::kMinuteCapacity : HistoryFamily::kHourCapacity,
        CapacityRowKey(row.begin_ms, row.model), row);
  }
}

void HistoryKeeper::PutState(const HistoryChanges& changes, HistoryBatch* batch) {
  for (const QueueId id : changes.queues) {
    if (fold_->FindQueue(id) == nullptr) {
      batch->Delete(HistoryFamily::kQueue, QueueKey(id));
    } else if (const auto spec = new_queues_.find(id); spec != new_queues_.end()) {
      StoredQueue queue;
      queue.id = id;
      queue.spec = spec->second;
      batch->Put(HistoryFamily::kQueue, QueueKey(id), EncodeQueueRecord(queue));
    }
  }
  for (const NodeId id : changes.nodes) {
    const NodeUsage* node = fold_->FindNode(id);
    if (node == nullptr) {
      batch->Delete(HistoryFamily::kNode, NodeKey(id));
    } else {
      batch->Put(HistoryFamily::kNode, NodeKey(id),
                 EncodeNodeRecord(node->spec, node->status, {}, {}, 0));
    }
  }
  for (const JobId id : changes.jobs) {
    const JobUsage* job = fold_->FindJob(id);
    if (job == nullptr) {
      for (const HistoryFamily family :
           {HistoryFamily::kJob, HistoryFamily::kJobSpec, HistoryFamily::kLabels}) {
        batch->Delete(family, JobKey(id));
      }
      continue;
    }
    batch->Put(HistoryFamily::kJob, JobKey(id), EncodeHistoryJob(fold_->StoredOf(*job)));
    if (const auto spec = new_jobs_.find(id); spec != new_jobs_.end()) {
      batch->Put(HistoryFamily::kJobSpec, JobKey(id),
                 EncodeJobSpecRecord(spec->second, job->submit, 0, {}, {}, ""));
    }
    if (const auto labels = new_labels_.find(id); labels != new_labels_.end()) {
      batch->Put(HistoryFamily::kLabels, JobKey(id), EncodeHistoryLabels(labels->second));
    }
  }
  for (const TaskKey& key : changes.tasks) {
    const PlacedTask* placed = fold_->FindTask(key);
    if (placed == nullptr) {
      batch->Delete(HistoryFamily::kTask, TaskRecordKey(key));
    } else {
      batch->Put(HistoryFamily::kTask, TaskRecordKey(key), EncodeHistoryTask(*placed));
    }
  }
}

// Its specification may be written already, or not yet.
absl::Status HistoryKeeper::PutEnded(const EndedJobFacts& job, HistoryBatch* batch) {
  const HistoryDb::View view(*db_);
  JobSpec spec;
  if (const auto fresh = new_jobs_.find(job.id); fresh != new_jobs_.end()) {
    spec = fresh->second;
  } else {
    const absl::StatusOr<std::string> stored = view.Get(HistoryFamily::kJobSpec, JobKey(job.id));
    if (!stored.ok()) return stored.status();
    absl::StatusOr<StoredJob> decoded = DecodeJobSpecRecord(JobKey(job.id), *stored);
    if (!decoded.ok()) return decoded.status();
    spec = std::move(decoded->spec);
  }
  if (const auto fresh = new_labels_.find(job.id); fresh != new_labels_.end()) {
    spec.labels = fresh->second;
  } else if (const auto stored = view.Get(HistoryFamily::kLabels, JobKey(job.id)); stored.ok()) {
    auto labels = DecodeHistoryLabels(*stored);
    if (!labels.ok()) return labels.status();
    spec.labels = *std::move(labels);
  }
  const v1::EndedJob ended = EndedJobOf(job, spec);
  const int64_t end_ms = MsOf(job.status.end);
  batch->Put(HistoryFamily::kEnded, EndedKey(end_ms, job.id), ended.SerializeAsString());
  batch->Put(HistoryFamily::kEndedByUid, JobKey(job.id), EndedKey(end_ms, job.id));
  return absl::OkStatus();
}

}  // namespace berth
