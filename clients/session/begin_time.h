// Parses begin times in the syntax of at and sbatch.
#ifndef BERTH_CLIENTS_SESSION_BEGIN_TIME_H_
#define BERTH_CLIENTS_SESSION_BEGIN_TIME_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// Parses a time relative to `now`, in `zone` if the text names none:
//   now, now+1hour, +10m, now+90       a plain number is in seconds, as in sbatch
//   2026-12-01T10:00, 2026-12-01T10:00:30Z, 2026-12-01
//   16:00, noon, midnight              the next such time
//   today, tomorrow, tomorrow+2hours, tomorrowT08:00
// INVALID_ARGUMENT for anything else, with examples.
absl::StatusOr<absl::Time> ParseBeginTime(absl::string_view text, absl::Time now,
                                          absl::TimeZone zone);

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_BEGIN_TIME_H_
