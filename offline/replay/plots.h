// Draws plots of replays: utilisation, distributions of waits and slowdowns, shares of queues, and
// the cluster over time (docs/developers/replay.md, "Plots").
#ifndef BERTH_OFFLINE_REPLAY_PLOTS_H_
#define BERTH_OFFLINE_REPLAY_PLOTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "offline/replay/plot_data.h"

namespace berth::replay {

// Converts names to unique parts of file names: letters, digits, '.', '_' and '-'.
std::vector<std::string> SlugsOf(const std::vector<std::string>& names);

// Creates the folder if missing, and writes for every plot NAME.png and NAME.svg, the script
// NAME.gp that draws them, and the data as CSV. The runs must have records. PERMISSION_DENIED if a
// file cannot be written; the errors of RunGnuplot.
absl::Status Plot(const Workload& workload, const std::vector<PlottedRun>& runs,
                  const std::string& folder);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_PLOTS_H_
