// Times of --since and --until.
#ifndef BERTH_CLIENTS_CLI_PAST_TIME_H_
#define BERTH_CLIENTS_CLI_PAST_TIME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/session.h"

namespace berth {

// "24h": so long ago; or a time, "2026-12-01" or "2026-12-01T10:00", in `zone` if it names none.
// INVALID_ARGUMENT for anything else.
absl::StatusOr<absl::Time> PastTime(const std::string& text, const Session& session,
                                    absl::TimeZone zone);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PAST_TIME_H_
