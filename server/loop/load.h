// Loading the state at start.
#ifndef BERTH_SERVER_LOOP_LOAD_H_
#define BERTH_SERVER_LOOP_LOAD_H_

#include "absl/functional/function_ref.h"
#include "storage/load.h"

namespace berth {

// LoadState (storage/load.h), and a log line with what was loaded and how long it took.
absl::Status Load(Store& store, ClusterState& state, absl::FunctionRef<void(StoredRequest)> request,
                  Preserved* preserved);

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_LOAD_H_
