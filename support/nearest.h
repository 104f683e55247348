// "Did you mean": the known word nearest to an unknown one.
#ifndef BERTH_SUPPORT_NEAREST_H_
#define BERTH_SUPPORT_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace berth {

// Letters to add, drop, change or swap with their neighbour to make `a` into `b`, ignoring case.
int EditDistance(absl::string_view a, absl::string_view b);

// The nearest of `known`, or "" when none is near: at most a third of the word may differ, and one
// letter always may. Of those that are as near, the one that begins most like it: "gpu" is nearer
// to "gpus" than to "cpu".
std::string NearestWord(absl::string_view word, const std::vector<std::string>& known);

// "unknown key \"replica\"; did you mean \"replicas\"?", or all the known ones when none is near.
// `what` is "unknown key".
std::string UnknownWord(absl::string_view what, absl::string_view word,
                        const std::vector<std::string>& known);

}  // namespace berth

#endif  // BERTH_SUPPORT_NEAREST_H_
