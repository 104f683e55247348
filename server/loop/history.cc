#include "server/loop/history.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "server/convert/values.h"
#include "storage/codec.h"
#include "support/log.h"

namespace berth {
namespace {

absl::StatusOr<bool> IsBefore(const Store& store, uint64_t sequence, absl::Time limit) {
  absl::StatusOr<std::vector<LogEntry>> entry = store.ReadLog(sequence - 1, 1);
  if (absl::IsOutOfRange(entry.status())) return true;
  if (!entry.ok()) return entry.status();
  if (entry->empty()) return false;
  absl::StatusOr<store::v1::LogTurn> turn = ParseTurn(entry->front().turn);
  if (!turn.ok()) return turn.status();
  return TimeFrom(turn->time()) < limit;
}

}  // namespace

absl::StatusOr<uint64_t> LastTurnBefore(const Store& store, absl::Time limit, uint64_t last) {
  uint64_t before = 0;        // older, or none
  uint64_t after = last + 1;  // newer, or none
  while (after - before > 1) {
    const uint64_t middle = before + (after - before) / 2;
    absl::StatusOr<bool> older = IsBefore(store, middle, limit);
    if (!older.ok()) return older.status();
    (*older ? before : after) = middle;
  }
  return before;
}

absl::Status TrimHistory(Store& store, absl::Time now, absl::Duration history) {
  const uint64_t last = store.LastSequence();
  if (last < 2) return absl::OkStatus();
  absl::StatusOr<uint64_t> old = LastTurnBefore(store, now - history, last - 1);
  if (!old.ok()) return old.status();
  if (*old == 0) return absl::OkStatus();
  LogDebug("log history aged out", {{"revision", *old}});
  return store.TrimLog(*old);
}

absl::StatusOr<bool> RenewBase(Store& store, absl::Time now, absl::Duration history) {
  const uint64_t last = store.LastSequence();
  if (last == 0) return false;
  const absl::StatusOr<std::vector<uint64_t>> bases = store.Bases();
  if (!bases.ok()) return bases.status();
  const uint64_t latest = bases->empty() ? 0 : bases->back();
  if (latest == last) return false;
  const absl::StatusOr<bool> due = IsBefore(store, latest + 1, now - history / 2);
  if (!due.ok() || !*due) return due;
  const absl::StatusOr<uint64_t> kept = store.KeepBase();
  if (!kept.ok()) return kept.status();
  LogDebug("base kept for verifying the log", {{"revision", *kept}});
  return true;
}

}  // namespace berth
