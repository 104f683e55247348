// The facts of a state, loaded into another.
#ifndef BERTH_CLIENTS_SIM_RELOAD_H_
#define BERTH_CLIENTS_SIM_RELOAD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/model/cluster_state.h"

namespace berth {

// `loaded` must be fresh. Ids stay; the order of loading (parents before children, jobs after
// queues and nodes) is drawn from `seed`, so that whatever depends on it shows.
absl::Status LoadShuffled(const ClusterState& state, uint64_t seed, ClusterState* loaded);

// The same in order of ids, as a berthd that starts loads the records (storage/load.h): `loaded`
// then plans as that berthd does.
absl::Status LoadInOrder(const ClusterState& state, ClusterState* loaded);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_RELOAD_H_
