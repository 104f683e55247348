// berth-sim whatif: forecasts how changes of a cluster would affect its pending jobs.
#ifndef BERTH_OFFLINE_WHATIF_WHATIF_COMMAND_H_
#define BERTH_OFFLINE_WHATIF_WHATIF_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/whatif.pb.h"
#include "offline/whatif/changes.h"
#include "offline/whatif/forecast.h"
#include "offline/whatif/snapshot.h"

namespace berth {

// Runs the state forward as it is, and with the changes. Without changes `after` is absent. Returns
// the errors of ApplyChanges and of RunForecast; INVALID_ARGUMENT if this program does not have the
// policies of the snapshot.
absl::StatusOr<sim::v1::WhatifResult> Whatif(const Snapshot& snapshot, const Changes& changes,
                                             const ForecastOptions& options);

// "json", "yaml" or "table" (for people). Ends with a newline.
std::string PrintedWhatif(const sim::v1::WhatifResult& result, absl::string_view format);

}  // namespace berth

#endif  // BERTH_OFFLINE_WHATIF_WHATIF_COMMAND_H_
