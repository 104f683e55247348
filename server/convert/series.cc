#include "server/convert/series.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "server/convert/job.h"
#include "server/convert/values.h"

namespace berth {
namespace {

constexpr size_t kMostIndexText = 4096;
constexpr int kMostNames = 64;

static_assert(static_cast<int>(Overlap::kAllow) + 1 == v1::Schedule::ALLOW);
static_assert(static_cast<int>(Overlap::kForbid) + 1 == v1::Schedule::FORBID);
static_assert(static_cast<int>(Overlap::kReplace) + 1 == v1::Schedule::REPLACE);

// Named by the convention of series, because a member may be gone.
void AddNames(const Job& job, const std::vector<MadeJob>& members,
              google::protobuf::RepeatedPtrField<std::string>* out) {
  for (const MadeJob& member : members) {
    if (out->size() == kMostNames) return;
    *out->Add() = MemberName(job.name, *job.series, member.index);
  }
}

std::string UnfinishedIndexes(const SeriesStatus& status) {
  std::vector<int64_t> indexes;
  for (const MadeJob& member : status.live) indexes.push_back(member.index);
  std::sort(indexes.begin(), indexes.end());
  IndexRanges ranges;
  for (int64_t index : indexes) {
    if (!ranges.empty() && ranges.back().to + 1 == index) {
      ranges.back().to = index;
    } else {
      ranges.push_back({.from = index, .to = index});
    }
  }
  return TextOf(ranges, kMostIndexText);
}

void AddArray(const v1::Array& array, const JobDefaults& defaults, SeriesSpec& series) {
  if (array.indexes().empty()) {
    series.indexes = {{.from = 0, .to = array.size() - 1}};
  } else {
    std::string error;
    series.indexes = ParseIndexRanges(array.indexes(), kMaxIndex, &error).value();
  }
  series.parallelism = array.parallelism() > 0 ? array.parallelism() : defaults.array_parallelism;
  if (array.has_max_failed()) series.max_failed = array.max_failed();
}

void AddSchedule(const v1::Schedule& schedule, SeriesSpec& series) {
  series.cron = schedule.cron();
  series.time_zone = schedule.time_zone();
  if (schedule.overlap() != v1::Schedule::OVERLAP_UNSPECIFIED) {
    series.overlap = static_cast<Overlap>(schedule.overlap() - 1);
  }
  if (schedule.has_start_deadline()) series.latest = DurationFrom(schedule.start_deadline());
  if (schedule.has_history()) series.history = schedule.history();
}

void RenderArray(const SeriesSpec& series, v1::Array* array) {
  const IndexRange& first = series.indexes.front();
  const bool by_size = series.indexes.size() == 1 && first.from == 0 && first.step == 1;
  if (by_size) {
    array->set_size(static_cast<int32_t>(first.to + 1));
  } else {
    array->set_indexes(TextOf(series.indexes, SIZE_MAX));
  }
  array->set_parallelism(series.parallelism);
  if (series.max_failed >= 0) array->set_max_failed(series.max_failed);
}

void RenderSchedule(const SeriesSpec& series, v1::Schedule* schedule) {
  schedule->set_cron(series.cron);
  schedule->set_time_zone(series.time_zone);
  schedule->set_overlap(static_cast<v1::Schedule::Overlap>(static_cast<int>(series.overlap) + 1));
  if (series.latest != absl::InfiniteDuration()) {
    ToProto(series.latest, schedule->mutable_start_deadline());
  }
  schedule->set_history(series.history);
}

}  // namespace

SeriesSpec SeriesFrom(const v1::JobSpec& spec, const JobDefaults& defaults) {
  SeriesSpec series;
  if (spec.has_array()) AddArray(spec.array(), defaults, series);
  if (spec.has_schedule()) AddSchedule(spec.schedule(), series);
  return series;
}

void RenderSeries(const SeriesSpec& series, v1::JobSpec* out) {
  if (series.HasIndexes()) RenderArray(series, out->mutable_array());
  if (series.IsSchedule()) RenderSchedule(series, out->mutable_schedule());
}

void RenderSeriesStatus(const ClusterState& state, const Job& job, v1::JobStatus* out) {
  if (job.member) {
    v1::SeriesMember* member = out->mutable_member_of();
    const Job* series = state.SeriesOf(job);
    if (series != nullptr) {
      member->set_series(series->name);
      if (series->series->IsSchedule()) {
        ToProto(absl::FromUnixSeconds(job.member->index), member->mutable_time());
      } else {
        member->set_index(job.member->index);
      }
    }
  }
  if (!job.series || !job.status.series) return;
  const SeriesStatus& status = *job.status.series;
  v1::SeriesStatus* series = out->mutable_series();
  const auto unfinished = static_cast<int64_t>(status.live.size());
  if (!job.series->IsSchedule()) series->set_size(CountOf(job.series->indexes));
  series->set_made(unfinished + status.succeeded + status.failed + status.cancelled);
  series->set_unfinished(unfinished);
  series->set_succeeded(status.succeeded);
  series->set_failed(status.failed);
  series->set_cancelled(status.cancelled);
  series->set_skipped(status.skipped);
  if (!job.series->IsSchedule()) {
    series->set_failed_indexes(TextOf(status.failed_indexes, kMostIndexText));
    series->set_unfinished_indexes(UnfinishedIndexes(status));
    return;
  }
  AddNames(job, status.live, series->mutable_unfinished_jobs());
  AddNames(job, status.ended, series->mutable_ended_jobs());
  if (status.last != absl::InfinitePast()) ToProto(status.last, series->mutable_last_time());
  if (status.due != absl::InfiniteFuture()) ToProto(status.due, series->mutable_next_time());
}

}  // namespace berth
