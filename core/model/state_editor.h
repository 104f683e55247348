// StateEditor: the only writer of ClusterState. It keeps everything derived consistent with the
// facts. It checks only for our own bugs (Apply checks events).
//
// The central function is SetTask: it removes the old value's contribution from every sum and index
// and adds the new one's. It returns the old value. Undo means setting old values again, in reverse
// order (core/engine/transaction.h).
//
// Two things are updated only at Sync() (and when the editor ends): the pending index and the
// timers of jobs that were edited. So a gang is placed member by member without a class for each
// half-placed state.
//
// Not thread-safe. Editors of one state may nest only if the inner one ends before the outer edits
// again.
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

struct MemberRank;  // core/model/transitions.h

enum class EditMode : uint8_t {
  kFacts,      // Apply: marks dirty and unsettled objects, sets timers, reopens blocked classes
  kTentative,  // planning: none of these; every edit will be undone
};

class StateEditor {
 public:
  explicit StateEditor(ClusterState& state, EditMode mode = EditMode::kFacts);
  ~StateEditor();  // Sync()
  StateEditor(const StateEditor&) = delete;
  StateEditor& operator=(const StateEditor&) = delete;

  // Applies the edits so far to the pending index (and, with kFacts, to the timers).
  void Sync();

  // Planning: all edits of this editor will be undone. RestoreClasses then returns every job to its
  // previous class, which is cheaper than finding it again.
  void RememberClasses() { remembers_classes_ = true; }
  // Requires that every edit so far has been undone.
  void RestoreClasses();
  // Edits that were not undone have become facts, and every job stays in its present class. Classes
  // from `first` on are treated as made by facts; if all edits had been undone, what was found out
  // about them would be forgotten.
  void KeepClasses(ClassId first);
  // The job will be edited soon.
  void Prefetch(JobId id) const;
  // In between, the order of FreeIndex does not follow edits, and must not be read.
  void HoldOrder() { state_.free_.Hold(); }
  void ReleaseOrder() { state_.free_.Release(); }

  // Tasks and jobs. Ids must exist. Both return the old value. About 200 ns and no allocation in
  // the common case.
  Task SetTask(TaskKey key, const Task& value);
  JobStatus SetJobStatus(JobId id, JobStatus status);
  // Sets only that part of the status, without copying the rest.
  GangStart SetGangStart(JobId id, const GangStart& start);
  // For trials only: removes the occupying task from its node, and from nothing else; and puts it
  // back.
  void DetachTask(TaskKey key);
  // Likewise: sets the job's walltime. Its class and its timer stay unchanged.
  void TryWalltime(JobId id, Duration walltime);
  void ReattachTask(TaskKey key);
  // A tentative edit of the task that was not undone becomes a fact: marks what SetTask would have.
  void AdoptTask(TaskKey key);
  // The same for SetGangStart, and for a task; without the timers. The pending index is already up
  // to date.
  void AdoptGangStart(JobId id, bool gang);  // gang: not only the epoch changed
  void MarkTask(TaskKey key);
  void AdoptTimers(JobId id);
  // The job's tasks have moved, which may unblock jobs blocked by affinity. Facts only.
  void WakeForAffinity(JobId id);
  // For a task that was just bound; affects nothing else.
  void SetMemberRank(TaskKey key, const MemberRank& rank);
  // The message of the latest ended attempt; empty removes it.
  void SetTaskMessage(TaskKey key, absl::string_view message);
  // Without places: removes it.
  void SetReservation(JobId id, Reservation reservation);
  void SetJobPriority(JobId id, int32_t priority);
  // Updated by the user: differs from the submitted one.
  void SetJobWalltime(JobId id, Duration walltime);
  void SetJobLabels(JobId id, std::map<std::string, std::string> labels);
  // The id must be absent; next_job_id moves past it. Its kinds must have room
  // (Interner::CanAddKinds).
  void AddJob(JobId id, const JobSpec& spec, Time submit, const RunPrediction& prediction = {});
  // Adds the last added job to its queue's line.
  void EnterLine(JobId id, int64_t work);
  // No task of it may occupy.
  void EraseJob(JobId id);
  // Removes the last added job, unchanged since, as if it never existed: next_job_id becomes `next`
  // again, its previous value.
  void UndoAddJob(JobId id, JobId next);

  // Queues and nodes. Their kinds must have room.
  void AddQueue(QueueId id, QueueSpec spec);
  void SetQueueSpec(QueueId id, QueueSpec spec);  // name and parent unchanged
  void SetQueueOpen(QueueId id, bool open);
  void SetQueueUsage(QueueId id, std::vector<NamedAmount> usage);
  void SetUsageCharged(Time when);
  void SetRequestMix(RequestMix mix);
  void ChangeAccess(const AccessChange& change);  // AccessRules::Check has accepted it
  void ChangePriorityClasses(const PriorityClassChange& change);  // likewise
  // RunHistory::Add.
  void AddRun(RunId id, FinishedRun run);
  void EraseQueue(QueueId id);  // no jobs, no children
  void AddNode(NodeId id, NodeSpec spec, NodeStatus status);
  void SetNodeSpec(NodeId id,
                   NodeSpec spec);  // same name; the caller first moves its tasks' device sets
  void SetNodeStatus(NodeId id, NodeStatus status);
  // Ascending; at most kMaxNodeImages.
  void SetNodeImages(NodeId id, std::vector<ImageId> images);
  void EraseNode(NodeId id);  // no tasks

  // HyperNodes: a new one with the next id, or a known one's new specification (same name and
  // kind). CheckHyperNodes must have accepted it.
  void SetHyperNode(HyperNodeId id, HyperNodeSpec spec);
  void EraseHyperNode(HyperNodeId id);
  // Ascending. None of them is in it yet; each leaves its previous domain of that kind.
  void JoinNodes(HyperNodeId domain, absl::Span<const NodeId> nodes);
  // Ascending; all of them are in it.
  void LeaveNodes(HyperNodeId domain, absl::Span<const NodeId> nodes);

  // Planning's caches: not facts, in either mode, and never undone. Settle: the lifecycle stage has
  // processed the job.
  void Settle(JobId id) { state_.unsettled_.erase(id); }
  // Advances to `now`: jobs with something due by then become unsettled, and nodes whose back-off
  // is over take tasks again. Afterwards all due times in the state are later than `now`. Time
  // never goes back.
  void PassTime(Time now);
  // No job of the class can be placed now. It leaves ready() until something happens that could
  // help.
  void Block(ClassId id, BlockedVerdict verdict) {
    verdict.found = state_.passed_time_;
    state_.pending_.Block(id, std::move(verdict));
  }
  // A blocked class returns to ready() at `at` at the latest (later than now; or InfiniteFuture).
  void Revisit(ClassId id, Time at) { state_.pending_.Revisit(id, at); }
  // And when something in the queue, or below it, ends.
  void RevisitWith(ClassId id, QueueId queue) { state_.pending_.RevisitWith(id, queue); }
  // The reason, for people, why an action made no room for a blocked class.
  void NoteAsked(ClassId id, RoomAsked asked) { state_.pending_.NoteAsked(id, std::move(asked)); }
  // Removes pending tasks from demand if their class's verdict says that they can never be placed,
  // and adds them again when that changes. Between actions, as it changes shares. O(jobs of those
  // classes).
  void SettleNever();
  // Jobs without a rank: those that came since the last call, or returned with more service or from
  // a hold, or all if the policies changed. May repeat, and name jobs that are gone.
  std::vector<JobId> TakeUnranked() { return std::exchange(state_.unranked_, {}); }
  // Queues whose pending work (Queue::line_waits) changed since the last call, even temporarily.
  std::vector<QueueId> TakeMovedLines();
  // True if some job may have been given a rank.
  bool ranked() const { return state_.ranked_; }
  void ForgetRanked() { state_.ranked_ = false; }
  // Before planning: makes labels that terms began or ceased to name since the last call part, or
  // no longer part, of what distinguishes classes (AffinityIndex). Not within a trial, which
  // restores classes. O(jobs) if there are such labels.
  void FollowTerms();
  // The job's position in its queue (OrderKey::rank). If it becomes the first of its class, the
  // class is tried again: reservations of later jobs may have to go to it.
  void SetRank(JobId id, int64_t rank);
  // Schedules the next ranking of the job; and cancels it.
  void RankAgain(JobId id, Time at) { state_.ageing_.insert({at, id}); }
  void NotAgain(JobId id, Time at) { state_.ageing_.erase({at, id}); }
  // Returns it to ready() now.
  void Reopen(ClassId id) { state_.pending_.Reopen(id); }
  // EndTrial discards what planning found out about classes since BeginTrial. All tentative edits
  // in between must be undone by then. Planning continues as if the question had never been asked.
  void BeginTrial() { state_.pending_.BeginTrial(); }
  void EndTrial();
  // Nodes that are new or changed (NodeSpec, images) since the last call; may repeat, and name
  // nodes that were deleted. They have no marks.
  std::vector<NodeId> TakeNewNodes() { return std::exchange(state_.new_nodes_, {}); }
  void SetNodeMarks(NodeId id, FreeIndex::Marks marks) { state_.free_.SetMarks(id, marks); }
  // Before FreeIndex::ForEachMarked, after any edit.
  void SyncMarks() { state_.free_.SyncMarks(); }
  // The nodes whose offer (free resources, whether it takes tasks, its specification) changed since
  // the follower's `*position`, including tried and undone edits. Some may have changed back, and
  // some be deleted. Advances the position. False: too much has happened, or it is 0, the
  // follower's first call: treat every node as changed.
  bool ReadChangedNodes(uint64_t* position, std::vector<NodeId>* nodes) {
    return state_.free_.ReadLog(position, nodes);
  }
  // PendingIndex::missed() has been processed.
  void ForgetMissed() { state_.pending_.missed_.clear(); }
  // Queues whose demand, specification, usage or children changed since the last call, including
  // undone edits and erased queues. Unique.
  std::vector<QueueId> TakeChangedQueues();
  std::unique_ptr<PlanningCache>& planning_cache() { return state_.planning_cache_; }
  // Forgets all verdicts: the policies have changed.
  void ForgetVerdicts();
  // Call it before WakeForRoom. If any node could give more since then, returns to ready() the
  // blocked classes of jobs with reservations, as they may start earlier now; but each at the
  // earliest `refresh` after it was found blocked.
  void WakeReserved(Duration refresh);
  // Returns to ready() classes that wait for room, if one task of theirs `fits` on a node that
  // could give more since the last call. `fits` is called for every shape on a node that changed
  // otherwise than by a task that left.
  void WakeForRoom(absl::FunctionRef<bool(ShapeId, NodeId)> fits);

  // Loading, into a fresh state: queues parents first, HyperNodes, nodes, job specs, then statuses
  // and tasks, then FinishLoad. Everything that equals its initial value may be omitted.
  // INVALID_ARGUMENT or FAILED_PRECONDITION name what is wrong with a record (unknown ids, repeated
  // ids or names, too many kinds, an occupied device taken twice).
  absl::Status LoadQueue(QueueId id, QueueSpec spec, bool open, uint64_t revision);
  absl::Status LoadQueueUsage(QueueId id, std::vector<NamedAmount> usage);
  absl::Status LoadQueueLine(QueueId id, int64_t line, int64_t longest);
  void LoadUsageCharged(Time when) { SetUsageCharged(when); }
  absl::Status LoadRequestMix(RequestMix mix);
  // After the queues. The change that makes the rules out of none.
  absl::Status LoadAccess(const AccessChange& rules);
  absl::Status LoadPriorityClasses(const PriorityClassChange& classes);
  absl::Status LoadHyperNode(HyperNodeId id, HyperNodeSpec spec, uint64_t revision);
  absl::Status LoadNode(NodeId id, NodeSpec spec, NodeStatus status, uint64_t revision);
  // After its HyperNodes. Ascending.
  absl::Status LoadNodeImages(NodeId id, std::vector<ImageId> images);
  absl::Status LoadNodeDomains(NodeId id, absl::Span<const HyperNodeId> domains);
  absl::Status LoadJob(JobId id, const JobSpec& spec, Time submit, uint64_t revision,
                       const RunPrediction& prediction = {}, const LinePlace& line = {});
  // In order of their ids.
  absl::Status LoadRun(RunId id, FinishedRun run);
  // `priority` and `labels` as last updated. LoadWalltime, for updated walltimes, precedes the
  // status.
  absl::Status LoadWalltime(JobId id, Duration walltime);
  absl::Status LoadJobStatus(JobId id, JobStatus status, int32_t priority,
                             std::map<std::string, std::string> labels, uint64_t revision);
  // After the job and the nodes.
  absl::Status LoadReservation(JobId id, Reservation reservation);
  absl::Status LoadTask(TaskKey key, const Task& task, absl::string_view message);
  // Ids up to these were assigned before, including deleted ones.
  absl::Status LoadNextIds(JobId job, NodeId node, QueueId queue, HyperNodeId hyper_node);
  // The next job has at least this uid.
  void RaiseNextJob(JobId job);
  // Nothing is dirty; jobs that the lifecycle stage may not have finished are unsettled.
  void FinishLoad();

 private:
  bool facts() const { return mode_ == EditMode::kFacts; }
  void Touch(JobId id);
  void MarkJob(JobId id);
  // Facts only: something happened that could help blocked classes.
  void WakeForQueue(QueueId leaf);
  void WakeForNode(NodeId id);
  void WakeAll();
  void ShareChanged(Queue& queue);
  void DemandChangedBelow(Queue& queue);
  void KeepForChildren(Queue& parent);
  void CountCapacity(const Node& node, bool add);
  void ChangeQueues(QueueId leaf, const Resources& request, const QueueFigures<int>& change);
  void MoveHolds(Job& job, TaskKey key, const ShapeEntry& shape, const Task& old);
  void CountLeavingTask(const Job& job, const Task& task, const ShapeEntry& shape, int sign);
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
  void Occupy(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices,
              bool frozen);
  void Vacate(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices,
              bool frozen);
  void ReserveLent(const Task& task, const ShapeEntry& shape, int sign);
  void CountLent(NodeId id);
  void Reserve(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void Unreserve(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices);
  void CountHolds(Node& node);
  void ReindexNode(const Node& node);
  void DeriveNode(Node& node);
  void DeriveAgain(Node& node);
  void ListDrainEnd(const Node& node);
  void ListImages(const Node& node);
  void UnlistImages(const Node& node);
  void ListExpelling(const Node& node);
  void DrainChanged(const Node& node, const NodeStatus& old);
  void DeriveQueue(Queue& queue);
  void Claim(const HyperNode& domain, bool claim);
  void SetParent(HyperNode& child, HyperNodeId parent);
  void NameTier(const HyperNodeSpec& spec, bool name);
  void TopologyChanged();
  void RefreshPending(Job& job);
  void LeavePending(Job& job);
  void RememberClass(Job& job);
  void SetNever(ClassId id, bool never);
  void ForgetNever();  // nodes or domains have changed
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
  // The classes of jobs before their first change, in that order.
  struct Origin {
    JobId job;
    ClassId pending_class;
  };
  bool remembers_classes_ = false;
  std::vector<Origin> origins_;
};

// The earliest time after `after` at which the job must be processed even if nothing happens: its
// start time, back-off, walltime, prepare timeout, delayed actions, or the end of its time to live.
// InfiniteFuture if there is none.
Time NextDue(const Job& job, Time after);

// Hash over all facts and derived sums, in id order, with names instead of interned ids: equal for
// equal states on every machine, whether folded or loaded. Excludes planning's caches (verdicts,
// unsettled, passed time, dirty sets).
uint64_t Fingerprint(const ClusterState& state);

// Rebuilds everything derived from the facts and compares. INTERNAL naming the first difference.
absl::Status CheckConsistency(const ClusterState& state);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_STATE_EDITOR_H_
