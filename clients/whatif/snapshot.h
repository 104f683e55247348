// A cluster's state at one revision, as a store has it: a backup of a running berthd (`berth
// cluster backup`), or the data directory of a stopped one.
#ifndef BERTH_CLIENTS_WHATIF_SNAPSHOT_H_
#define BERTH_CLIENTS_WHATIF_SNAPSHOT_H_

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
  PolicyConfig policies;  // with which berthd planned last
};

// Reads the whole log for the policies, and the records. NOT_FOUND: nothing has happened in it yet,
// or no turn that is still logged tells the policies. DATA_LOSS: the store is damaged.
absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(Store& store);
// The same of a directory, with the errors of OfflineStore::Open.
absl::StatusOr<std::unique_ptr<Snapshot>> ReadSnapshot(const std::string& directory);

}  // namespace berth

#endif  // BERTH_CLIENTS_WHATIF_SNAPSHOT_H_
