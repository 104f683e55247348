// Transaction: tries decisions on the live state without copying the cluster. Every edit goes
// through StateEditor, which returns the previous value; undo sets these values again in reverse
// order. So free capacity, queue sums and the pending index follow the trial, and cost only what
// the trial touches.
//
//   Transaction trial(state, now);
//   const auto mark = trial.mark();
//   trial.Place(job, task, node, devices);      // member by member
//   if (!fits) trial.RollbackTo(mark);          // as if nothing had been tried since
//   else trial.BindPlaced(job, /*gang=*/true);  // what was placed since the last decision
//   std::vector<EventBody> decisions = trial.Commit();
//
// The state itself changes only through Apply, or exactly as Apply would (Adopt). Otherwise the
// state is unchanged when the transaction ends. One transaction per state at a time. Not
// thread-safe.
#ifndef BERTH_CORE_ENGINE_TRANSACTION_H_
#define BERTH_CORE_ENGINE_TRANSACTION_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/model/state_editor.h"

namespace berth {

class Transaction {
 public:
  struct Mark {
    size_t edits = 0;
    size_t decisions = 0;
  };

  Transaction(ClusterState& state, Time now);
  ~Transaction();  // rolls back

  // Not between Place and BindPlaced.
  Mark mark() const;
  // Undoes edits, decisions and placements since the mark. The mark must be from this transaction,
  // and not from before the last Commit.
  void RollbackTo(const Mark& mark);

  // Gives a pending task a free place. Its own nomination does not count as use.
  void Place(JobId job, const Placement& placement);
  // Keeps only the first `count` placements since the last decision.
  void UnplaceTo(size_t count);
  // Decides for the placements since the last call: one TasksNominated, if the places are free only
  // once what Vanish removed is gone. The tasks are pending again, then nominated.
  void NominatePlaced(JobId job);
  // For trials only, never left in a transaction that is committed: the tasks, which occupy or are
  // nominated, become pending as if they were gone. Roll back before deciding.
  void Vanish(JobId job, absl::Span<const uint32_t> tasks);
  // Likewise for trials only: the task, which is being released, is gone; if it moves, it waits at
  // its next place.
  void LetGo(TaskKey key);
  // Likewise for trials only: the tasks, which run, are frozen, and none of them waits for its CPU.
  void Freeze(JobId job, absl::Span<const uint32_t> tasks);
  // For trials that look at nodes only: these tasks, which occupy, are gone from their nodes.
  // Tasks, jobs and queues are unchanged. Roll back before anything else.
  void Lift(absl::Span<const TaskKey> tasks);
  // Decides for the placements since the last call: one TasksBound.
  void BindPlaced(JobId job, bool gang);
  // Any other decision, with its effect on tasks, jobs and nodes. JobDeleted, JobSubmitted,
  // JobCancelled and JobSuspended have no effect before they are applied.
  void Decide(EventBody decision);

  // Updates the pending index with the trial.
  void Sync() { editor_.Sync(); }
  // For planning's caches, which rollback does not touch.
  StateEditor& editor() { return editor_; }
  size_t decisions() const { return decisions_.size(); }
  // Changes whenever reservations were decided, or decisions undone.
  uint64_t reservation_version() const { return reservation_version_; }
  // Identifies the state as this transaction left it: equal only if all edits in between were
  // undone.
  uint64_t version() const { return edits_.empty() ? 0 : edits_.back().version; }
  // Placed and not yet bound.
  const std::vector<Placement>& placed() const { return placed_; }

  // Returns the decisions in order; restores the state from before the transaction.
  std::vector<EventBody> Commit();

  // All decisions are binds, of tasks that were not nominated before. So nothing was released, and
  // what is within all bounds now was so at every step.
  bool Adoptable() const;
  // Like Commit followed by Apply of all that it returns, but without undoing first: the trial
  // becomes fact. Each decision is still checked (CheckBound). Only if Adoptable.
  std::vector<EventBody> Adopt();

 private:
  struct TaskBefore {
    TaskKey key;
    Task task;
  };
  struct StatusBefore {
    JobId job;
    JobStatus status;
  };
  struct StartBefore {
    JobId job;
    GangStart start;
  };
  struct NodeBefore {
    NodeId node;
    NodeStatus status;
  };
  struct ReservationBefore {
    JobId job;
    Reservation reservation;
  };
  struct UsageBefore {
    QueueId queue;
    std::vector<NamedAmount> usage;
  };
  enum class Edited : uint8_t { kTask, kStatus, kStart, kNode, kReservation, kUsage, kLift };
  struct Edit {
    Edited kind;
    uint64_t version;  // afterwards; never used again
  };

  void SetTask(TaskKey key, const Task& task);
  void SetStatus(JobId job, JobStatus status);
  void SetNode(NodeId node, NodeStatus status);
  void Note(Edited kind) { edits_.push_back({kind, ++last_version_}); }
  void UndoLast();
  void Enact(const TasksStarted& decision);
  void Enact(const TasksPaused& decision);
  void Enact(const TasksResumed& decision);
  void Enact(const TasksReleased& decision);
  void Enact(const TasksRequeued& decision);
  void Enact(const JobStatusChanged& decision);
  void Enact(const NodeRefused& decision);
  void Enact(const NodeSteered& decision);
  void Enact(const TasksNominated& decision);
  void Enact(const TasksUnnominated& decision);
  void Enact(const JobReserved& decision);
  void Enact(const UsageCharged& decision);
  void Enact(const JobRunRecorded&) {}  // pending jobs were predicted at submit
  void Enact(const JobDeleted&) {}
  // Of series (core/engine/lifecycle/series.cc).
  void Enact(const JobSubmitted&) {}
  void Enact(const JobCancelled&) {}
  void Enact(const JobSuspended&) {}

  ClusterState& state_;
  const Time now_;
  StateEditor editor_;
  const ClassId first_class_;  // of classes created since
  uint64_t last_version_ = 0;
  std::vector<Edit> edits_;  // in order; likewise the previous values, by kind
  std::vector<TaskBefore> tasks_;
  std::vector<StatusBefore> statuses_;
  std::vector<StartBefore> starts_;
  std::vector<NodeBefore> nodes_;
  std::vector<ReservationBefore> reservations_;
  std::vector<UsageBefore> usages_;
  std::vector<TaskKey> lifted_;
  std::vector<EventBody> decisions_;
  std::vector<Placement> placed_;  // not yet in a decision
  uint64_t reservation_version_ = 0;
  int64_t binds_ = 0;             // among the decisions
  bool bound_nominated_ = false;  // a placed task had been nominated for its place
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_TRANSACTION_H_
