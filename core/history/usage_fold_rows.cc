// UsageFold: rows of periods.
#include <utility>

#include "core/history/usage_fold.h"

namespace berth {

UsageMeter& UsageFold::RowMeter(UsagePeriod& rows, UsageRowId id, ResourceKind kind) {
  if (rows.Find(id) == nullptr) keys_.Retain(id.first);
  return rows.Change(id, kind, now_ms_);
}

void UsageFold::Count(JobUsage& job, DeviceKey of, Measure measure, int64_t more) {
  const auto at = static_cast<size_t>(measure);
  const KeyId queue = queues_.At(job.queue).key;
  RowMeter(minutes_, {queue, kNoModel}, of.kind).rate[at] += more;
  RowMeter(hours_, {job.key, of.model}, of.kind).rate[at] += more;
  if (measure != Measure::kHeld && measure != Measure::kPaused) return;
  UsageMeter& meter = MeterOf(job.places->meters, of.kind, now_ms_);
  meter.AddUp(now_ms_);
  meter.rate[at] += more;
}

void UsageFold::AddLoss(JobUsage& job, DeviceKey of, Measure measure, AmountTime more) {
  const auto at = static_cast<size_t>(measure);
  const KeyId queue = queues_.At(job.queue).key;
  RowMeter(minutes_, {queue, kNoModel}, of.kind).sum[at] += more;
  RowMeter(hours_, {job.key, of.model}, of.kind).sum[at] += more;
  MeterOf(job.places->meters, of.kind, now_ms_).sum[at] += more;
}

void UsageFold::CountWaitingAmounts(JobUsage& job, const Resources& request, int64_t times) {
  for (size_t i = 0; i < interner_.kind_count(); ++i) {
    if (request.amount[i] == 0) continue;
    const DeviceKey of{ResourceKind{static_cast<uint8_t>(i)}, kNoModel};
    Count(job, of, Measure::kWaiting, request.amount[i] * times);
  }
}

template <class M>
std::vector<NamedMeter<M>> UsageFold::Named(const MeterRow<M>& row) const {
  std::vector<NamedMeter<M>> named;
  named.reserve(row.size());
  for (const ResourceMeter<M>& entry : row) {
    named.push_back({interner_.KindName(entry.kind), entry.meter});
    if (entry.meter.AnyRate() || entry.meter.AnySum()) continue;
    named.pop_back();
  }
  return named;
}
template std::vector<NamedMeter<UsageMeter>> UsageFold::Named(
    const MeterRow<UsageMeter>& row) const;

UsageRow UsageFold::RowOf(HistoryPeriod period, const UsagePeriod& rows, UsageRowId id,
                          const MeterRow<UsageMeter>& row) const {
  return {.period = period,
          .begin_ms = rows.begin_ms(),
          .key = keys_.At(id.first),
          .model = models_.At(id.second),
          .open = true,
          .meters = Named(row)};
}

CapacityRow UsageFold::RowOf(HistoryPeriod period, const CapacityPeriod& rows, ModelId id,
                             const MeterRow<CapacityMeter>& row) const {
  return {.period = period,
          .begin_ms = rows.begin_ms(),
          .model = models_.At(id),
          .open = true,
          .meters = Named(row)};
}

void UsageFold::CloseMinute(int64_t next_ms, bool yield) {
  const int64_t begin = minutes_.begin_ms();
  const auto drop = [this](const UsageRowId& id) { keys_.Release(id.first); };
  minutes_.Close(
      next_ms,
      [&](const UsageRowId& id, const auto& row) {
        if (yield) Yield(changes_.usage, RowOf(HistoryPeriod::kMinute, minutes_, id, row), begin);
      },
      drop);
  capacity_minutes_.Close(
      next_ms,
      [&](ModelId id, const auto& row) {
        if (!yield) return;
        Yield(changes_.capacity, RowOf(HistoryPeriod::kMinute, capacity_minutes_, id, row), begin);
      },
      [](ModelId) {});
}

void UsageFold::CloseHour() {
  const int64_t begin = hours_.begin_ms(), end = hours_.end_ms();
  const auto drop = [this](const UsageRowId& id) { keys_.Release(id.first); };
  hours_.Close(
      end,
      [&](const UsageRowId& id, const auto& row) {
        Yield(changes_.usage, RowOf(HistoryPeriod::kHour, hours_, id, row), begin);
      },
      drop);
  capacity_hours_.Close(
      end,
      [&](ModelId id, const auto& row) {
        Yield(changes_.capacity, RowOf(HistoryPeriod::kHour, capacity_hours_, id, row), begin);
      },
      [](ModelId) {});
}

template <class Row>
void UsageFold::Yield(std::vector<Row>& rows, Row row, int64_t begin_ms) {
  row.open = false;
  row.begin_ms = begin_ms;
  std::erase_if(row.meters, [](const auto& named) { return !named.meter.AnySum(); });
  for (auto& named : row.meters) named.meter.rate.fill(0);
  rows.push_back(std::move(row));
}

void UsageFold::TouchRows() {
  minutes_.TouchAll();
  hours_.TouchAll();
  capacity_minutes_.TouchAll();
  capacity_hours_.TouchAll();
}

size_t UsageFold::changes() const {
  return changes_.size() + minutes_.changed() + hours_.changed() + capacity_minutes_.changed() +
         capacity_hours_.changed();
}

HistoryChanges UsageFold::TakeChanges() {
  for (auto [period, rows] :
       {std::pair(HistoryPeriod::kMinute, &minutes_), std::pair(HistoryPeriod::kHour, &hours_)}) {
    for (const UsageRowId& id : rows->TakeChanged()) {
      changes_.usage.push_back(RowOf(period, *rows, id, *rows->Find(id)));
    }
  }
  for (auto [period, rows] : {std::pair(HistoryPeriod::kMinute, &capacity_minutes_),
                              std::pair(HistoryPeriod::kHour, &capacity_hours_)}) {
    for (const ModelId id : rows->TakeChanged()) {
      changes_.capacity.push_back(RowOf(period, *rows, id, *rows->Find(id)));
    }
  }
  return std::exchange(changes_, {});
}

}  // namespace berth
