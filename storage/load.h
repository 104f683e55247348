// LoadState: loads the state and related data from a store. Restart time depends on what is live,
// not on history.
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
  size_t queues = 0;  // without a root that never changed
  size_t nodes = 0;
  size_t hyper_nodes = 0;
  size_t jobs = 0;
  size_t job_statuses = 0;
  size_t tasks = 0;
  size_t requests = 0;
};

// Fills `state`, which must be new, from every record of the store; the result equals the fold of
// all events. `request` is called for each remembered response; the caller drops expired ones.
// `preserved` receives the fields that this version does not know, and goes to the TurnRecorder
// (null: the next write drops them). DATA_LOSS naming the record if one is invalid or does not fit
// the others; the state is then unusable.
absl::StatusOr<LoadSummary> LoadState(Store& store, ClusterState& state,
                                      absl::FunctionRef<void(StoredRequest)> request,
                                      Preserved* preserved);

// The state before the kept log: empty if the log begins with batch 1, else the first base whose
// log is kept (Store::KeepBase). Fills `state`, which must be new, and returns its sequence.
// NOT_FOUND, naming where the log begins, if there is none; other errors as for LoadState.
absl::StatusOr<uint64_t> LoadEarliest(Store& store, ClusterState& state);

// The first batch still in the log; 1 if there is none at all.
absl::StatusOr<uint64_t> FirstLogged(const Store& store);

}  // namespace berth

#endif  // BERTH_STORAGE_LOAD_H_
