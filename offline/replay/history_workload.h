// Reads workloads of `berth job history`: jobs that have ended, one berth.v1.Job as JSON a line.
//
// A job ran from its last start to its end. Constraints on the nodes of its tasks also hold for the
// replay. Policies that end or restart it do not: it ends when it did, and all its tasks start
// together.
#ifndef BERTH_OFFLINE_REPLAY_HISTORY_WORKLOAD_H_
#define BERTH_OFFLINE_REPLAY_HISTORY_WORKLOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "offline/replay/workload.h"

namespace berth::replay {

// Times since the epoch. Jobs that never ran are left out. INVALID_ARGUMENT with FILE:LINE for a
// line that is not such a job, or for a job that has not ended.
absl::StatusOr<Workload> ReadHistory(absl::string_view text, const std::string& file);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_HISTORY_WORKLOAD_H_
