// Parses the indexes of a job array, in the syntax of sbatch --array.
#ifndef BERTH_CLIENTS_CLI_ARRAY_RANGE_H_
#define BERTH_CLIENTS_CLI_ARRAY_RANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr int32_t kMaxArrayIndex = 999'999;

// "0-9", "1,3,5-7", "0-100:10" (every tenth). The result is ascending, without duplicates, and has
// at most kJobsPerCall indexes. INVALID_ARGUMENT otherwise; a limit after "%" is not supported and
// refused.
absl::StatusOr<std::vector<int32_t>> ParseArrayRange(absl::string_view text);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_ARRAY_RANGE_H_
