// What each event does to one task, as pure functions: Apply and the engine's Transaction share
// them. The task must be in a state that allows it (Apply checks that).
//
//   Pending -Bound-> Bound -> Prepared -Started-> Starting -> Running -> Succeeded | Failed
//   -Requeued-> Pending
//                      '---------'-------Released-----'----------'--> Releasing -> Pending | Failed
//   Pending -Nominated-> Nominated -Bound-> Bound; Releasing with a move -> Nominated
//   any of these that occupies -Lost-> Lost -Returned-> as before
#ifndef BERTH_CORE_MODEL_TRANSITIONS_H_
#define BERTH_CORE_MODEL_TRANSITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/model/event.h"
#include "core/model/interner.h"
#include "core/model/job.h"

namespace berth {

// Decisions.
Task BoundTask(const Task& before, const Placement& placement, Time now);  // a new attempt
JobStatus Evicted(const JobStatus& before, const TasksReleased& event, Time now);
// The job whose gang was bound: one start more, Binding.
GangStart GangBound(const JobStatus& before, Time now);
Task StartedTask(const Task& before, Time now);
// A lost one stays Lost, and is Releasing if its node returns.
Task ReleasedTask(const Task& before, bool requeue, Time now);
Task RequeuedTask(const Task& before, Time now);
// A task that waits gets a place to wait for, or loses it.
Task NominatedTask(const Task& before, const Placement& placement, Time now);
Task UnnominatedTask(const Task& before, Time now);
// Of a job whose room was reclaimed for it (TasksNominated::claims): the tasks that hold a place
// and are not leaving it, and such a task once it says so.
std::vector<uint32_t> ToBeClaimed(const Job& job);
Task ClaimedTask(const Task& before);
// A released task, with requeue, that is to be nominated there once it is gone.
Task MovedTask(const Task& released, bool claimed, const Placement& to);

// Reports. kExited and kRefused leave nothing of the attempt: see GoneTask.
Task ReportedTask(const Task& before, const TaskReported& report, Time now);
// Nothing of an occupying task is left. One that was released is Pending again or Failed
// (kStopped); else it has Failed because of `cause`.
Task GoneTask(const Task& before, EndCause cause, Time now);

// Its node fell silent, or came back.
Task LostTask(const Task& before, Time now);
Task ReturnedTask(const Task& before, Time now);

// Queue::usage after the time that the event tells of. In integers, with 2^(-x) from a table:
// the same on every machine. Amounts below 1/1024 of a unit are forgotten.
std::vector<NamedAmount> ChargedUsage(const Interner& interner, const Queue& queue,
                                      const UsageCharged& event);

// Ranks for what is being bound. A gang is numbered from 0 on, in the order that
// rank_order.h says. What
// joins one, or replaces a member, gets the lowest number that no attempt of the job has that still
// occupies a node: so ranks never repeat among them, and stay what they were when the gang grows.
//
//   gang of a-0 a-1 b-0 b-1     0 1 2 3
//   a-2 joins                   0 1 2 3, a-2 has 4
//   b-0 ends and is restarted   2 again
class FreeRanks {
 public:
  // `placements` are those to be numbered: whether their tasks are bound already does not matter.
  FreeRanks(const Job& job, bool gang, absl::Span<const Placement> placements);
  uint16_t Take() {
    while (taken_[next_] != 0) ++next_;
    return static_cast<uint16_t>(next_++);
  }

 private:
  static_assert(kMaxTasksPerJob <= 1 << 16);
  absl::InlinedVector<uint8_t, 64> taken_;  // by rank; there are as many as tasks
  size_t next_ = 0;
};

// Told to stop, whether its node is silent or not.
bool Releasing(const Task& task);

// As what a group counts the task (GroupTally): one that is told to stop, and whose node is silent,
// is no member any more.
TaskState TallyState(const Task& task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TRANSITIONS_H_
