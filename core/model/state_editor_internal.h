// Internal to the state editor.
#ifndef BERTH_CORE_MODEL_STATE_EDITOR_INTERNAL_H_
#define BERTH_CORE_MODEL_STATE_EDITOR_INTERNAL_H_

#include <cstdint>

#include "core/model/state_editor.h"

namespace berth {

inline bool OnHold(JobState state) {
  return state == JobState::kHeld || state == JobState::kSuspended;
}

inline bool PreemptibleTask(const Job& job, uint32_t task) {
  return job.preemptible || job.groups[GroupOf(job, task)].preemptible;
}

// True if the task counts in the cluster's tally by state. Pending tasks of ended jobs do not.
inline bool Counts(const Job& job, TaskState state) {
  return !Waits(state) || !Ended(job.status.state);
}

// What one edit adds to a queue and its ancestors; of amounts, times the request: -1, 0 or 1.
using QueueChange = QueueFigures<int>;

}  // namespace berth

#endif  // BERTH_CORE_MODEL_STATE_EDITOR_INTERNAL_H_
