// LoadState: the state and what goes with it, from a store. Restart time is bounded by what lives,
// not by history.
#ifndef BERTH_STORAGE_LOAD_H_
#define BERTH_STORAGE_LOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/model/cluster_state.h"
#include "storage/codec.h"
#include "storage/preserved.h"
#include "storage/store.h"

namespace berth {

struct LoadSummary {
  size_t queues = 0;  // without a root that was never changed
  size_t nodes = 0;
  size_t hyper_nodes = 0;
  size_t jobs = 0;
  size_t job_statuses = 0;
  size_t tasks = 0;
  size_t requests = 0;
};

// Fills `state`, which must be new, with every record of the store; the result equals the fold of
// all events. `request` is called for each remembered answer; the caller decides which are too old.
// `preserved` receives the fields that this version does not know, and goes to the TurnRecorder
// (null: they are dropped at the next write). DATA_LOSS naming the record that is no valid one or
// does not fit the others; the state is then unusable.
absl::StatusOr<LoadSummary> LoadState(Store& store, ClusterState& state,
                                      absl::FunctionRef<void(StoredRequest)> request,
                                      Preserved* preserved);

// The state from which all of the kept log follows: an empty one, if the log begins with batch 1,
// else the first base whose log is there (Store::KeepBase). Fills `state`, which must be new, and
// returns the sequence that it stands at. NOT_FOUND, naming where the log begins, if there is none;
// else as LoadState.
absl::StatusOr<uint64_t> LoadEarliest(Store& store, ClusterState& state);

// The first batch that the log still has; 1 if there is none at all.
absl::StatusOr<uint64_t> FirstLogged(const Store& store);

}  // namespace berth

#endif  // BERTH_STORAGE_LOAD_H_
