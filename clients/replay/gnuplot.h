// Runs gnuplot, a program of its own (Debian: gnuplot-nox).
#ifndef BERTH_CLIENTS_REPLAY_GNUPLOT_H_
#define BERTH_CLIENTS_REPLAY_GNUPLOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace berth::replay {

// FAILED_PRECONDITION naming the package if gnuplot is not there.
absl::Status FindGnuplot();

// Runs `script`, a file in `folder`, with that as its working directory, and waits. What gnuplot
// complains of goes to standard error. INTERNAL if it fails.
absl::Status RunGnuplot(const std::string& folder, const std::string& script);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_GNUPLOT_H_
