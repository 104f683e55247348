// Times to begin at, as users of at and sbatch write them.
#ifndef BERTH_CLIENTS_CLI_BEGIN_TIME_H_
#define BERTH_CLIENTS_CLI_BEGIN_TIME_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// What stands for a time, by the clock `now` and in `zone` where none is written:
//   now, now+1hour, +10m, now+90       a number alone counts seconds, as sbatch has it
//   2026-12-01T10:00, 2026-12-01T10:00:30Z, 2026-12-01
//   16:00, noon, midnight              the next time that it is so
//   today, tomorrow, tomorrow+2hours, tomorrowT08:00
// INVALID_ARGUMENT for anything else, with examples.
absl::StatusOr<absl::Time> ParseBeginTime(absl::string_view text, absl::Time now,
                                          absl::TimeZone zone);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_BEGIN_TIME_H_
