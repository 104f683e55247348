// Values in the syntax of Slurm's options and output.
#ifndef BERTH_CLIENTS_SLURM_VALUES_H_
#define BERTH_CLIENTS_SLURM_VALUES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// "30" (minutes), "30:15", "2:30:00", "1-12", "1-12:30", "1-12:30:15"; InfiniteDuration for
// "UNLIMITED", "INFINITE" and "0".
absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text);
// "1-02:03:04", "02:03:04"; with `minutes`, as squeue's %M and %l do: "1:02:03", "2:03".
std::string SlurmElapsed(absl::Duration elapsed);
std::string ShortElapsed(absl::Duration elapsed);
// "2026-11-28T10:00:00" in that zone; "Unknown" and "N/A" are the callers'.
std::string SlurmMoment(absl::Time time, absl::TimeZone zone);
// sacct's -S and -E: also "now", "now-2days", "midnight", "11/28", "11/28/26-10:00".
absl::StatusOr<absl::Time> ParseSlurmMoment(absl::string_view text, absl::Time now,
                                            absl::TimeZone zone);

// "4096" (MiB), "4G", "16GB", "1.5T", "512K": bytes, at least 1 MiB but for 0.
absl::StatusOr<int64_t> ParseSlurmMemory(absl::string_view text);
// "4G", "512M": the largest unit that is exact.
std::string SlurmMemory(int64_t bytes);

// A whole number in [least, most].
absl::StatusOr<int32_t> ParseSlurmCount(absl::string_view option, absl::string_view text,
                                        int32_t least, int32_t most);

// "USR2", "SIGUSR2", "12". INVALID_ARGUMENT for anything else.
absl::StatusOr<int> ParseSignal(absl::string_view text);

// --signal: "[B:]SIGNAL[@SECONDS]".
struct SignalBefore {
  int signal = 0;
  absl::Duration before = absl::Seconds(60);
  bool batch = false;  // to the batch shell, not to the steps
};
absl::StatusOr<SignalBefore> ParseSignalBefore(absl::string_view text);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_VALUES_H_
