#include "server/history/history_periods.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "support/proto_time.h"

namespace berth::history_query {

absl::StatusOr<store::v1::HistoryPosition> ReadPosition(const HistoryDb::View& view) {
  const absl::StatusOr<std::string> stored = view.Get(HistoryFamily::kMeta, kPositionKey);
  store::v1::HistoryPosition position;
  if (!stored.ok() || !position.ParseFromString(*stored) || position.begins_again()) {
    return absl::FailedPreconditionError("no usage history: it begins again");
  }
  return position;
}

v1::HistoryStep StepOf(v1::HistoryStep step) {
  return step == v1::HISTORY_STEP_UNSPECIFIED ? v1::HISTORY_STEP_TOTAL : step;
}

Span PeriodAt(v1::HistoryStep step, int64_t ms, const Span& all) {
  const auto of = [&](int64_t width) {
    const int64_t begin = PeriodOf(ms, width);
    return Span{begin, begin + width};
  };
  switch (step) {
    case v1::HISTORY_STEP_MINUTE:
      return of(kMsPerMinute);
    case v1::HISTORY_STEP_HOUR:
      return of(kMsPerHour);
    case v1::HISTORY_STEP_DAY:
      return of(kMsPerDay);
    case v1::HISTORY_STEP_MONTH: {
      const absl::TimeZone utc = absl::UTCTimeZone();
      const absl::CivilMonth month = absl::ToCivilMonth(absl::FromUnixMillis(ms), utc);
      return {absl::ToUnixMillis(absl::FromCivil(month, utc)),
              absl::ToUnixMillis(absl::FromCivil(month + 1, utc))};
    }
    default:
      return all;
  }
}

void SetState(const store::v1::HistoryPosition& position, v1::HistoryStep step, const Span& span,
              v1::HistoryState* state) {
  const int64_t kept =
      step == v1::HISTORY_STEP_MINUTE ? position.minutes_from_ms() : position.hours_from_ms();
  ToProto(absl::FromUnixMillis(std::max(position.since_ms(), kept)), state->mutable_since());
  ToProto(absl::FromUnixMillis(position.time_ms()), state->mutable_as_of());
  state->set_revision(position.revision());
  for (const store::v1::HistoryGap& gap : position.gaps()) {
    if (gap.to_ms() <= std::max(span.begin, kept) || gap.from_ms() >= span.end) continue;
    v1::HistoryGap& out = *state->add_gaps();
    ToProto(absl::FromUnixMillis(gap.from_ms()), out.mutable_from());
    ToProto(absl::FromUnixMillis(gap.to_ms()), out.mutable_to());
  }
}

absl::Status RowReader::Read(v1::HistoryStep step, const Span& period, Visit visit) {
  if (step == v1::HISTORY_STEP_MINUTE) return ReadFrom(families_.minute, period, visit);
  if (step == v1::HISTORY_STEP_HOUR) return ReadFrom(families_.hour, period, visit);
  const int64_t first_day = PeriodOf(period.begin + kMsPerDay - 1, kMsPerDay);
  const int64_t last_day = std::min(PeriodOf(period.end, kMsPerDay), position_.days_end_ms());
  if (first_day >= last_day) return ReadFrom(families_.hour, period, visit);
  absl::Status read = ReadFrom(families_.hour, {period.begin, first_day}, visit);
  if (read.ok()) read = ReadFrom(families_.day, {first_day, last_day}, visit);
  if (read.ok()) read = ReadFrom(families_.hour, {last_day, period.end}, visit);
  return read;
}

absl::Status RowReader::ReadFrom(HistoryFamily family, const Span& span, Visit visit) {
  if (span.empty()) return absl::OkStatus();
  absl::Status failed;
  absl::Status scanned = view_.Scan(family, PeriodKey(span.begin), PeriodKey(span.end),
                                    [&](absl::string_view key, absl::string_view value) {
                                      if (++rows_ > kMaxHistoryRows) {
                                        failed = absl::ResourceExhaustedError(absl::StrCat(
                                            "the answer needs more than ", kMaxHistoryRows,
                                            " stored rows; ask for a shorter time"));
                                      }
                                      if (failed.ok()) failed = visit(key, value);
                                      return failed.ok();
                                    });
  return failed.ok() ? scanned : failed;
}

absl::Status ReadPeriods(const PageOfPeriods& page, const RowReader& reader, HistoryPage& out,
                         absl::FunctionRef<absl::StatusOr<bool>(const Span& period)> read) {
  size_t periods = 0;
  for (Span period = PeriodAt(page.step, page.from_ms, page.all); period.begin < page.all.end;
       period = PeriodAt(page.step, period.end, {page.all.end, page.all.end})) {
    const bool enough = periods++ == kMaxHistoryPeriods || reader.rows() > kMaxHistoryRows / 2;
    if (periods > 1 && enough) {  // the next page goes on with this period
      out.after = PeriodKey(period.begin);
      return absl::OkStatus();
    }
    const absl::StatusOr<bool> whole = read(period);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
  }
  out.after.clear();
  return absl::OkStatus();
}

}  // namespace berth::history_query
