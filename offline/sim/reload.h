// Loads the facts of a state into another state.
#ifndef BERTH_OFFLINE_SIM_RELOAD_H_
#define BERTH_OFFLINE_SIM_RELOAD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/model/cluster_state.h"

namespace berth {

// `loaded` must be new. Ids stay the same. The order of loading (parents before children, jobs
// after queues and nodes) is drawn from `seed`, to reveal dependencies on it.
absl::Status LoadShuffled(const ClusterState& state, uint64_t seed, ClusterState* loaded);

// Likewise in order of ids, as a starting berthd loads the records (storage/load.h). `loaded` then
// plans like that berthd.
absl::Status LoadInOrder(const ClusterState& state, ClusterState* loaded);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_RELOAD_H_
