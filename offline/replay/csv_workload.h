// Reads workloads from CSV, whose first line names the columns.
#ifndef BERTH_OFFLINE_REPLAY_CSV_WORKLOAD_H_
#define BERTH_OFFLINE_REPLAY_CSV_WORKLOAD_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "offline/replay/workload.h"

namespace berth::replay {

// Maps fields of a job to columns of the file: {"submit": "timestamp", "run": "duration"}.
// docs/developers/replay.md lists the fields.
using ColumnMap = std::map<std::string, std::string>;

// "submit=timestamp,run=duration". INVALID_ARGUMENT with an unknown field and the nearest known
// one. `timed`: submit and run are required.
absl::StatusOr<ColumnMap> ParseColumns(absl::string_view text, bool timed = true);

// INVALID_ARGUMENT for a column that the file does not have, or with FILE:LINE for a row with more
// or fewer fields than the first line, or for a value that cannot be read.
absl::StatusOr<Workload> ReadCsv(absl::string_view text, const std::string& file,
                                 const ColumnMap& columns);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_CSV_WORKLOAD_H_
