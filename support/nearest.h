// "Did you mean": finds the known word nearest to an unknown one.
#ifndef BERTH_SUPPORT_NEAREST_H_
#define BERTH_SUPPORT_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace berth {

// The number of letters to insert, delete, replace or swap with a neighbor to turn `a` into `b`,
// ignoring case.
int EditDistance(absl::string_view a, absl::string_view b);

// The nearest of `known`, or "" if none is near. At most a third of the word may differ, and one
// letter always may. Among equally near words the one with the longest common prefix wins: "gpu" is
// nearer to "gpus" than to "cpu".
std::string NearestWord(absl::string_view word, const std::vector<std::string>& known);

// "unknown key \"replica\"; did you mean \"replicas\"?", or lists all known words if none is near.
// `what` is "unknown key".
std::string UnknownWord(absl::string_view what, absl::string_view word,
                        const std::vector<std::string>& known);

}  // namespace berth

#endif  // BERTH_SUPPORT_NEAREST_H_
