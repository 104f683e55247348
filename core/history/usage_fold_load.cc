// UsageFold: loading.
#include <algorithm>
#include <utility>

#include "core/history/usage_fold.h"
#include "core/history/usage_fold_internal.h"
#include "core/model/transitions.h"

namespace berth {

using history_internal::Unfit;

absl::Status UsageFold::LoadJob(JobId id, const JobSpec& spec, Time submit) {
  return AddJob(id, spec, submit);
}

absl::Status UsageFold::LoadJobStatus(JobId id, const JobStatus& status,
                                      const std::map<std::string, std::string>& labels) {
  JobUsage* job = jobs_.Find(id);
  if (job == nullptr) return Unfit("no job ", id.value);
  if (Ended(status.state)) {
    ended_.insert(id);
    ForgetJob(id, *job);
    return absl::OkStatus();
  }
  SetAccount(*job, labels);
  SetState(*job, status.state);
  job->forced = status.forced;
  job->life.starts = status.starts;
  job->life.evictions = status.evictions;
  job->life.first_start = status.start;
  if (status.checkpoint.time != absl::InfinitePast()) checkpoints_[id] = status.checkpoint.time;
  return absl::OkStatus();
}

absl::Status UsageFold::LoadTask(TaskKey key, const Task& task) {
  if (ended_.contains(key.job) || task.state == TaskState::kPending) return absl::OkStatus();
  JobUsage* job = jobs_.Find(key.job);
  if (job == nullptr) return Unfit("no job ", key.job.value);
  if (Ended(task.state)) {
    CountPending(*job, GroupOf(job->shared->groups, key.task), -1);
    return absl::OkStatus();
  }
  PlacedTask placed{.task = task};
  Time from = std::max({task.start == absl::InfinitePast() ? task.since : task.start, task.saved});
  const auto of_gang = checkpoints_.find(key.job);
  const Group& group = job->shared->groups[GroupOf(job->shared->groups, key.task)];
  if (of_gang != checkpoints_.end() && task.start != absl::InfinitePast() &&
      MembershipOf(group) != GangMembership::kIndependent && of_gang->second >= task.start) {
    from = std::max(from, of_gang->second);
  }
  placed.work_from_ms = MsOf(from);
  if (Releasing(task)) placed.stopped_by = history_internal::LossBy(task.released, Loss::kNone);
  return PlaceLoaded(key, placed, /*was_pending=*/true);
}

absl::Status UsageFold::LoadPlacedTask(TaskKey key, const PlacedTask& placed) {
  return PlaceLoaded(key, placed, /*was_pending=*/false);
}

absl::Status UsageFold::PlaceLoaded(TaskKey key, const PlacedTask& placed, bool was_pending) {
  JobUsage* job = jobs_.Find(key.job);
  if (job == nullptr) return Unfit("no job ", key.job.value);
  if (absl::Status set = SetTask(key, placed.task); !set.ok()) return set;
  PlacedTask* loaded = MutableTask(key);
  if (loaded == nullptr) return Unfit("a task of job ", key.job.value, " has no place");
  *loaded = placed;
  // SetTask takes it from the pending ones.
  if (!was_pending) CountPending(*job, GroupOf(job->shared->groups, key.task), 1);
  return absl::OkStatus();
}

absl::Status UsageFold::LoadJobUsage(JobId id, const StoredJobUsage& stored,
                                     const std::map<std::string, std::string>* labels) {
  JobUsage* job = jobs_.Find(id);
  if (job == nullptr) return Unfit("no job ", id.value);
  if (stored.pending.size() != job->pending.size()) return Unfit("groups of job ", id.value);
  for (size_t group = 0; group < stored.pending.size(); ++group) {
    CountPending(*job, group, stored.pending[group] - job->pending[group]);
  }
  if (labels != nullptr) SetAccount(*job, *labels);
  SetState(*job, stored.state);
  job->forced = stored.forced;
  job->broken_by = stored.broken_by;
  job->life = stored.life;
  if (stored.meters.empty()) return absl::OkStatus();
  if (job->places == nullptr) job->places = std::make_unique<JobPlaces>();
  for (const NamedMeter<UsageMeter>& named : stored.meters) {
    if (absl::Status room = interner_.CanAddKinds({named.resource}); !room.ok()) return room;
    UsageMeter& meter = MeterOf(job->places->meters, interner_.AddKind(named.resource), 0);
    meter.sum = named.meter.sum;
    meter.since_ms = named.meter.since_ms;
  }
  return absl::OkStatus();
}

UsageFold::StoredJobUsage UsageFold::StoredOf(const JobUsage& job) const {
  StoredJobUsage stored{.state = job.state,
                        .forced = job.forced,
                        .broken_by = job.broken_by,
                        .life = job.life,
                        .pending = {job.pending.begin(), job.pending.end()},
                        .meters = {}};
  if (job.places != nullptr) stored.meters = Named(job.places->meters);
  return stored;
}

// Meters of jobs of the store begin now; those of this state's own jobs have begun.
void UsageFold::BeginJobs() {
  for (auto id = jobs_.NextFrom(JobId{}); id.has_value(); id = jobs_.NextFrom({id->value + 1})) {
    JobUsage& job = jobs_.At(*id);
    if (job.places == nullptr) continue;
    for (ResourceMeter<UsageMeter>& entry : job.places->meters) {
      if (entry.meter.since_ms == 0) entry.meter.since_ms = now_ms_;
    }
    for (auto& [index, placed] : job.places->tasks) {
      if (placed.frozen_since_ms == 0) placed.frozen_since_ms = now_ms_;
    }
  }
}

template <class M>
absl::Status UsageFold::LoadMeters(const std::vector<NamedMeter<M>>& stored, MeterRow<M>& row) {
  for (const NamedMeter<M>& named : stored) {
    if (absl::Status room = interner_.CanAddKinds({named.resource}); !room.ok()) return room;
    M& meter = MeterOf(row, interner_.AddKind(named.resource), now_ms_);
    if (meter.rate != named.meter.rate)
      return Unfit("a row of ", named.resource, " has other rates");
    meter = named.meter;
  }
  return absl::OkStatus();
}

absl::Status UsageFold::LoadRow(const UsageRow& stored) {
  UsagePeriod& rows = stored.period == HistoryPeriod::kMinute ? minutes_ : hours_;
  if (stored.begin_ms != rows.begin_ms()) return Unfit("an open row of another period");
  const UsageRowId id{keys_.AcquireExactly(stored.key), models_.Add(stored.model)};
  ++loaded_rows_;
  MeterRow<UsageMeter>* row = rows.Find(id);
  if (row != nullptr) keys_.Release(id.first);  // it has its own use of the key
  if (row == nullptr) {
    if (stored.meters.empty()) return Unfit("a row without figures");
    rows.Insert(id);
    row = rows.Find(id);
  }
  return LoadMeters(stored.meters, *row);
}

absl::Status UsageFold::LoadRow(const CapacityRow& stored) {
  CapacityPeriod& rows =
      stored.period == HistoryPeriod::kMinute ? capacity_minutes_ : capacity_hours_;
  if (stored.begin_ms != rows.begin_ms()) return Unfit("an open row of another period");
  const ModelId id = models_.Add(stored.model);
  ++loaded_rows_;
  rows.Insert(id);
  return LoadMeters(stored.meters, *rows.Find(id));
}

absl::Status UsageFold::FinishRows() {
  const size_t rows = minutes_.rows().size() + hours_.rows().size() +
                      capacity_minutes_.rows().size() + capacity_hours_.rows().size();
  if (rows != loaded_rows_) return Unfit("has ", loaded_rows_, " open rows, needs ", rows);
  (void)TakeChanges();
  return absl::OkStatus();
}

}  // namespace berth
