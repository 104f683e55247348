// When a job must be looked at next because time has passed. What StateEditor::RefreshTimer goes
// by.
#ifndef BERTH_CORE_MODEL_JOB_TIMER_H_
#define BERTH_CORE_MODEL_JOB_TIMER_H_

#include "core/model/state_editor.h"

namespace berth {

// As NextDue, for one who knows when the job was due before its last change, if it was at all: a
// change moves no prepare timeout to before that. So once a task is met that comes to its timeout
// just then, the others need not be looked at. A gang of a thousand tasks is bound at one moment
// and reports task by task; each report asks.
Time NextDue(const Job& job, Time after, Time due_before);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_TIMER_H_
