// Formats usage and capacity for people and as CSV. Periods are in UTC.
#ifndef BERTH_CLIENTS_CLI_USAGE_VIEW_H_
#define BERTH_CLIENTS_CLI_USAGE_VIEW_H_

#include <string>
#include <vector>

#include "berth/v1/history.pb.h"
#include "clients/cli/session.h"

namespace berth {

// A row for each period and key. Losses are in the unit of the column before them, GPU-hours, or
// core-hours if nothing used a GPU. Several rows are followed by their sum.
Table UsageTable(const v1::GetUsageRequest& request, const v1::GetUsageResponse& usage);
std::string UsageCsv(const v1::GetUsageRequest& request, const v1::GetUsageResponse& usage);

// A row for each period, model and resource. The parts are in percent, to a tenth, and add up to
// 100; or in hours.
Table CapacityTable(const v1::GetCapacityRequest& request, const v1::GetCapacityResponse& capacity,
                    bool hours);
std::string CapacityCsv(const v1::GetCapacityRequest& request,
                        const v1::GetCapacityResponse& capacity);

// "2026-11-29 04:00", "2026-11-29" or "2026-11", by the step.
std::string PeriodText(v1::HistoryStep step, const google::protobuf::Timestamp& from);
// RFC 3339, UTC.
std::string TimeForCsv(bool has, const google::protobuf::Timestamp& time);

// Prints what figures lack of the time between `from` (infinite past: all that is known) and `to`,
// or now, on standard error.
void PrintHistoryNotes(Session& session, const v1::HistoryState& state, absl::Time from,
                       absl::Time to);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_USAGE_VIEW_H_
