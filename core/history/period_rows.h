// PeriodRows: meters of one period (a minute, an hour), in rows. A row has a meter for each
// resource that it uses.
#ifndef BERTH_CORE_HISTORY_PERIOD_ROWS_H_
#define BERTH_CORE_HISTORY_PERIOD_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "core/history/meter.h"

namespace berth {

template <class M>
struct ResourceMeter {
  ResourceKind kind;
  M meter;
};
// In order of first use.
template <class M>
using MeterRow = absl::InlinedVector<ResourceMeter<M>, 2>;

template <class M>
M& MeterOf(MeterRow<M>& row, ResourceKind kind, int64_t now_ms) {
  for (ResourceMeter<M>& entry : row) {
    if (entry.kind == kind) return entry.meter;
  }
  row.push_back({kind, M{}});
  row.back().meter.since_ms = now_ms;
  return row.back().meter;
}

template <class RowId, class M>
class PeriodRows {
 public:
  using Row = MeterRow<M>;

  explicit PeriodRows(int64_t width_ms) : width_ms_(width_ms) {}

  int64_t width_ms() const { return width_ms_; }
  int64_t begin_ms() const { return begin_ms_; }
  int64_t end_ms() const { return begin_ms_ + width_ms_; }
  // Starts the period that contains `now_ms`, before the first change.
  void Begin(int64_t now_ms) { begin_ms_ = PeriodOf(now_ms, width_ms_); }

  // Forgets what was before, and rows without a rate: dropped(id).
  template <class Dropped>
  void Restart(int64_t now_ms, Dropped&& dropped) {
    for (auto at = rows_.begin(); at != rows_.end();) Trim(at, now_ms, dropped);
    changed_.clear();
    TouchAll();
  }
  void TouchAll() {
    for (const auto& [id, row] : rows_) changed_.insert(id);
  }

  // The meter, added up until now; for a change. Valid until the next call.
  M& Change(const RowId& id, ResourceKind kind, int64_t now_ms) {
    changed_.insert(id);
    M& meter = MeterOf(rows_[id], kind, now_ms);
    meter.AddUp(now_ms);
    return meter;
  }

  // Ends the period, and begins the one that contains `next_ms` >= its end. Calls closed(id, row)
  // for each row that has a figure or has changed, and dropped(id) for each row without a rate,
  // which is then gone.
  template <class Closed, class Dropped>
  void Close(int64_t next_ms, Closed&& closed, Dropped&& dropped) {
    const int64_t end = end_ms();
    Begin(next_ms);
    const absl::flat_hash_set<RowId> changed = std::exchange(changed_, {});
    for (auto at = rows_.begin(); at != rows_.end();) {
      Row& row = at->second;
      for (ResourceMeter<M>& entry : row) entry.meter.AddUp(end);
      const bool any = std::any_of(row.begin(), row.end(), [](const ResourceMeter<M>& entry) {
        return entry.meter.AnySum();
      });
      if (any || changed.contains(at->first)) closed(at->first, std::as_const(row));
      Trim(at, begin_ms_, dropped);
    }
    TouchAll();
  }

  // An empty row, if there is none.
  void Insert(const RowId& id) { rows_.try_emplace(id); }
  const Row* Find(const RowId& id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
  }
  Row* Find(const RowId& id) { return const_cast<Row*>(std::as_const(*this).Find(id)); }
  const absl::flat_hash_map<RowId, Row>& rows() const { return rows_; }
  // Rows of the open period that changed since the last call, or since it began; in any order.
  std::vector<RowId> TakeChanged() {
    std::vector<RowId> ids(changed_.begin(), changed_.end());
    changed_.clear();
    return ids;
  }
  size_t changed() const { return changed_.size(); }

 private:
  // Sets the sums of the row to 0, and drops what has no rate. Moves on to the next row.
  template <class Dropped>
  void Trim(typename absl::flat_hash_map<RowId, Row>::iterator& at, int64_t now_ms,
            Dropped&& dropped) {
    Row& row = at->second;
    for (ResourceMeter<M>& entry : row) entry.meter.Clear(now_ms);
    const auto idle = [](const ResourceMeter<M>& entry) { return !entry.meter.AnyRate(); };
    row.erase(std::remove_if(row.begin(), row.end(), idle), row.end());
    const auto next = std::next(at);
    if (row.empty()) {
      const RowId id = at->first;
      rows_.erase(at);
      dropped(id);
    }
    at = next;
  }

  const int64_t width_ms_;
  int64_t begin_ms_ = 0;
  absl::flat_hash_map<RowId, Row> rows_;
  absl::flat_hash_set<RowId> changed_;
};

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_PERIOD_ROWS_H_
