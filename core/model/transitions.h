// The effect of each event on one task, as pure functions, shared by Apply and the engine's
// Transaction. The task must be in a state that allows it (Apply checks that).
//
//   Pending -Bound-> Bound -> Prepared -Started-> Starting -> Running -> Succeeded | Failed
//   -Requeued-> Pending
//                      '---------'-------Released-----'----------'--> Releasing -> Pending | Failed
//   Pending -Nominated-> Nominated -Bound-> Bound; Releasing with a move -> Nominated
//   any of these that occupies -Lost-> Lost -Returned-> as before
//   Running -Paused-> kPausing -reported-> kPaused -Resumed-> kResuming -Resumed-> kRuns
//   (PauseState)
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

// The place of an attempt in its gang, as fixed by its bind.
struct MemberRank {
  uint16_t rank = 0;   // kNoRank: a coordinator
  uint16_t world = 0;  // 0: decided before there were epochs
  uint32_t epoch = 0;
};

// Decisions.
Task BoundTask(const Task& before, const Placement& placement, Time now);  // a new attempt
JobStatus Evicted(const JobStatus& before, const TasksReleased& event, Time now);
// The job some of whose tasks were bound in that epoch; after a gang start: Binding, with one more
// start. Epoch 0: as before.
GangStart AfterBind(const JobStatus& before, bool gang, uint32_t epoch, Time now);
// The attempt's place in its gang.
Task RankedTask(const Task& bound, const MemberRank& rank);
Task StartedTask(const Task& before, Time now);
// A lost task stays Lost, and becomes Releasing if its node returns.
Task ReleasedTask(const Task& before, bool requeue, ReleaseReason reason, Time now);
Task RequeuedTask(const Task& before, Time now);
// It is told to freeze, or no longer waits for its CPU; waits for its CPU to go on; goes on.
Task PausingTask(const Task& before);
Task ResumingTask(const Task& before);
Task ResumedTask(const Task& before);
// What its node will report: it is frozen, and does not wait for its CPU.
Task FrozenTask(const Task& before);
// The job's clock stands still from now on, if it does not yet; or goes on.
JobStatus StoppedClock(const JobStatus& before, const TasksPaused& event, Time now);
JobStatus ResumedClock(const JobStatus& before, Time now);
// The state that Task::pause says is possible: CheckConsistency, and loading.
bool MayPause(const Task& task);
// No task of the job is frozen, or about to be.
bool NonePaused(const Job& job);
// Ties a pending task to a place, or unties it.
Task NominatedTask(const Task& before, const Placement& placement, Time now);
Task UnnominatedTask(const Task& before, Time now);
// For a job for which room was reclaimed (TasksNominated::claims): the tasks that hold a place and
// are not leaving it, and such a task with its claim set.
std::vector<uint32_t> TasksToClaim(const Job& job);
Task ClaimedTask(const Task& before);
// A released task, with requeue, that will be nominated there once it is gone.
Task MovedTask(const Task& released, bool claimed, const Placement& to);

// Reports. kExited and kRefused end the attempt: see GoneTask. `saved`: it exited with a code that
// says that it saved its work, as it was asked to; so even exit code 0 is no success.
Task ReportedTask(const Task& before, const TaskReported& report, bool saved, Time now);
// An occupying task has ended completely. A released one becomes Pending again or Failed
// (kStopped); others become Failed because of `cause`.
Task GoneTask(const Task& before, EndCause cause, Time now);

// Its node fell silent, or came back.
Task LostTask(const Task& before, Time now);
Task ReturnedTask(const Task& before, Time now);
// Its node fell silent: it is lost, or given up.
Task SilencedTask(const Task& before, NodeLossPolicy policy, Time now);
// The fence of its silent node ends it. It does not end KEEP tasks, so those must not restart until
// the node reports that they are gone.
bool EndsAtFence(const Task& task, NodeLossPolicy policy);
// A task of a job that was cancelled by force, on a silent node, where it may still run. It counts
// as ended.
Task EndedByForce(const Task& before, Time now);

// Queue::usage after the event's time has passed. Uses integers and a table of 2^(-x), so it is the
// same on every machine. Amounts below 1/1024 of a unit are dropped.
std::vector<NamedAmount> ChargedUsage(const Interner& interner, const Queue& queue,
                                      const UsageCharged& event);

// Ranks for placements that are being bound. A gang is numbered from 0 in the order of
// rank_order.h. A task that joins it, or replaces a member, gets the lowest number that no
// occupying attempt of the job has. So ranks never repeat among them, and do not change when the
// gang grows. A coordinator has none.
//
//   gang of a-0 a-1 b-0 b-1     0 1 2 3
//   a-2 joins                   0 1 2 3, a-2 has 4
//   b-0 ends and is restarted   2 again
class FreeRanks {
 public:
  // `placements` are those to be numbered, whether or not their tasks are already bound.
  FreeRanks(const Job& job, bool gang, absl::Span<const Placement> placements);
  uint16_t Take() {
    while (taken_[next_] != 0) ++next_;
    return static_cast<uint16_t>(next_++);
  }
  // Takes that one; false if it is taken or above those of the job.
  bool TakeThis(uint16_t rank) {
    if (rank >= taken_.size() || taken_[rank] != 0) return false;
    taken_[rank] = 1;
    return true;
  }
  // Members of the job besides the placements.
  size_t others() const { return others_; }

 private:
  static_assert(kMaxTasksPerJob < kNoRank);
  absl::InlinedVector<uint8_t, 64> taken_;  // by rank; as many as there are tasks
  size_t next_ = 0;
  size_t others_ = 0;
};

// True if it is told to stop, whether or not its node is silent.
bool Releasing(const Task& task);

// The state as which a group counts the task (GroupTally): one that is told to stop, on a silent
// node, is not a member any more.
TaskState TallyState(const Task& task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TRANSITIONS_H_
