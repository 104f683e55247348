#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"

namespace berth::apply_internal {

absl::Status ApplyBody(ClusterState& state, const PriorityClassesChanged& event, Time) {
  absl::Status status = state.priority_classes().Check(event.change);
  if (status.ok()) StateEditor(state).ChangePriorityClasses(event.change);
  return status;
}

}  // namespace berth::apply_internal
