// HistoryKeeper: days, and what bounds the database.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/history/history_keeper.h"
#include "server/history/history_records.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kMostCuts = 16;  // of what is kept, in one Tidy
constexpr int64_t kLeastMinutesMs = kMsPerDay;

template <class M>
void AddMeters(const std::vector<NamedMeter<M>>& more, std::map<std::string, M>& sums) {
  for (const NamedMeter<M>& named : more) {
    M& sum = sums[named.resource];
    for (size_t i = 0; i < sum.sum.size(); ++i) sum.sum[i] += named.meter.sum[i];
  }
}

// The rows of the hours of a day, added up by whom they are of.
template <class M>
absl::Status AddUpHours(const HistoryDb::View& view, HistoryFamily hours, HistoryFamily days,
                        int64_t begin_ms, HistoryBatch* batch) {
  std::map<std::string, std::map<std::string, M>> sums;  // by the rest of the key, by resource
  absl::Status failed;
  const std::string day = PeriodKey(begin_ms);
  absl::Status scanned =
      view.Scan(hours, day, PeriodKey(begin_ms + kMsPerDay),
                [&](absl::string_view key, absl::string_view value) {
                  bool open = false;
                  const auto meters = DecodeHistoryRow<M>(value, &open);
                  failed.Update(meters.status());
                  if (meters.ok()) AddMeters(*meters, sums[std::string(key.substr(day.size()))]);
                  return failed.ok();
                });
  failed.Update(scanned);
  if (!failed.ok()) return failed;
  for (const auto& [of, resources] : sums) {
    std::vector<NamedMeter<M>> meters;
    for (const auto& [resource, meter] : resources) meters.push_back({resource, meter});
    batch->Put(days, day + of, EncodeHistoryRow(false, meters));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HistoryKeeper::Tidy() {
  if (!fold_.has_value()) return absl::OkStatus();
  absl::Status status = AddUpDays();
  const int64_t now_ms = position_.time_ms();
  if (status.ok()) {
    status = DropBefore(now_ms - absl::ToInt64Milliseconds(options_.minutes),
                        now_ms - absl::ToInt64Milliseconds(options_.hours));
  }
  if (status.ok()) status = KeepToSize();
  if (!status.ok()) Close(status);
  return status;
}

absl::Status HistoryKeeper::AddUpDays() {
  while (position_.days_end_ms() + kMsPerDay <= position_.time_ms()) {
    HistoryBatch batch;
    absl::Status added = AddUpDay(position_.days_end_ms(), &batch);
    if (!added.ok()) return added;
    position_.set_days_end_ms(position_.days_end_ms() + kMsPerDay);
    batch.Put(HistoryFamily::kMeta, std::string(kPositionKey), position_.SerializeAsString());
    if (absl::Status written = db_->Write(batch); !written.ok()) return written;
  }
  return absl::OkStatus();
}

absl::Status HistoryKeeper::AddUpDay(int64_t begin_ms, HistoryBatch* batch) const {
  const HistoryDb::View view(*db_);
  absl::Status added =
      AddUpHours<UsageMeter>(view, HistoryFamily::kHour, HistoryFamily::kDay, begin_ms, batch);
  if (!added.ok()) return added;
  return AddUpHours<CapacityMeter>(view, HistoryFamily::kHourCapacity, HistoryFamily::kDayCapacity,
                                   begin_ms, batch);
}

// Periods that begin before, whole.
absl::Status HistoryKeeper::DropBefore(int64_t minutes_ms, int64_t hours_ms) {
  minutes_ms = PeriodOf(minutes_ms, kMsPerMinute);
  hours_ms = PeriodOf(hours_ms, kMsPerDay);
  const bool any = minutes_ms > position_.minutes_from_ms() || hours_ms > position_.hours_from_ms();
  if (!any) return absl::OkStatus();
  HistoryBatch batch;
  if (minutes_ms > position_.minutes_from_ms()) {
    position_.set_minutes_from_ms(minutes_ms);
    for (const HistoryFamily family : {HistoryFamily::kMinute, HistoryFamily::kMinuteCapacity}) {
      batch.DeleteRange(family, "", PeriodKey(minutes_ms));
    }
  }
  if (hours_ms > position_.hours_from_ms()) {
    position_.set_hours_from_ms(hours_ms);
    for (const HistoryFamily family : {HistoryFamily::kHour, HistoryFamily::kHourCapacity,
                                       HistoryFamily::kDay, HistoryFamily::kDayCapacity}) {
      batch.DeleteRange(family, "", PeriodKey(hours_ms));
    }
    const HistoryDb::View view(*db_);
    const std::string end = EndedKey(hours_ms, JobId{});
    absl::Status scanned =
        view.Scan(HistoryFamily::kEnded, "", end, [&](absl::string_view key, absl::string_view) {
          batch.Delete(HistoryFamily::kEndedByUid, std::string(key.substr(8)));
          return true;
        });
    if (!scanned.ok()) return scanned;
    batch.DeleteRange(HistoryFamily::kEnded, "", end);
  }
  batch.Put(HistoryFamily::kMeta, std::string(kPositionKey), position_.SerializeAsString());
  return db_->Write(batch);
}

// The oldest minutes go first, but for those of the last day; then the oldest of the rest.
absl::Status HistoryKeeper::KeepToSize() {
  uint64_t bytes = db_->Bytes();
  for (int cut = 0; cut < kMostCuts && bytes > options_.max_bytes; ++cut) {
    const int64_t now_ms = position_.time_ms();
    const int64_t minutes = std::max(position_.minutes_from_ms(), position_.since_ms());
    const int64_t hours = std::max(position_.hours_from_ms(), position_.since_ms());
    const bool of_minutes = now_ms - minutes > kLeastMinutesMs;
    if (!of_minutes && now_ms - hours <= kMsPerDay) break;
    const int64_t less_minutes = of_minutes ? minutes + (now_ms - minutes) / 4 : minutes;
    const int64_t less_hours =
        of_minutes ? hours : hours + std::max(kMsPerDay, (now_ms - hours) / 8);
    LogWarn("the usage history is larger than usage.max_bytes; the oldest part is deleted",
            {{"bytes", bytes}, {"minutes", of_minutes ? "minutes" : "hours, days and jobs"}});
    absl::Status dropped = DropBefore(less_minutes, less_hours);
    for (const HistoryFamily family :
         {HistoryFamily::kMinute, HistoryFamily::kMinuteCapacity, HistoryFamily::kHour,
          HistoryFamily::kHourCapacity, HistoryFamily::kDay, HistoryFamily::kDayCapacity,
          HistoryFamily::kEnded, HistoryFamily::kEndedByUid}) {
      if (dropped.ok()) dropped = db_->Compact(family, "", std::string(32, '\xff'));
    }
    if (!dropped.ok()) return dropped;
    bytes = db_->Bytes();
  }
  counters_.bytes = bytes;
  return absl::OkStatus();
}

}  // namespace berth
