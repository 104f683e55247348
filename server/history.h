// How much of the event log is kept.
#ifndef BERTH_SERVER_HISTORY_H_
#define BERTH_SERVER_HISTORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/store.h"

namespace berth {

// The last turn that is older than `limit`, among those up to `last`; 0 if there is none. Found by
// halving: turns are in order of time. What has aged out already counts as older.
absl::StatusOr<uint64_t> LastTurnBefore(const Store& store, absl::Time limit, uint64_t last);

// Lets everything older than `history` age out, but never the last turn, nor what follows the last
// base that is so old.
absl::Status TrimHistory(Store& store, absl::Time now, absl::Duration history);

// Keeps a base (Store::KeepBase) once the last one, or else the log's beginning, is older than half
// of `history`. So the log that can be verified reaches back `history`, and at most half as long
// again. True if one was kept: planning should then begin anew (Loop::PlanAnew), where a replay
// will begin.
absl::StatusOr<bool> RenewBase(Store& store, absl::Time now, absl::Duration history);

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_H_
