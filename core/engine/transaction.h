// Transaction: tries decisions out on the live state. No copy of the cluster is made: every edit
// goes through StateEditor, which returns the value before, and undoing is setting those again in
// reverse order. So free capacity, queue sums and the pending index follow what is tried, at the
// cost of what is tried.
//
//   Transaction trial(state, now);
//   const auto mark = trial.mark();
//   trial.Place(job, task, node, devices);      // member by member
//   if (!fits) trial.RollbackTo(mark);          // as if nothing had been tried since
//   else trial.BindPlaced(job, /*gang=*/true);  // what was placed since the last decision
//   std::vector<EventBody> decisions = trial.Commit();
//
// The state itself changes through Apply alone, or as it would by Apply (Adopt): else, when the
// transaction ends, it is as it was before. One transaction per state at a time. No thread safety.
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
  // Edits, decisions and placements since the mark never were. The mark must be of this
  // transaction, and not before the last Commit.
  void RollbackTo(const Mark& mark);

  // A waiting task gets a place that is free (to it: its own nomination does not stand in the way).
  void Place(JobId job, const Placement& placement);
  // Only the first `count` of what was placed since the last decision stays.
  void UnplaceTo(size_t count);
  // Decides for what was placed since the last call: one TasksNominated, where the places are free
  // only once what Vanish took away is gone. The tasks go back to waiting, then wait there.
  void NominatePlaced(JobId job);
  // For trying out only, never left in a transaction that is committed: the tasks, which occupy or
  // are nominated, are as if they had gone and wait again. Roll back before deciding.
  void Vanish(JobId job, absl::Span<const uint32_t> tasks);
  // For trying out only, likewise: the task, which is being released, is gone; one that moves waits
  // at its next place.
  void LetGo(TaskKey key);
  // For trying out only, where nothing but nodes is looked at: these tasks, which occupy, are gone
  // from their nodes. Tasks, jobs and queues stay as they are. Roll back before anything else.
  void Lift(absl::Span<const TaskKey> tasks);
  // Decides for what was placed since the last call: one TasksBound.
  void BindPlaced(JobId job, bool gang);
  // Any other decision, with its effect on tasks, jobs and nodes. JobDeleted has none before it is
  // applied.
  void Decide(EventBody decision);

  // Brings the pending index up to date with what was tried.
  void Sync() { editor_.Sync(); }
  // For planning's caches, which no rollback touches.
  StateEditor& editor() { return editor_; }
  size_t decisions() const { return decisions_.size(); }
  // Another number whenever reservations were decided, or decisions undone.
  uint64_t reservation_version() const { return reservation_version_; }
  // Placed and not yet bound.
  const std::vector<Placement>& placed() const { return placed_; }

  // What was decided, in order; leaves the state as it was before the transaction.
  std::vector<EventBody> Commit();

  // All that was decided is binds, and of tasks that were not nominated before: so nothing was
  // taken away since the state before, and what is within all bounds now was so at every step.
  bool Adoptable() const;
  // As Commit and then Apply of all that it returns, without undoing anything first: what was tried
  // becomes facts. Each decision is checked all the same (CheckBound). Only if Adoptable.
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

  void SetTask(TaskKey key, const Task& task);
  void SetStatus(JobId job, JobStatus status);
  void SetNode(NodeId node, NodeStatus status);
  void UndoLast();
  void Enact(const TasksStarted& decision);
  void Enact(const TasksReleased& decision);
  void Enact(const TasksRequeued& decision);
  void Enact(const JobStatusChanged& decision);
  void Enact(const NodeRefused& decision);
  void Enact(const NodeSteered& decision);
  void Enact(const TasksNominated& decision);
  void Enact(const TasksUnnominated& decision);
  void Enact(const JobReserved& decision);
  void Enact(const UsageCharged& decision);
  void Enact(const JobRunRecorded&) {}  // what waits was predicted when it came
  void Enact(const JobDeleted&) {}

  ClusterState& state_;
  const Time now_;
  StateEditor editor_;
  const ClassId first_class_;  // of those made since
  // What was edited, in order; the values before, by kind, likewise.
  std::vector<Edited> edits_;
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
  bool bound_nominated_ = false;  // a task that was placed had waited for its place
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_TRANSACTION_H_
