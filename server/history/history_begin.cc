// HistoryKeeper: opening its database, going on after its last turn, and beginning again.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/history/history_keeper.h"
#include "server/history/history_records.h"
#include "storage/hash_chain.h"
#include "storage/keys.h"
#include "storage/load.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr size_t kRecordsAtOnce = 10'000;  // of a base, in one write

constexpr HistoryFamily kStateFamilies[] = {HistoryFamily::kQueue,   HistoryFamily::kNode,
                                            HistoryFamily::kJobSpec, HistoryFamily::kLabels,
                                            HistoryFamily::kTask,    HistoryFamily::kJob};

// Keeps one damaged database for whoever wants to look at it.
absl::Status PutAside(const std::string& directory) {
  const std::string aside = absl::StrCat(directory, ".damaged");
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) std::filesystem::rename(directory, aside, error);
  if (error) return absl::InternalError(absl::StrCat(directory, ": ", error.message()));
  return absl::OkStatus();
}

}  // namespace

UsageOptions HistoryKeeper::FoldOptions() const {
  return {.account_of = options_.account_of, .keys = options_.keys, .minutes = options_.minutes};
}

absl::Status HistoryKeeper::Begin() {
  absl::StatusOr<std::unique_ptr<HistoryDb>> opened = HistoryDb::Open(options_.directory);
  if (absl::IsDataLoss(opened.status()) && !options_.directory.empty()) {
    LogWarn("the usage history is damaged; it is put aside and begins again",
            {{"directory", options_.directory}, {"error", opened.status()}});
    if (absl::Status aside = PutAside(options_.directory); !aside.ok()) return aside;
    opened = HistoryDb::Open(options_.directory);
  }
  if (!opened.ok()) return opened.status();
  db_ = *std::move(opened);
  position_.Clear();
  const absl::StatusOr<std::string> stored =
      HistoryDb::View(*db_).Get(HistoryFamily::kMeta, kPositionKey);
  if (!stored.ok() && !absl::IsNotFound(stored.status())) return stored.status();
  if (stored.ok() && !position_.ParseFromString(*stored)) position_.Clear();
  absl::StatusOr<std::string> why = CannotContinue();
  if (!why.ok()) return why.status();
  if (why->empty()) {
    const absl::Status loaded = LoadFold();
    if (absl::IsDataLoss(loaded)) *why = std::string(loaded.message());
    if (!loaded.ok() && !absl::IsDataLoss(loaded)) return loaded;
  }
  if (!why->empty()) {
    if (absl::Status again = BeginAgain(*why); !again.ok()) return again;
  }
  counters_.bytes = db_->Bytes();
  absl::MutexLock lock(&mutex_);
  shared_ = db_;
  return absl::OkStatus();
}

// Why the log does not continue what is folded; "" if it does.
absl::StatusOr<std::string> HistoryKeeper::CannotContinue() const {
  if (position_.format() == 0) return std::string("it is new");
  if (position_.format() != kHistoryFormat) return std::string("it has another format");
  if (position_.cluster_id() != store_->ClusterId()) {
    return std::string("it is of another cluster");
  }
  if (position_.begins_again()) return std::string("it was interrupted when it began again");
  const uint64_t done = position_.revision();
  if (done > store_->LastSequence()) return std::string("the store is older: it was restored");
  const absl::StatusOr<std::vector<LogEntry>> next =
      done == store_->LastSequence() ? std::vector<LogEntry>() : store_->ReadLog(done, 1);
  if (absl::IsOutOfRange(next.status())) return std::string("the log was trimmed");
  if (!next.ok()) return next.status();
  if (position_.turn_hash().empty()) {
    return std::string(position_.incarnation() == store_->Incarnation() ? ""
                                                                        : "the store was restored");
  }
  const absl::StatusOr<std::vector<LogEntry>> last = store_->ReadLog(done - 1, 1);
  if (absl::IsOutOfRange(last.status())) {  // just trimmed; only a restore brings another one
    return std::string(position_.incarnation() == store_->Incarnation() ? ""
                                                                        : "the store was restored");
  }
  if (!last.ok()) return last.status();
  const bool same =
      !last->empty() &&
      position_.turn_hash() == ChainHashBytes(NextChainHash(ChainHash{}, done, last->front().turn));
  return std::string(same ? "" : "the store has another log: it was restored");
}

// ---- Continuing

absl::Status HistoryKeeper::LoadFold() {
  const HistoryDb::View view(*db_);
  UsageFold fold(FoldOptions());
  absl::Status failed;
  const auto load = [&](HistoryFamily family, auto take) {
    absl::Status scanned = view.Scan(family, "", "\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                     [&](absl::string_view key, absl::string_view value) {
                                       failed.Update(take(key, value));
                                       return failed.ok();
                                     });
    failed.Update(scanned);
  };
  load(HistoryFamily::kQueue, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<StoredQueue> queue = DecodeQueueRecord(key, value, nullptr);
    return queue.ok() ? fold.LoadQueue(queue->id, queue->spec) : queue.status();
  });
  load(HistoryFamily::kNode, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<StoredNode> node = DecodeNodeRecord(key, value, nullptr);
    return node.ok() ? fold.LoadNode(node->id, node->spec, node->status) : node.status();
  });
  load(HistoryFamily::kJobSpec, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<StoredJob> job = DecodeJobSpecRecord(key, value);
    return job.ok() ? fold.LoadJob(job->id, job->spec, job->submit) : job.status();
  });
  load(HistoryFamily::kTask, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<PlacedTask> placed = DecodeHistoryTask(key, value);
    if (!placed.ok()) return placed.status();
    const absl::StatusOr<TaskKey> task = ParseTaskRecordKey(key);
    return task.ok() ? fold.LoadPlacedTask(*task, *placed) : task.status();
  });
  std::map<JobId, std::map<std::string, std::string>> labels;
  load(HistoryFamily::kLabels, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<JobId> job = ParseJobKey(key);
    auto decoded = DecodeHistoryLabels(value);
    if (!job.ok() || !decoded.ok()) return absl::DataLossError("the usage history: labels");
    labels[*job] = *std::move(decoded);
    return absl::OkStatus();
  });
  load(HistoryFamily::kJob, [&](absl::string_view key, absl::string_view value) {
    const absl::StatusOr<JobId> job = ParseJobKey(key);
    const absl::StatusOr<UsageFold::StoredJobUsage> stored = DecodeHistoryJob(value);
    if (!job.ok() || !stored.ok()) return absl::DataLossError("the usage history: a job");
    const auto changed = labels.find(*job);
    return fold.LoadJobUsage(*job, *stored, changed == labels.end() ? nullptr : &changed->second);
  });
  if (!failed.ok()) return failed;
  fold.Begin(TimeOfMs(position_.time_ms()));
  fold_.emplace(std::move(fold));
  if (absl::Status rows = LoadOpenRows(view); !rows.ok()) {
    fold_.reset();
    return rows;
  }
  counters_.revision = position_.revision();
  counters_.time_ms = position_.time_ms();
  return absl::OkStatus();
}

absl::Status HistoryKeeper::LoadOpenRows(const HistoryDb::View& view) {
  absl::Status failed;
  const auto load = [&](HistoryFamily family, HistoryPeriod period, int64_t width, auto row,
                        auto parse) {
    using Meters = decltype(row.meters);
    using M = decltype(Meters::value_type::meter);
    const int64_t begin = PeriodOf(position_.time_ms(), width);
    failed.Update(view.Scan(family, PeriodKey(begin), PeriodKey(begin + width),
                            [&](absl::string_view key, absl::string_view value) {
                              const absl::StatusOr<ParsedRowKey> parsed = parse(key);
                              auto meters = DecodeHistoryRow<M>(value, &row.open);
                              failed.Update(parsed.status());
                              failed.Update(meters.status());
                              if (!failed.ok()) return false;
                              row.period = period;
                              row.begin_ms = parsed->begin_ms;
                              if constexpr (requires { row.key; }) row.key = parsed->key;
                              row.model = parsed->model;
                              row.meters = *std::move(meters);
                              if (row.open) failed.Update(fold_->LoadRow(row));
                              return failed.ok();
                            }));
  };
  load(HistoryFamily::kMinute, HistoryPeriod::kMinute, kMsPerMinute, UsageRow(), ParseUsageRowKey);
  load(HistoryFamily::kHour, HistoryPeriod::kHour, kMsPerHour, UsageRow(), ParseUsageRowKey);
  load(HistoryFamily::kMinuteCapacity, HistoryPeriod::kMinute, kMsPerMinute, CapacityRow(),
       ParseCapacityRowKey);
  load(HistoryFamily::kHourCapacity, HistoryPeriod::kHour, kMsPerHour, CapacityRow(),
       ParseCapacityRowKey);
  return failed.ok() ? fold_->FinishRows() : failed;
}

// ---- Beginning again

// What the fold of the kept log says again, or what is of a log that is no more.
void HistoryKeeper::ForgetAfter(int64_t from_ms, HistoryBatch* batch) const {
  const std::string end = "\xff\xff\xff\xff";
  const auto drop = [&](HistoryFamily family, int64_t width) {
    batch->DeleteRange(family, PeriodKey(PeriodOf(from_ms, width)), end);
  };
  drop(HistoryFamily::kMinute, kMsPerMinute);
  drop(HistoryFamily::kMinuteCapacity, kMsPerMinute);
  drop(HistoryFamily::kHour, kMsPerHour);
  drop(HistoryFamily::kHourCapacity, kMsPerHour);
  drop(HistoryFamily::kDay, kMsPerDay);
  drop(HistoryFamily::kDayCapacity, kMsPerDay);
  const std::string first = EndedKey(from_ms, JobId{}), last(16, '\xff');
  HistoryDb::View(*db_)
      .Scan(HistoryFamily::kEnded, first, last,
            [&](absl::string_view key, absl::string_view) {
              batch->Delete(HistoryFamily::kEndedByUid, std::string(key.substr(8)));
              return true;
            })
      .IgnoreError();  // an entry without its job is no job
  batch->DeleteRange(HistoryFamily::kEnded, first, last);
}

// As of that time, for good: what follows is not known.
absl::Status HistoryKeeper::CloseOpenRows(int64_t time_ms, HistoryBatch* batch) const {
  const HistoryDb::View view(*db_);
  absl::Status failed;
  const auto close = [&]<class M>(HistoryFamily family, int64_t width, M) {
    const int64_t begin = PeriodOf(time_ms, width);
    const auto visit = [&](absl::string_view key, absl::string_view value) {
      bool open = false;
      auto meters = DecodeHistoryRow<M>(value, &open);
      failed.Update(meters.status());
      if (!failed.ok() || !open) return failed.ok();
      for (NamedMeter<M>& named : *meters) {
        named.meter.AddUp(time_ms);
        named.meter.rate.fill(0);
      }
      batch->Put(family, std::string(key), EncodeHistoryRow(false, *meters));
      return true;
    };
    failed.Update(view.Scan(family, PeriodKey(begin), PeriodKey(begin + width), visit));
  };
  close(HistoryFamily::kMinute, kMsPerMinute, UsageMeter());
  close(HistoryFamily::kHour, kMsPerHour, UsageMeter());
  close(HistoryFamily::kMinuteCapacity, kMsPerMinute, CapacityMeter());
  close(HistoryFamily::kHourCapacity, kMsPerHour, CapacityMeter());
  return failed;
}

// Of the first turn after that revision; now, if there is none.
absl::StatusOr<Time> HistoryKeeper::TimeAfter(uint64_t revision) const {
  if (store_->LastSequence() <= revision) return clock_->Now();
  const absl::StatusOr<std::vector<LogEntry>> next = store_->ReadLog(revision, 1);
  if (!next.ok()) return next.status();
  if (next->empty()) return clock_->Now();
  const absl::StatusOr<LoggedTurn> turn = DecodeTurn(next->front().turn);
  if (!turn.ok()) return turn.status();
  return turn->time;
}

absl::Status HistoryKeeper::BeginAgain(const std::string& why) {
  const store::v1::HistoryPosition old = position_;
  const bool known = old.format() == kHistoryFormat && old.cluster_id() == store_->ClusterId();
  HistoryBatch clear;
  for (const HistoryFamily family : kStateFamilies) clear.Clear(family);
  if (known) {  // a crash while this goes on begins again
    position_.set_begins_again(true);
    clear.Put(HistoryFamily::kMeta, std::string(kPositionKey), position_.SerializeAsString());
    if (absl::Status closed = CloseOpenRows(old.time_ms(), &clear); !closed.ok()) return closed;
  } else {
    clear.Delete(HistoryFamily::kMeta, std::string(kPositionKey));
    ForgetAfter(0, &clear);
  }
  if (absl::Status cleared = db_->Write(clear); !cleared.ok()) return cleared;
  UsageFold fold(FoldOptions());
  const absl::StatusOr<uint64_t> revision = LoadBase(fold);
  if (!revision.ok()) return revision.status();
  const absl::StatusOr<Time> begin = TimeAfter(*revision);
  if (!begin.ok()) return begin.status();
  fold.Begin(*begin);
  (void)fold.TakeChanges();
  const int64_t begin_ms = MsOf(*begin);
  position_.Clear();
  position_.set_format(kHistoryFormat);
  position_.set_cluster_id(store_->ClusterId());
  position_.set_incarnation(store_->Incarnation());
  position_.set_revision(*revision);
  position_.set_since_ms(begin_ms);
  position_.set_days_end_ms(PeriodOf(begin_ms, kMsPerDay));
  if (known) KeepKnown(old, begin_ms);
  HistoryBatch forget;
  ForgetAfter(begin_ms, &forget);
  if (absl::Status forgotten = db_->Write(forget); !forgotten.ok()) return forgotten;
  if (absl::Status written = WriteLoaded(fold); !written.ok()) return written;
  fold_.emplace(std::move(fold));
  fold_->TouchRows();
  if (known) ++counters_.begun_again;
  LogInfo(known ? "the usage history begins again with what the log still has"
                : "the usage history begins",
          {{"why", why}, {"revision", *revision}, {"time", absl::FormatTime(*begin)}});
  return Commit();
}

// What was known before `begin_ms` stays. Of the hour of the new beginning, and of the time since
// the old end, nothing is known.
void HistoryKeeper::KeepKnown(const store::v1::HistoryPosition& old, int64_t begin_ms) {
  const int64_t kept_until = std::min(old.time_ms(), PeriodOf(begin_ms, kMsPerHour));
  if (old.since_ms() >= kept_until) return;  // it knew nothing before
  position_.set_since_ms(old.since_ms());
  position_.set_minutes_from_ms(old.minutes_from_ms());
  position_.set_hours_from_ms(old.hours_from_ms());
  position_.set_days_end_ms(std::min(old.days_end_ms(), PeriodOf(begin_ms, kMsPerDay)));
  for (const store::v1::HistoryGap& gap : old.gaps()) {
    if (gap.from_ms() < kept_until) *position_.add_gaps() = gap;
  }
  if (kept_until >= begin_ms) return;
  store::v1::HistoryGap& gap = *position_.add_gaps();
  gap.set_from_ms(kept_until);
  gap.set_to_ms(begin_ms);
}

absl::StatusOr<uint64_t> HistoryKeeper::LoadBase(UsageFold& fold) {
  const absl::StatusOr<uint64_t> first = FirstLogged(*store_);
  if (!first.ok()) return first.status();
  if (*first == 1) return uint64_t{0};
  const absl::StatusOr<std::vector<uint64_t>> bases = store_->Bases();
  if (!bases.ok()) return bases.status();
  const auto base =
      std::find_if(bases->begin(), bases->end(), [&](uint64_t at) { return at + 1 >= *first; });
  if (base == bases->end()) {
    return absl::NotFoundError(
        absl::StrCat("the log begins with batch ", *first, ", and there is no base yet"));
  }
  HistoryBatch batch;
  size_t in_batch = 0;
  const auto keep = [&](HistoryFamily family, absl::string_view key,
                        std::optional<std::string> value) {
    if (value.has_value()) batch.Put(family, std::string(key), *std::move(value));
    if (!value.has_value()) batch.Delete(family, std::string(key));
    if (++in_batch < kRecordsAtOnce) return absl::OkStatus();
    in_batch = 0;
    return db_->Write(std::exchange(batch, {}));
  };
  absl::Status loaded =
      store_->LoadBase(*base, [&](RecordKind kind, absl::string_view key, absl::string_view value) {
        return LoadRecord(fold, kind, key, value, keep);
      });
  if (loaded.ok()) loaded = db_->Write(batch);
  if (!loaded.ok()) return loaded;
  return *base;
}

// Specifications are kept as they are; nodes, jobs and tasks are written as the fold has them.
absl::Status HistoryKeeper::LoadRecord(UsageFold& fold, RecordKind kind, absl::string_view key,
                                       absl::string_view value, KeepRecord keep) {
  switch (kind) {
    case RecordKind::kQueue: {
      const absl::StatusOr<StoredQueue> queue = DecodeQueueRecord(key, value, nullptr);
      if (!queue.ok()) return queue.status();
      absl::Status loaded = fold.LoadQueue(queue->id, queue->spec);
      return loaded.ok() ? keep(HistoryFamily::kQueue, key, std::string(value)) : loaded;
    }
    case RecordKind::kNode: {
      const absl::StatusOr<StoredNode> node = DecodeNodeRecord(key, value, nullptr);
      return node.ok() ? fold.LoadNode(node->id, node->spec, node->status) : node.status();
    }
    case RecordKind::kJobSpec: {
      const absl::StatusOr<StoredJob> job = DecodeJobSpecRecord(key, value);
      if (!job.ok()) return job.status();
      absl::Status loaded = fold.LoadJob(job->id, job->spec, job->submit);
      if (!loaded.ok()) return loaded;
      return keep(HistoryFamily::kJobSpec, key,
                  EncodeJobSpecRecord(ReducedSpec(job->spec), job->submit, 0, {}, {}, ""));
    }
    case RecordKind::kJobStatus: {
      const absl::StatusOr<StoredJobStatus> job = DecodeJobStatusRecord(key, value, nullptr);
      if (!job.ok()) return job.status();
      absl::Status loaded = fold.LoadJobStatus(job->id, job->status, job->labels);
      if (!loaded.ok()) return loaded;
      if (Ended(job->status.state)) return keep(HistoryFamily::kJobSpec, key, std::nullopt);
      return keep(HistoryFamily::kLabels, key, EncodeHistoryLabels(job->labels));
    }
    case RecordKind::kTask: {
      const absl::StatusOr<StoredTask> task = DecodeTaskRecord(key, value, nullptr);
      return task.ok() ? fold.LoadTask(task->key, task->task) : task.status();
    }
    case RecordKind::kMeta:
    case RecordKind::kHyperNode:
    case RecordKind::kRequest:
    case RecordKind::kLog:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status HistoryKeeper::WriteLoaded(const UsageFold& fold) {
  HistoryBatch batch;
  size_t in_batch = 0;
  absl::Status written;
  const auto put = [&](HistoryFamily family, std::string key, std::string value) {
    batch.Put(family, std::move(key), std::move(value));
    if (++in_batch < kRecordsAtOnce) return;
    in_batch = 0;
    written.Update(db_->Write(std::exchange(batch, {})));
  };
  fold.nodes().ForEach([&](NodeId id, const NodeUsage& node) {
    put(HistoryFamily::kNode, NodeKey(id), EncodeNodeRecord(node.spec, node.status, {}, {}, 0));
  });
  fold.jobs().ForEach([&](JobId id, const JobUsage& job) {
    put(HistoryFamily::kJob, JobKey(id), EncodeHistoryJob(fold.StoredOf(job)));
    if (job.places == nullptr) return;
    for (const auto& [index, placed] : job.places->tasks) {
      put(HistoryFamily::kTask, TaskRecordKey({id, index}), EncodeHistoryTask(placed));
    }
  });
  written.Update(db_->Write(batch));
  return written;
}

}  // namespace berth
