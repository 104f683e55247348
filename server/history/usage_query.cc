// GetUsage and GetCapacity.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/convert/queue.h"
#include "server/history/ended_job.h"
#include "server/history/history_periods.h"
#include "server/history/history_query.h"
#include "server/history/resource_time.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using history_query::MetersOf;
using history_query::PeriodAt;
using history_query::Span;
using history_query::StepOf;
using v1::GetUsageRequest;

template <class M>
using SumsByResource = std::map<std::string, M>;

template <class M>
void AddSums(const std::vector<NamedMeter<M>>& more, SumsByResource<M>& sums) {
  for (const NamedMeter<M>& named : more) {
    M& sum = sums[named.resource];
    for (size_t i = 0; i < sum.sum.size(); ++i) sum.sum[i] += named.meter.sum[i];
  }
}

absl::Status TooManyGroups() {
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer has more than ", kMaxHistoryGroups,
                   " rows of one period; ask by less, or for fewer queues"));
}

void SetPeriod(const Span& period, google::protobuf::Timestamp* from,
               google::protobuf::Timestamp* to) {
  ToProto(absl::FromUnixMillis(period.begin), from);
  ToProto(absl::FromUnixMillis(period.end), to);
}

std::string FirstParts(const std::string& path, int32_t depth) {
  size_t at = 0;
  for (int32_t part = 0; part < depth; ++part) {
    at = path.find('/', at == 0 ? 0 : at + 1);
    if (at == std::string::npos) return path;
  }
  return path.substr(0, at);
}

// What is asked for, row by row.
class UsageGroups {
 public:
  UsageGroups(const GetUsageRequest& request, QueueSights& sights)
      : request_(request), sights_(sights) {
    for (const int by : request.by()) by_[static_cast<size_t>(by)] = true;
  }

  // The key of the row's group; false: the row is not asked for, or not shown.
  bool GroupOfRow(ParsedRowKey& row) const {
    if (!request_.queue().empty() && !IsInQueue(row.key.queue, request_.queue())) return false;
    const QueueSight sight = sights_.Of(row.key.queue);
    if (sight == QueueSight::kNothing) return false;
    const bool hidden = sight == QueueSight::kSums && !sights_.IsOwn(row.key.user);
    const bool filtered = !request_.user().empty() || !request_.account().empty();
    if (hidden && filtered) return false;
    if (!request_.user().empty() && row.key.user != request_.user()) return false;
    if (!request_.account().empty() && row.key.account != request_.account()) return false;
    if (hidden) row.key.user = row.key.account = kOthers;
    if (!By(GetUsageRequest::QUEUE)) row.key.queue.clear();
    if (request_.queue_depth() > 0) {
      row.key.queue = FirstParts(row.key.queue, request_.queue_depth());
    }
    if (!By(GetUsageRequest::USER)) row.key.user.clear();
    if (!By(GetUsageRequest::ACCOUNT)) row.key.account.clear();
    if (!By(GetUsageRequest::PRIORITY_CLASS)) row.key.priority_class.clear();
    if (!By(GetUsageRequest::DEVICE_MODEL)) row.model.clear();
    return true;
  }

  void Render(const ParsedRowKey& row, const SumsByResource<UsageMeter>& sums,
              v1::UsageRow* out) const {
    if (By(GetUsageRequest::QUEUE)) {
      out->set_queue(QueueNameIn(row.key.queue));
      out->set_queue_path(row.key.queue);
    }
    out->set_user(row.key.user);
    out->set_account(row.key.account);
    out->set_priority_class(row.key.priority_class);
    out->set_device_model(row.model);
    for (const auto& [resource, meter] : sums) {
      const auto set = [&, &name = resource, &sum = meter.sum](Measure of, v1::ResourceTime* time) {
        SetResourceTime(name, sum[static_cast<size_t>(of)], time);
      };
      set(Measure::kHeld, out->mutable_held());
      set(Measure::kPaused, out->mutable_paused());
      set(Measure::kReserved, out->mutable_reserved());
      set(Measure::kWaiting, out->mutable_waiting());
      set(Measure::kPreempted, out->mutable_lost_to_preemption());
      set(Measure::kFaulted, out->mutable_lost_to_faults());
    }
  }

 private:
  bool By(GetUsageRequest::Dimension by) const { return by_[static_cast<size_t>(by)]; }

  const GetUsageRequest& request_;
  QueueSights& sights_;
  std::array<bool, GetUsageRequest::Dimension_ARRAYSIZE> by_{};
};

using CapacityTimes = std::array<v1::ResourceTime* (v1::CapacityRow::*)(), kCapacityParts>;
constexpr CapacityTimes kCapacityTimes = {
    &v1::CapacityRow::mutable_total,    &v1::CapacityRow::mutable_overcommitted,
    &v1::CapacityRow::mutable_held,     &v1::CapacityRow::mutable_reserved,
    &v1::CapacityRow::mutable_free,     &v1::CapacityRow::mutable_fragmented,
    &v1::CapacityRow::mutable_cordoned, &v1::CapacityRow::mutable_down,
    &v1::CapacityRow::mutable_unhealthy};

int64_t FirstPeriod(const std::string& after, const Span& all) {
  if (after.empty()) return all.begin;
  const absl::StatusOr<ParsedRowKey> row = ParseUsageRowKey(after + std::string(5, '\0'));
  return row.ok() ? std::max(row->begin_ms, all.begin) : all.begin;
}

}  // namespace

bool IsInQueue(const std::string& path, const std::string& queue) {
  if (queue == kRootQueueName) return true;
  return absl::StrContains(absl::StrCat("/", path, "/"), absl::StrCat("/", queue, "/"));
}

absl::Status AnswerUsage(const HistoryDb& database, const GetUsageRequest& request,
                         QueueSights& sights, HistoryPage& page, v1::GetUsageResponse& response) {
  const HistoryDb::View view(database);
  const auto position = history_query::ReadPosition(view);
  if (!position.ok()) return position.status();
  const v1::HistoryStep step = StepOf(request.step());
  const Span all = history_query::AskedSpan(request, *position);
  history_query::SetState(*position, step, all, response.mutable_state());
  const UsageGroups groups(request, sights);
  history_query::RowReader reader(view, *position, history_query::kUsageRows);
  const auto read = [&](const Span& period) -> absl::StatusOr<bool> {
    std::map<std::string, SumsByResource<UsageMeter>> sums;
    absl::Status added = reader.Read(
        step, period, [&](absl::string_view key, absl::string_view value) -> absl::Status {
          absl::StatusOr<ParsedRowKey> row = ParseUsageRowKey(key);
          if (!row.ok()) return row.status();
          if (!groups.GroupOfRow(*row)) return absl::OkStatus();
          const auto meters = MetersOf<UsageMeter>(value, *position);
          if (!meters.ok()) return meters.status();
          AddSums(*meters, sums[UsageRowKey(period.begin, row->key, row->model)]);
          return sums.size() > kMaxHistoryGroups ? TooManyGroups() : absl::OkStatus();
        });
    if (!added.ok()) return added;
    for (auto group = sums.upper_bound(page.after); group != sums.end(); ++group) {
      if (response.rows_size() == page.size) return false;
      const absl::StatusOr<ParsedRowKey> row = ParseUsageRowKey(group->first);
      if (!row.ok()) return row.status();
      v1::UsageRow& out = *response.add_rows();
      SetPeriod(period, out.mutable_from(), out.mutable_to());
      groups.Render(*row, group->second, &out);
      page.after = group->first;
    }
    return true;
  };
  if (all.empty()) {
    page.after.clear();
    return absl::OkStatus();
  }
  return history_query::ReadPeriods({step, all, FirstPeriod(page.after, all)}, reader, page, read);
}

absl::Status AnswerCapacity(const HistoryDb& database, const v1::GetCapacityRequest& request,
                            HistoryPage& page, v1::GetCapacityResponse& response) {
  const HistoryDb::View view(database);
  const auto position = history_query::ReadPosition(view);
  if (!position.ok()) return position.status();
  const v1::HistoryStep step = StepOf(request.step());
  const Span all = history_query::AskedSpan(request, *position);
  history_query::SetState(*position, step, all, response.mutable_state());
  history_query::RowReader reader(view, *position, history_query::kCapacityRows);
  const auto read = [&](const Span& period) -> absl::StatusOr<bool> {
    std::map<std::string, SumsByResource<CapacityMeter>> sums;
    absl::Status added = reader.Read(
        step, period, [&](absl::string_view key, absl::string_view value) -> absl::Status {
          const absl::StatusOr<ParsedRowKey> row = ParseCapacityRowKey(key);
          if (!row.ok()) return row.status();
          const auto meters = MetersOf<CapacityMeter>(value, *position);
          if (!meters.ok()) return meters.status();
          const std::string model = request.by_model() ? row->model : "";
          AddSums(*meters, sums[CapacityRowKey(period.begin, model)]);
          return absl::OkStatus();
        });
    if (!added.ok()) return added;
    for (auto group = sums.upper_bound(page.after); group != sums.end(); ++group) {
      if (response.rows_size() == page.size) return false;
      const absl::StatusOr<ParsedRowKey> row = ParseCapacityRowKey(group->first);
      if (!row.ok()) return row.status();
      v1::CapacityRow& out = *response.add_rows();
      SetPeriod(period, out.mutable_from(), out.mutable_to());
      out.set_device_model(row->model);
      for (const auto& [resource, meter] : group->second) {
        for (size_t part = 0; part < kCapacityParts; ++part) {
          SetResourceTime(resource, meter.sum[part], (out.*kCapacityTimes[part])());
        }
      }
      page.after = group->first;
    }
    return true;
  };
  if (all.empty()) {
    page.after.clear();
    return absl::OkStatus();
  }
  return history_query::ReadPeriods({step, all, FirstPeriod(page.after, all)}, reader, page, read);
}

}  // namespace berth
