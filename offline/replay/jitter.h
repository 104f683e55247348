// Makes copies of a workload with slightly changed submit times: a single replay of a log depends
// on accidents, so it cannot distinguish policies. As in D. Tsafrir, D. G. Feitelson,
// "Instability in parallel job scheduling simulation: the role of workload flurries" (IPDPS 2006).
#ifndef BERTH_OFFLINE_REPLAY_JITTER_H_
#define BERTH_OFFLINE_REPLAY_JITTER_H_

#include <cstdint>
#include <vector>

#include "berth/sim/v1/replay.pb.h"
#include "offline/replay/workload.h"

namespace berth::replay {

// Each job arrives later by a whole number of seconds from 0 to `most`, drawn uniformly from the
// seed.
Workload Jittered(const Workload& workload, Duration most, uint64_t seed);

// Combines replays of copies under one policy, at least one: the mean of each figure, but the
// greatest of maximum values. Means of counts are rounded.
sim::v1::PolicyResult MeanOf(const std::vector<sim::v1::PolicyResult>& runs);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_JITTER_H_
