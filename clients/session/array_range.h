// Reads the indexes of a job array, in the syntax of sbatch --array.
#ifndef BERTH_CLIENTS_SESSION_ARRAY_RANGE_H_
#define BERTH_CLIENTS_SESSION_ARRAY_RANGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/array.pb.h"

namespace berth {

inline constexpr int32_t kMaxArrayIndex = 999'999;

// "0-9", "1,3,5-7", "0-100:10" (every tenth), "7" (that index alone), each also with "%N": at most
// N of its jobs are unfinished at the same time. Ranges are sorted; 0-(n-1) becomes a size.
// INVALID_ARGUMENT otherwise. How many indexes there may be is the server's to say.
absl::StatusOr<v1::Array> ParseArray(absl::string_view text);

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_ARRAY_RANGE_H_
