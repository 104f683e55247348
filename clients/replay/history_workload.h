// Workloads as `berth job history` gives them: jobs that have ended, a berth.v1.Job as JSON a line.
//
// A job ran from its last start to its end. Everything that its specification says of where its
// tasks may be holds for the replay as well. What ends or restarts it does not: it ends when it
// did, and its tasks start all together.
#ifndef BERTH_CLIENTS_REPLAY_HISTORY_WORKLOAD_H_
#define BERTH_CLIENTS_REPLAY_HISTORY_WORKLOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/replay/workload.h"

namespace berth::replay {

// Times since the epoch. Jobs that never ran are left out. INVALID_ARGUMENT with FILE:LINE for a
// line that is no such job, or of one that has not ended.
absl::StatusOr<Workload> ReadHistory(absl::string_view text, const std::string& file);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_HISTORY_WORKLOAD_H_
