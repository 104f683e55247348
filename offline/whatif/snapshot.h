// The state of a cluster at one revision, read from a store: a backup of a running berthd (`berth
// cluster backup`), or the data directory of a stopped one.
#ifndef BERTH_OFFLINE_WHATIF_SNAPSHOT_H_
#define BERTH_OFFLINE_WHATIF_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "storage/store.h"

namespace berth {

struct Snapshot {
  ClusterState state;
  Time time;  // of its last turn
  uint64_t revision = 0;
  PolicyConfig policies;  // the last ones of berthd
};

// Reads the whole log for the policies, and the records. NOT_FOUND: the store is empty, or no turn
// in the log records the policies. DATA_LOSS: the store is damaged.
absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(Store& store);
// Likewise for a directory, with the errors of OfflineStore::Open.
absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(const std::string& directory);

}  // namespace berth

#endif  // BERTH_OFFLINE_WHATIF_SNAPSHOT_H_
