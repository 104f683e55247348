// NOT_FOUND with the nearest name that the caller may see: "there is no queue "reserch"; did you
// mean "research"?". A name that exists and is hidden from the caller gets the same answer as one
// that nobody uses. Reader lock or loop thread.
//
// Bounded work, however many objects there are: names one letter away (a letter inserted, left out,
// replaced, or swapped with its neighbor) are looked up, at most 80 for each letter of the name.
// Only if none exists and there are at most kMostCompared objects, all of their names are compared.
#ifndef BERTH_SERVER_ACCESS_NEAREST_NAME_H_
#define BERTH_SERVER_ACCESS_NEAREST_NAME_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/model/cluster_state.h"
#include "server/access/permit.h"

namespace berth {

inline constexpr size_t kMostCompared = 512;
inline constexpr size_t kMaxGuessedName = 64;  // bytes; for longer names nothing is suggested

absl::Status NoSuchJob(const ClusterState& state, Rights& rights, absl::string_view name);
absl::Status NoSuchQueue(const ClusterState& state, Rights& rights, absl::string_view name);
absl::Status NoSuchNode(const ClusterState& state, Rights& rights, absl::string_view name);
absl::Status NoSuchHyperNode(const ClusterState& state, Rights& rights, absl::string_view name);
// Everybody may read priority classes.
absl::Status NoSuchPriorityClass(const ClusterState& state, absl::string_view name);

// The nearest names by themselves; "" if none is near. `verb`: what the caller needs of a queue.
std::string NearestQueue(const ClusterState& state, Rights& rights, Verb verb,
                         absl::string_view name);
std::string NearestPriorityClass(const ClusterState& state, absl::string_view name);

// "; did you mean "research"?", or "" for "".
std::string DidYouMean(absl::string_view nearest);

// Calls `found` with each name that is one letter away from `name`, which is in lower case: letters
// of DNS names only.
void ForEachNeighbor(absl::string_view name, absl::FunctionRef<void(const std::string&)> found);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_NEAREST_NAME_H_
