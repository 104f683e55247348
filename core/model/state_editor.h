// StateEditor: the only writer of ClusterState. It keeps everything derived equal to what the facts
// say; it checks nothing but our own bugs (Apply does the checking).
//
// The heart is SetTask: it takes the old value's contribution out of every sum and index and puts
// the new one's in. It returns the old value, so that undoing is setting that again, in reverse
// order (core/engine/transaction.h).
//
// Two things follow only at Sync() (and when the editor ends): the pending index and the timers of
// jobs that were touched. So a gang is placed member by member without building a class for each
// half-placed state.
//
// No thread safety. Editors of one state may nest only if the inner one has ended before the outer
// edits again.
#ifndef BERTH_CORE_MODEL_STATE_EDITOR_H_
#define BERTH_CORE_MODEL_STATE_EDITOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"

namespace berth {

enum class EditMode : uint8_t {
  kFacts,      // Apply: marks what is dirty and unsettled, sets timers, reopens blocked classes
  kTentative,  // planning: none of these; every edit will be undone
};

class StateEditor {
 public:
  explicit StateEditor(ClusterState& state, EditMode mode = EditMode::kFacts);
  ~StateEditor();  // Sync()
  StateEditor(const StateEditor&) = delete;
  StateEditor& operator=(const StateEditor&) = delete;

  // Brings the pending index (and, with kFacts, the timers) up to date with the edits so far.
  void Sync();

  // Planning: all edits of this editor will be undone, and then RestoreClasses puts every job back
  // into the class in which it was, which is cheaper than finding it anew.
  void RememberClasses() { remembers_classes_ = true; }
  // Every edit so far has been undone.
  void RestoreClasses();
  // Those that were not are facts now: every job stays in the class in which it is. Classes that
  // were made since, `first` and later, are as if the facts had made them: had all been undone,
  // what was found out about them would be gone.
  void KeepClasses(ClassId first);
  // The job will soon be edited.
  void Prefetch(JobId id) const;
  // Between these, the order of FreeIndex does not follow edits, and nobody may look at it.
  void HoldOrder() { state_.free_.Hold(); }
  void ReleaseOrder() { state_.free_.Release(); }

  // Tasks and jobs. Ids must exist. Both return the old value. About 200 ns and no allocation in
  // the common case.
  Task SetTask(TaskKey key, const Task& value);
  JobStatus SetJobStatus(JobId id, JobStatus status);
  // That part of the status alone: nothing of the rest is copied.
  GangStart SetGangStart(JobId id, const GangStart& start);
  // For trying out only: the task, which occupies, is gone from its node, and nothing else knows;
  // and is there again.
  void LiftTask(TaskKey key);
  // Likewise: the job's walltime is another. Its class and its timer are as before.
  void TryWalltime(JobId id, Duration walltime);
  void ReturnTask(TaskKey key);
  // A tentative edit of the task, not undone, becomes a fact: marks it as SetTask would have.
  void AdoptTask(TaskKey key);
  // The same of SetGangStart, and of a task; not yet the timers. The pending index knows already.
  void AdoptGangStart(JobId id);
  void MarkTask(TaskKey key);
  void AdoptTimers(JobId id);
  // The job's tasks are not where they were: whom affinity barred may be helped. Facts only.
  void NeighboursCouldHelp(JobId id);
  // Of a task that was just bound; nothing else follows from it.
  void SetRank(TaskKey key, uint16_t rank) {
    state_.jobs_.At(key.job).tasks.Changed(key.task).rank = rank;
  }
  // What the latest attempt that ended said; empty removes it.
  void SetTaskMessage(TaskKey key, absl::string_view message);
  // Without places: none.
  void SetReservation(JobId id, Reservation reservation);
  void SetJobPriority(JobId id, int32_t priority);
  // Updated by the user: not the one that was submitted.
  void SetJobWalltime(JobId id, Duration walltime);
  void SetJobLabels(JobId id, std::map<std::string, std::string> labels);
  // The id must be absent; next_job_id moves past it. Its kinds must have room
  // (Interner::CanAddKinds).
  void AddJob(JobId id, const JobSpec& spec, Time submit, const RunPrediction& prediction = {});
  // The job added last comes into its queue's line.
  void EnterLine(JobId id, int64_t work);
  // Nothing of it may occupy.
  void EraseJob(JobId id);
  // The job added last, untouched since, never was: next_job_id is `next` again, what it was
  // before.
  void TakeBackJob(JobId id, JobId next);

  // Queues and nodes. Their kinds must have room.
  void AddQueue(QueueId id, QueueSpec spec);
  void SetQueueSpec(QueueId id, QueueSpec spec);  // name and parent unchanged
  void SetQueueOpen(QueueId id, bool open);
  void SetQueueUsage(QueueId id, std::vector<NamedAmount> usage);
  void SetUsageCharged(Time when);
  void SetRequestMix(RequestMix mix);
  // RunHistory::Add.
  void AddRun(RunId id, FinishedRun run);
  void EraseQueue(QueueId id);  // no jobs, no children
  void AddNode(NodeId id, NodeSpec spec, NodeStatus status);
  void SetNodeSpec(
      NodeId id,
      NodeSpec spec);  // same name; its tasks' device sets are the caller's to move first
  void SetNodeStatus(NodeId id, NodeStatus status);
  void EraseNode(NodeId id);  // no tasks

  // HyperNodes: new with the next id, or a known one's new specification (same name and kind).
  // CheckHyperNodes has found it good.
  void SetHyperNode(HyperNodeId id, HyperNodeSpec spec);
  void EraseHyperNode(HyperNodeId id);
  // Ascending. None of them is there yet; each leaves the domain of that kind in which it was.
  void JoinNodes(HyperNodeId domain, absl::Span<const NodeId> nodes);
  // Ascending; all of them are in it.
  void LeaveNodes(HyperNodeId domain, absl::Span<const NodeId> nodes);

  // Planning's caches: not facts, in either mode, and never undone.
  // The lifecycle stage has looked at the job.
  void Settle(JobId id) { state_.unsettled_.erase(id); }
  // Time has come to `now`: jobs with something due by then become unsettled, nodes whose back-off
  // is over take tasks again. The next due times that the state shows are later than `now`. Time
  // never goes back.
  void PassTime(Time now);
  // No job of the class can be placed now. It leaves ready() until something happens that could
  // help.
  void Block(ClassId id, BlockedVerdict verdict) {
    verdict.found = state_.passed_time_;
    state_.pending_.Block(id, std::move(verdict));
  }
  // A blocked class returns to ready() also at `at` (later than now; or InfiniteFuture), whatever
  // happens.
  void Revisit(ClassId id, Time at) { state_.pending_.Revisit(id, at); }
  // And when something of the queue, or below it, ends.
  void RevisitWith(ClassId id, QueueId queue) { state_.pending_.RevisitWith(id, queue); }
  // What an action that was asked to make room for a blocked class says to people.
  void TellAsked(ClassId id, RoomAsked asked) { state_.pending_.TellAsked(id, std::move(asked)); }
  // What waits in classes whose verdict is now that they can never be placed is no demand any more,
  // and of others it is again. Between actions, as it changes shares. O(jobs of those classes).
  void SettleNever();
  // Jobs that came since the last call, or came back with more service or from a hold, or all since
  // the policies are others: they have no rank yet. May repeat, and name jobs that are gone.
  std::vector<JobId> TakeUnranked() { return std::exchange(state_.unranked_, {}); }
  // Queues of which more or less waits (Queue::line_waits) than at the last call, or did meanwhile.
  std::vector<QueueId> TakeMovedLines();
  // Some job may have been given a rank.
  bool ranked() const { return state_.ranked_; }
  void ForgetRanked() { state_.ranked_ = false; }
  // Before planning: labels that terms name, or name no longer, since the last call are part of
  // what tells classes apart, or are not (AffinityIndex). Not within a trial, whose classes come
  // back. O(jobs) if there are any.
  void FollowTerms();
  // Where it stands in its queue (OrderKey::rank). Goes it first in its class now, that is looked
  // at again: what is kept for those after it may have to be kept for it.
  void SetRank(JobId id, int64_t rank);
  // The job is to be ranked anew then; and no longer.
  void RankAgain(JobId id, Time at) { state_.ageing_.insert({at, id}); }
  void NotAgain(JobId id, Time at) { state_.ageing_.erase({at, id}); }
  // Returns it now.
  void Reopen(ClassId id) { state_.pending_.Reopen(id); }
  // What planning finds out about classes between these two is forgotten with the second, by when
  // all tentative edits in between are undone: planning goes on as if nothing had been asked.
  void BeginTrial() { state_.pending_.BeginTrial(); }
  void EndTrial();
  // Nodes that came, or are not what they were (NodeSpec), since the last call; may repeat, and
  // name nodes that have gone again. They have no marks.
  std::vector<NodeId> TakeNewNodes() { return std::exchange(state_.new_nodes_, {}); }
  void SetNodeMarks(NodeId id, FreeIndex::Marks marks) { state_.free_.SetMarks(id, marks); }
  // Before FreeIndex::ForEachMarked, after any edit.
  void SyncMarks() { state_.free_.SyncMarks(); }
  // The nodes whose offer (what is free there, whether it takes tasks, its specification) is not
  // what it was at the follower's `*position`, tried and undone edits included; some may have
  // changed back, and some be gone. Moves the position to now. False: too much has happened since,
  // or it is 0, the follower's first: anything may have changed.
  bool ReadChangedNodes(uint64_t* position, std::vector<NodeId>* nodes) {
    return state_.free_.ReadLog(position, nodes);
  }
  // PendingIndex::missed() has been dealt with.
  void ForgetMissed() { state_.pending_.missed_.clear(); }
  // Queues whose demand, specification, usage or children are not what they were at the last call,
  // undone edits included; also erased ones. Each once.
  std::vector<QueueId> TakeChangedQueues();
  std::unique_ptr<PlanningCache>& planning_cache() { return state_.planning_cache_; }
  // Nothing is known any more of what cannot be placed: the policies are others.
  void ForgetVerdicts();
  // Before it: if any node could give more since then, returns to ready() the blocked classes of
  // jobs that are kept a place, as they may start earlier now; but each not sooner after it was
  // found blocked than `refresh`.
  void WakeReserved(Duration refresh);
  // Returns to ready() what waits for room and one task of which `fits` on a node that could give
  // more since the last call. A node that changed otherwise than by a task that left is asked for
  // every shape.
  void WakeForRoom(absl::FunctionRef<bool(ShapeId, NodeId)> fits);

  // Loading, into a fresh state: queues parents first, HyperNodes, nodes, job specs, then statuses
  // and tasks, then FinishLoad. Anything may be left out that equals what a new one has.
  // INVALID_ARGUMENT or FAILED_PRECONDITION name what is wrong with a record (unknown ids, repeated
  // ids or names, too many kinds, an occupied device taken twice).
  absl::Status LoadQueue(QueueId id, QueueSpec spec, bool open, uint64_t revision);
  absl::Status LoadQueueUsage(QueueId id, std::vector<NamedAmount> usage);
  absl::Status LoadQueueLine(QueueId id, int64_t line, int64_t longest);
  void LoadUsageCharged(Time when) { SetUsageCharged(when); }
  absl::Status LoadRequestMix(RequestMix mix);
  absl::Status LoadHyperNode(HyperNodeId id, HyperNodeSpec spec, uint64_t revision);
  absl::Status LoadNode(NodeId id, NodeSpec spec, NodeStatus status, uint64_t revision);
  // After its HyperNodes. Ascending.
  absl::Status LoadNodeDomains(NodeId id, absl::Span<const HyperNodeId> domains);
  absl::Status LoadJob(JobId id, const JobSpec& spec, Time submit, uint64_t revision,
                       const RunPrediction& prediction = {}, const LinePlace& line = {});
  // In order of their numbers.
  absl::Status LoadRun(RunId id, FinishedRun run);
  // `priority` and `labels` as last updated.
  // Before its status, where the walltime was updated.
  absl::Status LoadWalltime(JobId id, Duration walltime);
  absl::Status LoadJobStatus(JobId id, JobStatus status, int32_t priority,
                             std::map<std::string, std::string> labels, uint64_t revision);
  // After the job and the nodes.
  absl::Status LoadReservation(JobId id, Reservation reservation);
  absl::Status LoadTask(TaskKey key, const Task& task, absl::string_view message);
  // Ids up to these were given out before, also of what was deleted since.
  absl::Status LoadNextIds(JobId job, NodeId node, QueueId queue, HyperNodeId hyper_node);
  // Nothing is dirty; jobs that the lifecycle stage may not have finished with are unsettled.
  void FinishLoad();

 private:
  struct QueueChange;  // what one edit adds to a queue and its ancestors
  bool facts() const { return mode_ == EditMode::kFacts; }
  void Touch(JobId id);
  void MarkJob(JobId id);
  // Facts only: what could help blocked classes happened.
  void QueueCouldHelp(QueueId leaf);
  void NodeCouldHelp(NodeId id);
  void AnythingCouldHelp();
  void ShareChanged(Queue& queue);
  void DemandChangedBelow(Queue& queue);
  void KeepForChildren(Queue& parent);
  void CountCapacity(const Node& node, bool add);
  void ChangeQueues(QueueId leaf, const QueueChange& change);
  void MoveHolds(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old);
  void CountLeavingTask(const Task& task, const ShapeEntry& shape, int sign);
  void CountLeaving(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old);
  void CountLeavingJob(Job& job, bool left_before);
  void CountClaimed(const Job& job, const ShapeEntry& shape, bool claimed);
  void ListTask(const Job& job, TaskKey key, TaskState old);
  void ListOccupying(Job& job, bool list);
  void ListEnd(const Job& job, Time before, Time now);
  void StatusChanged(Job& job, const GangStart& before, Time end_before);
  void CountInLine(const Job& job, int sign);
  void ChangeUser(const Job& job, const Resources& request, int sign);
  void CountUsers(Queue& queue);
  void Occupy(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void Vacate(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void Reserve(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void Unreserve(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void CountHolds(Node& node);
  void ReindexNode(const Node& node);
  void DeriveNode(Node& node);
  void DeriveQueue(Queue& queue);
  void Claim(const HyperNode& domain, bool claim);
  void SetParent(HyperNode& child, HyperNodeId parent);
  void NameTier(const HyperNodeSpec& spec, bool name);
  void TopologyChanged();
  void RefreshPending(Job& job);
  void LeavePending(Job& job);
  void RememberClass(Job& job);
  void SetNever(ClassId id, bool never);
  void ForgetNever();  // nodes or domains are not what they were
  void RefreshWanting(Job& job);
  void RefreshTimer(Job& job);
  void DropTimer(Job& job);
  void RefreshShort(const Job& job);
  void ListDependencies(const Job& job, bool list);
  void MayForget(JobId id);
  Resources WaitingRequest(const Job& job) const;

  ClusterState& state_;
  EditMode mode_;
  std::vector<JobId> touched_;  // may repeat
  // Classes of jobs before they first changed, in that order.
  struct Origin {
    JobId job;
    ClassId pending_class;
  };
  bool remembers_classes_ = false;
  std::vector<Origin> origins_;
};

// The earliest time after `after` at which the job needs a look though nothing happens: its start
// time, back-off, walltime, prepare timeout, delayed actions, or the end of its time to live.
// InfiniteFuture if there is none.
Time NextDue(const Job& job, Time after);

// Hash over all facts and derived sums, in id order, with names instead of interned ids: equal for
// equal states on every machine, whether folded or loaded. Leaves out what planning caches
// (verdicts, unsettled, passed time, dirt).
uint64_t Fingerprint(const ClusterState& state);

// Rebuilds everything derived from the facts and compares. INTERNAL naming the first difference.
absl::Status CheckConsistency(const ClusterState& state);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_STATE_EDITOR_H_
