// Series: jobs that make jobs.
#include "core/base/fields.h"
#include "storage/codec_common.h"

namespace berth::codec {
namespace {

static_assert(static_cast<int>(Overlap::kForbid) == pb::OVERLAP_FORBID);
static_assert(static_cast<int>(Overlap::kReplace) == pb::OVERLAP_REPLACE);
// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<SeriesSpec> == 8);
static_assert(kFields<SeriesStatus> == 10);
static_assert(kFields<IndexRange> == 3);
static_assert(kFields<MadeJob> == 2);
static_assert(kFields<MemberOf> == 2);

void SetRanges(const IndexRanges& ranges, google::protobuf::RepeatedPtrField<pb::IndexRange>* out) {
  for (const IndexRange& range : ranges) {
    pb::IndexRange* message = out->Add();
    message->set_first(range.from);
    message->set_last(range.to);
    message->set_step(range.step);
  }
}

IndexRanges GetRanges(const google::protobuf::RepeatedPtrField<pb::IndexRange>& messages,
                      Reader& reader) {
  IndexRanges ranges;
  for (const pb::IndexRange& message : messages) {
    const IndexRange range{.from = message.first(), .to = message.last(), .step = message.step()};
    if (range.step < 1 || range.from < 0 || range.to < 0 || range.to > kMaxIndex) {
      reader.Refuse("indexes that are out of range");
      return {};
    }
    ranges.push_back(range);
  }
  return ranges;
}

void SetMembers(const std::vector<MadeJob>& members,
                google::protobuf::RepeatedPtrField<pb::Member>* out) {
  for (const MadeJob& member : members) {
    pb::Member* message = out->Add();
    message->set_index(member.index);
    message->set_job(member.job.value);
  }
}

std::vector<MadeJob> GetMembers(const google::protobuf::RepeatedPtrField<pb::Member>& messages) {
  std::vector<MadeJob> members;
  members.reserve(static_cast<size_t>(messages.size()));
  for (const pb::Member& message : messages) {
    members.push_back({.index = message.index(), .job = JobId{message.job()}});
  }
  return members;
}

}  // namespace

void SetSeries(const SeriesSpec& spec, pb::SeriesSpec* out) {
  SetRanges(spec.indexes, out->mutable_indexes());
  out->set_parallelism(spec.parallelism);
  out->set_max_failed(spec.max_failed);
  out->set_cron(spec.cron);
  out->set_time_zone(spec.time_zone);
  out->set_overlap(static_cast<pb::Overlap>(spec.overlap));
  if (spec.latest != absl::InfiniteDuration()) SetDuration(spec.latest, out->mutable_latest());
  out->set_history(spec.history);
}

SeriesSpec GetSeries(const pb::SeriesSpec& m, Reader& reader) {
  SeriesSpec spec;
  spec.indexes = GetRanges(m.indexes(), reader);
  spec.parallelism = reader.Count(m.parallelism(), "parallelism");
  spec.max_failed = m.max_failed();
  spec.cron = m.cron();
  spec.time_zone = m.time_zone();
  spec.overlap = reader.Enum<Overlap>(m.overlap(), pb::Overlap_IsValid(m.overlap()), "overlap");
  spec.latest = reader.GetDuration(m.has_latest(), m.latest(), absl::InfiniteDuration(), "latest");
  spec.history = reader.Count(m.history(), "history");
  return spec;
}

void SetSeriesStatus(const SeriesStatus& status, pb::SeriesStatus* out) {
  out->set_next(status.next);
  if (status.last != absl::InfinitePast()) SetTime(status.last, out->mutable_last());
  if (status.due != absl::InfiniteFuture()) SetTime(status.due, out->mutable_due());
  SetMembers(status.live, out->mutable_live());
  SetMembers(status.ended, out->mutable_ended());
  out->set_succeeded(status.succeeded);
  out->set_failed(status.failed);
  out->set_cancelled(status.cancelled);
  out->set_skipped(status.skipped);
  SetRanges(status.failed_indexes, out->mutable_failed_indexes());
}

SeriesStatus GetSeriesStatus(const pb::SeriesStatus& m, Reader& reader) {
  SeriesStatus status;
  status.next = m.next();
  if (status.next < 0) reader.Refuse("next", status.next);
  status.last = reader.GetTime(m.has_last(), m.last(), absl::InfinitePast(), "last");
  status.due = reader.GetTime(m.has_due(), m.due(), absl::InfiniteFuture(), "due");
  status.live = GetMembers(m.live());
  status.ended = GetMembers(m.ended());
  status.succeeded = m.succeeded();
  status.failed = m.failed();
  status.cancelled = m.cancelled();
  status.skipped = m.skipped();
  status.failed_indexes = GetRanges(m.failed_indexes(), reader);
  return status;
}

}  // namespace berth::codec
