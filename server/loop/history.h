// Retention of the event log.
#ifndef BERTH_SERVER_LOOP_HISTORY_H_
#define BERTH_SERVER_LOOP_HISTORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/store.h"

namespace berth {

// The last turn older than `limit`, up to `last`; 0 if there is none. Binary search: turns are
// ordered by time. Turns that have aged out count as older.
absl::StatusOr<uint64_t> LastTurnBefore(const Store& store, absl::Time limit, uint64_t last);

// Lets everything older than `history` age out, but never the last turn, nor anything after the
// last base that is that old.
absl::Status TrimHistory(Store& store, absl::Time now, absl::Duration history);

// Keeps a base (Store::KeepBase) once the last one, or the log's beginning, is older than half of
// `history`. So the verifiable log reaches back `history`, and at most half as long again. True if
// one was kept: planning should then start over (Loop::Replan), because a replay will begin
// there.
absl::StatusOr<bool> RenewBase(Store& store, absl::Time now, absl::Duration history);

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_HISTORY_H_
