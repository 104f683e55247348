// The figures of a replay with a network model (docs/developers/network-model.md, "Figures").
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_RESULT_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_RESULT_H_

#include "berth/sim/v1/network.pb.h"
#include "offline/replay/network_progress.h"
#include "offline/replay/replay.h"

namespace berth::replay {

sim::v1::NetworkFigures FiguresOf(const Workload& workload, const ReplayRun& run,
                                  const NetworkRun& network);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_RESULT_H_
