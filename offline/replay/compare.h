// Compares two saved results (`-o json`) side by side.
#ifndef BERTH_OFFLINE_REPLAY_COMPARE_H_
#define BERTH_OFFLINE_REPLAY_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/replay.pb.h"
#include "offline/replay/replay_result.h"

namespace berth::replay {

// Compares each policy of the first result with the policy of the same name in the second. If both
// results have only one policy, compares these two. NOT_FOUND for a missing file, INVALID_ARGUMENT
// for a file that is not a result, or if no policies match.
absl::StatusOr<std::vector<sim::v1::ReplayComparison>> Compare(const std::string& first,
                                                               const std::string& second);

// "json" (an object a line), "yaml" (a document each) or "table".
std::string Printed(const std::vector<sim::v1::ReplayComparison>& comparisons,
                    absl::string_view format, TableOf of = TableOf::kAll);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_COMPARE_H_
