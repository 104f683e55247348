// When a job must be processed next because of time. Used by StateEditor::RefreshTimer.
#ifndef BERTH_CORE_MODEL_JOB_TIMER_H_
#define BERTH_CORE_MODEL_JOB_TIMER_H_

#include "core/model/state_editor.h"

namespace berth {

// Like NextDue, if the due time before the job's last change is known (if any): no change moves a
// prepare timeout to before it. The search can therefore stop at the first task whose timeout is
// that time. This matters for a gang of a thousand tasks, bound at one moment, in which each task's
// report triggers the search.
Time NextDue(const Job& job, Time after, Time due_before);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_TIMER_H_
