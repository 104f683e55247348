// Internal to the state editor.
#ifndef BERTH_CORE_MODEL_QUEUE_CHANGE_H_
#define BERTH_CORE_MODEL_QUEUE_CHANGE_H_

#include <cstdint>

#include "core/model/state_editor.h"

namespace berth {

inline bool OnHold(JobState state) {
  return state == JobState::kHeld || state == JobState::kSuspended;
}

inline bool PreemptibleTask(const Job& job, uint32_t task) {
  return job.preemptible || job.groups[GroupOf(job, task)].preemptible;
}

// What one edit adds to a queue and its ancestors.
struct StateEditor::QueueChange {
  const Resources* request = nullptr;
  int allocated = 0;               // times the request: -1, 0 or 1
  int nonpreemptible = 0;          // likewise
  int pending = 0;                 // likewise
  int wanted = 0;                  // likewise
  int nominated = 0;               // likewise
  int leaving = 0;                 // likewise
  int nonpreemptible_leaving = 0;  // likewise
  int claimed = 0;                 // likewise
  int leaving_jobs = 0;
  int jobs = 0;
  int active_jobs = 0;
  int64_t active_tasks = 0;  // of those jobs
  int running_jobs = 0;
  int held_jobs = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_QUEUE_CHANGE_H_
