// Keys and values of the usage history's database <-> types of the core.
#ifndef BERTH_SERVER_HISTORY_HISTORY_RECORDS_H_
#define BERTH_SERVER_HISTORY_HISTORY_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/store/v1/history.pb.h"
#include "core/history/usage_fold.h"
#include "server/history/history_db.h"

namespace berth {

inline constexpr uint32_t kHistoryFormat = 1;
inline constexpr absl::string_view kPositionKey = "position";

// Rows: the begin of their period, then who they are of. Byte order is time order.
std::string PeriodKey(int64_t begin_ms);
std::string UsageRowKey(int64_t begin_ms, const UsageKey& key, absl::string_view model);
std::string CapacityRowKey(int64_t begin_ms, absl::string_view model);
struct ParsedRowKey {
  int64_t begin_ms = 0;
  UsageKey key;
  std::string model;
};
absl::StatusOr<ParsedRowKey> ParseUsageRowKey(absl::string_view key);
absl::StatusOr<ParsedRowKey> ParseCapacityRowKey(absl::string_view key);

// Ended jobs: the end, then the job.
std::string EndedKey(int64_t end_ms, JobId job);
int64_t EndOfKey(absl::string_view key);

template <class M>
std::string EncodeHistoryRow(bool open, const std::vector<NamedMeter<M>>& meters);
// The meters of M; DATA_LOSS if they are not.
template <class M>
absl::StatusOr<std::vector<NamedMeter<M>>> DecodeHistoryRow(absl::string_view value, bool* open);

std::string EncodeHistoryJob(const UsageFold::StoredJobUsage& job);
absl::StatusOr<UsageFold::StoredJobUsage> DecodeHistoryJob(absl::string_view value);
std::string EncodeHistoryTask(const PlacedTask& placed);
absl::StatusOr<PlacedTask> DecodeHistoryTask(absl::string_view key, absl::string_view value);
std::string EncodeHistoryLabels(const std::map<std::string, std::string>& labels);
absl::StatusOr<std::map<std::string, std::string>> DecodeHistoryLabels(absl::string_view value);

extern template std::string EncodeHistoryRow(bool, const std::vector<NamedMeter<UsageMeter>>&);
extern template std::string EncodeHistoryRow(bool, const std::vector<NamedMeter<CapacityMeter>>&);
extern template absl::StatusOr<std::vector<NamedMeter<UsageMeter>>> DecodeHistoryRow(
    absl::string_view, bool*);
extern template absl::StatusOr<std::vector<NamedMeter<CapacityMeter>>> DecodeHistoryRow(
    absl::string_view, bool*);

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_HISTORY_RECORDS_H_
