// How long tasks have waited for their start, for policies on PolicyEvent::kTaskPending.
//
// A task waits while it has no place, and while it has one and does not run yet. Its wait is
// counted from its latest change of state (Task::since), and never from before
//   - the job was submitted, its start time, or its release from a hold;
//   - the latest gang was bound, or the latest incident: then the count begins anew;
//   - the groups on which its group depends let it start.
// Nothing waits in a job that is held, suspended or being restarted, nor in a group that is closed.
#ifndef BERTH_CORE_MODEL_WAITING_H_
#define BERTH_CORE_MODEL_WAITING_H_

#include <cstdint>
#include <optional>

#include "core/model/job.h"

namespace berth {

// Has no place, or has not started there yet.
bool AwaitsStart(const Task& task);

// The group's first policy on exactly this event (kAny does not count), or else the job's; null:
// none.
const LifecyclePolicy* PolicyOn(const Job& job, const Group& group, PolicyEvent event);

struct Wait {
  uint32_t task = 0;
  Time since;
};

// The longest wait in the group; nullopt if none of its tasks waits.
std::optional<Wait> LongestWait(const Job& job, uint32_t group);

// The first time after `after` when a task of the group has waited for `wait`; InfiniteFuture if
// there is none.
Time NextWaitDue(const Job& job, uint32_t group, Duration wait, Time after);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_WAITING_H_
