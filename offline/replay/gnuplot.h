// Runs gnuplot, a separate program (Debian: gnuplot-nox).
#ifndef BERTH_OFFLINE_REPLAY_GNUPLOT_H_
#define BERTH_OFFLINE_REPLAY_GNUPLOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace berth::replay {

// FAILED_PRECONDITION with the name of the package if gnuplot is not installed.
absl::Status FindGnuplot();

// Runs `script`, a file in `folder`, in this directory, and waits. Messages of gnuplot go to
// standard error. INTERNAL if it fails.
absl::Status RunGnuplot(const std::string& folder, const std::string& script);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_GNUPLOT_H_
