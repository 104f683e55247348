#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"

namespace berth::apply_internal {

absl::Status ApplyBody(ClusterState& state, const AccessChanged& event, Time) {
  for (const Grant& grant : event.change.grant) {
    if (state.queues().Find(grant.queue) == nullptr) {
      return NotFound("no queue ", grant.queue.value);
    }
  }
  if (auto status = state.access().Check(event.change); !status.ok()) return status;
  StateEditor(state).ChangeAccess(event.change);
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
