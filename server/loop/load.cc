#include "server/loop/load.h"

#include "core/model/state_editor.h"
#include "storage/incarnation.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {

absl::Status Load(Store& store, ClusterState& state, absl::FunctionRef<void(StoredRequest)> request,
                  Preserved* preserved) {
  const absl::Duration begin = SystemClock().Steady();
  const absl::StatusOr<LoadSummary> summary = LoadState(store, state, request, preserved);
  if (!summary.ok()) return summary.status();
  // Series number the jobs that they make by it.
  StateEditor(state).RaiseNextJob(FirstJobOf(store.Incarnation()));
  const absl::Duration elapsed = SystemClock().Steady() - begin;
  LogInfo("state loaded", {{"revision", store.LastSequence()},
                           {"queues", summary->queues},
                           {"nodes", summary->nodes},
                           {"jobs", summary->jobs},
                           {"requests", summary->requests},
                           {"milliseconds", absl::ToInt64Milliseconds(elapsed)}});
  return absl::OkStatus();
}

}  // namespace berth
