// Internal to queries: periods, and the stored rows of a period.
#ifndef BERTH_SERVER_HISTORY_HISTORY_PERIODS_H_
#define BERTH_SERVER_HISTORY_HISTORY_PERIODS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/store/v1/history.pb.h"
#include "berth/v1/history.pb.h"
#include "server/history/history_db.h"
#include "server/history/history_query.h"
#include "server/history/history_records.h"

namespace berth::history_query {

absl::StatusOr<store::v1::HistoryPosition> ReadPosition(const HistoryDb::View& view);

// From `begin` to before `end`, in milliseconds.
struct Span {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

// The step, with TOTAL for none.
v1::HistoryStep StepOf(v1::HistoryStep step);
// The period of that step that contains the time; of TOTAL `all`.
Span PeriodAt(v1::HistoryStep step, int64_t ms, const Span& all);
// What is asked for, in whole periods, as far as it may be known.
template <class Request>
Span AskedSpan(const Request& request, const store::v1::HistoryPosition& position);

// Fills in what is known of the span.
void SetState(const store::v1::HistoryPosition& position, v1::HistoryStep step, const Span& span,
              v1::HistoryState* state);

// The families of one kind of row.
struct RowFamilies {
  HistoryFamily minute, hour, day;
};
inline constexpr RowFamilies kUsageRows{HistoryFamily::kMinute, HistoryFamily::kHour,
                                        HistoryFamily::kDay};
inline constexpr RowFamilies kCapacityRows{
    HistoryFamily::kMinuteCapacity, HistoryFamily::kHourCapacity, HistoryFamily::kDayCapacity};

// Reads rows of periods, with a bound on how many.
class RowReader {
 public:
  RowReader(const HistoryDb::View& view, const store::v1::HistoryPosition& position,
            RowFamilies families)
      : view_(view), position_(position), families_(families) {}

  // Calls visit(key, value) for the rows of one period of that step, from whole days where there
  // are any. RESOURCE_EXHAUSTED: more than kMaxHistoryRows.
  using Visit = absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;
  absl::Status Read(v1::HistoryStep step, const Span& period, Visit visit);
  size_t rows() const { return rows_; }

 private:
  absl::Status ReadFrom(HistoryFamily family, const Span& span, Visit visit);

  const HistoryDb::View& view_;
  const store::v1::HistoryPosition& position_;
  const RowFamilies families_;
  size_t rows_ = 0;
};

// The meters of a stored row, added up until the time of the position.
template <class M>
absl::StatusOr<std::vector<NamedMeter<M>>> MetersOf(absl::string_view value,
                                                    const store::v1::HistoryPosition& position) {
  bool open = false;
  auto meters = DecodeHistoryRow<M>(value, &open);
  if (!meters.ok() || !open) return meters;
  for (NamedMeter<M>& named : *meters) named.meter.AddUp(position.time_ms());
  return meters;
}

// Pages of rows by period: calls read(period) for periods one after the other, which adds its rows
// to the page and returns whether there was room for all of them.
struct PageOfPeriods {
  v1::HistoryStep step;
  Span all;
  int64_t from_ms;  // the period to begin with
};
absl::Status ReadPeriods(const PageOfPeriods& page, const RowReader& reader, HistoryPage& out,
                         absl::FunctionRef<absl::StatusOr<bool>(const Span& period)> read);

template <class Request>
Span AskedSpan(const Request& request, const store::v1::HistoryPosition& position) {
  const v1::HistoryStep step = StepOf(request.step());
  const bool total = step == v1::HISTORY_STEP_TOTAL;
  const v1::HistoryStep unit = total ? v1::HISTORY_STEP_HOUR : step;
  const auto ms = [](const google::protobuf::Timestamp& time) {
    return std::max<int64_t>(0, time.seconds() * 1000 + time.nanos() / 1'000'000);
  };
  const int64_t known =
      std::max(position.since_ms(), step == v1::HISTORY_STEP_MINUTE ? position.minutes_from_ms()
                                                                    : position.hours_from_ms());
  const int64_t from = request.has_from() ? ms(request.from()) : known;
  const int64_t now = position.time_ms();
  const int64_t to = request.has_to() ? ms(request.to()) : now + 1;
  Span span{PeriodAt(unit, from, {}).begin, PeriodAt(unit, to, {}).begin};
  if (span.end < to) span.end = PeriodAt(unit, to, {}).end;
  if (total) return span;
  // Periods of which nothing is known have no rows.
  span.begin = std::max(span.begin, PeriodAt(unit, known, {}).begin);
  span.end = std::min(span.end, PeriodAt(unit, now, {}).end);
  return span;
}

}  // namespace berth::history_query

#endif  // BERTH_SERVER_HISTORY_HISTORY_PERIODS_H_
