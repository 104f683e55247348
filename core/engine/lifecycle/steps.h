// Building blocks of lifecycle steps. For core/engine/lifecycle/, and for evictions, which
// restart jobs in the same way (core/engine/victims/victim_plan.cc, core/actions/expire_gangs.cc).
#ifndef BERTH_CORE_ENGINE_LIFECYCLE_STEPS_H_
#define BERTH_CORE_ENGINE_LIFECYCLE_STEPS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/engine/lifecycle/lifecycle.h"

namespace berth {

using TaskList = std::vector<uint32_t>;  // indexes, ascending

// "worker-3"
std::string TaskLabel(const Job& job, uint32_t task);
// " on n12", or "" if it never had a node.
std::string OnNode(const Look& look, uint32_t task);

TaskList TasksWhere(const Job& job, absl::FunctionRef<bool(const Task&)> test);
// It occupies resources and has not been asked to stop.
bool Holds(const Task& task);

// The job's status with a change.
template <class Change>
EventBody WithStatus(const Look& look, Change&& change) {
  JobStatus status = look.job.status;
  change(status);
  return JobStatusChanged{.job = look.job.id, .status = std::move(status)};
}

// True if the members other than `leaving` still meet the minimum of the job and of each begun
// group.
bool KeepsMinimum(const Job& job, const TaskList& leaving);

// ---- Gangs (membership.cc)

// Others meet where this task runs: a coordinator, or rank 0 if some find each other anew.
bool HostsRendezvous(const Job& job, uint32_t task);

// True if these tasks can be replaced while the others go on.
bool Replaceable(const Job& job, const TaskList& tasks);

inline bool IsRestart(PolicyAction action) {
  return action <= PolicyAction::kRestartJob || action == PolicyAction::kRestartPartition;
}

// The restart of a task, or of its group, as far as it must reach so that no gang runs in pieces.
PolicyAction WidenForGang(const Job& job, uint32_t task, PolicyAction action);

// ---- Ends and restarts (steps.cc)

// The outcome is decided: ends the job, or first stops what still occupies resources.
Step Conclude(const Look& look, JobState outcome, const std::string& message);

// Stops or requeues the tasks, so that each waits for another start.
void Requeue(const Look& look, const TaskList& tasks, ReleaseReason reason, Step* step);

// The whole job waits for another start, not before `hold_until`. Work that is certainly done is
// kept: groups that succeeded as a whole, and succeeded tasks of elastic groups, unless
// `rerun_all`.
Step RestartJob(const Look& look, ReleaseReason reason, const std::string& message, Time hold_until,
                int32_t retries, bool rerun_all);

// ---- Places (places.cc)

// Gives up the places that its tasks wait for: nominations, and the destinations of tasks that move
// after their release.
void DropPlaces(const Look& look, Step* step);

// Makes `step`, a restart of the job, keep the places that its tasks have, as far as tasks can run
// there again (LifecycleParameters::restart_hold).
void KeepPlaces(const Look& look, Step* step);

// The task may be at this place: the node takes tasks, does not repel it, and the devices are
// healthy.
bool IsFitPlace(const Look& look, uint32_t task, NodeId node, const DeviceSet& devices);

// These tasks lost their place through no fault of the job. They alone are replaced if the others
// can go on (Replaceable); otherwise the whole job restarts. Uses no retry.
Step Displace(const Look& look, const TaskList& tasks, ReleaseReason reason,
              const std::string& message);

// Sum over all groups but the coordinator and spares.
GroupTally WorkersOf(const Job& job);

// Members that succeeded and must run again with the others, because their gang is not complete.
TaskList SucceededToRerun(const Job& job);

// The delay before the given retry (1 = the first): doubles each time, up to 64 times.
Duration RetryBackoff(const Job& job, int32_t retries);

// Stages of a job's life, in the order in which NextStep calls them. Empty = nothing to do.
Step Expire(const Look& look);          // ended: time to live                       end.cc
Step Finish(const Look& look);          // Completing: stop, then end
Step CompleteIfDone(const Look& look);  // every task ended
Step EndAtRunLimit(const Look& look);   // too long since the first start
Step SeriesStep(const Look& look);      // of a series, always the only one          series.cc
Step Suspend(const Look& look);         // the user's hold                           hold.cc
Step Admit(const Look& look);           // Held or Pending
Step AwaitRestart(const Look& look);    // Restarting: until nothing occupies, and back-off is over
Step LeaveUnfitPlaces(const Look& look);  // a place it waits for no longer exists
Step AnswerRefusals(const Look& look);    // and prepare timeouts              refusals.cc
Step EndRefusals(const Look& look);       // nodes are avoided no longer; the job runs completely
Step AvoidBadNodes(const Look& look);     // where its devices failed                 avoid.cc
Step EndAvoidance(const Look& look);      // they may be used again
Step ReplaceSaved(const Look& look);      // they ended when a drain asked them to save  drain.cc
Step LeaveDraining(const Look& look);     // nodes, and devices
Step LeaveTainted(const Look& look);      // nodes whose taints evict its tasks     leaving.cc
Step UseSpares(const Look& look);         // tasks that wait take the places of spares     spares.cc
Step StartPrepared(const Look& look);     //                                        gang.cc
Step ReachRunning(const Look& look);
Step PauseOrResume(const Look& look);  // frozen where it is                    pause.cc
Step AskCheckpoint(const Look& look);  // before the walltime ends        checkpoint.cc
Step ApplyPolicies(const Look& look);  // failures, lost nodes, completion, walltime   policy.cc
Step GiveBackRetry(const Look& look);  // it restarts, and a node or device was at fault incident.cc

// ---- Pauses (pause.cc)

// On hold, and it keeps its places, where its tasks are frozen.
bool StaysPaused(const Look& look);

// ---- Series (series.cc)

struct JobsAndTasks {
  int64_t jobs = 0;
  int64_t tasks = 0;
};
// How many more of its jobs the queues and the cluster take, besides those `made` in this cycle.
int64_t RoomForMembers(const ClusterState& state, const Job& series, JobsAndTasks made = {});

// ---- Failures of its own (incident.cc)

// How the task ended: "worker-0 exited with 127 on n1: command not found: trian.py".
std::string HowItFailed(const Look& look, uint32_t task);
// 128 + N if a signal ended it.
int32_t ExitCode(const Task& task);
// It failed soon after the latest incident began, in an attempt that ran before: part of it.
bool InIncident(const Look& look, const Task& task);
// Of failures of one moment, the one that most likely caused the others comes first: an exit code
// other than 1, with which programs follow their peers, then the earliest.
bool FailedBefore(const Task& a, const Task& b);
// "worker-3 exited with 137 on n3; 3 others followed", now that all have ended; empty if no failure
// of its own stopped the job.
std::string WholeIncident(const Look& look);

// ---- Hangs (hang.cc)

// Tasks that hang were asked for their stacks, and have time to write them.
bool AwaitsStacks(const Look& look);
// "worker-0 hangs on n3: no progress for 10m, at step 120".
std::string HowItHangs(const Look& look);

// ---- Nodes and devices to leave (leaving.cc)

// A taint of the node that makes the task leave it, and keeps it away; null: none.
const Taint* TaintAgainst(const Look& look, uint32_t task, const Node& node);
// It has a place that it could leave, and its agent is there to stop it.
bool MayLeave(const Task& task);
// A device that the task holds, also while it stops, and that is unhealthy; null: none.
const Device* UnhealthyDevice(const Look& look, uint32_t task);
// "worker-3: device GPU-1a2b of n3 is unhealthy", or how it failed because of its device.
std::string HowItsDeviceFails(const Look& look, uint32_t task);

// ---- Tasks that wait (waits.cc)

// For `step`, an eviction of tasks or, with `whole`, of the job, that ends with the job's status:
// adds what the policies on evictions demand.
void NoteEviction(const Look& look, bool whole, Step* step);
// The action was added by NoteEviction, and the task has not been bound again.
bool AwaitsAnswer(const Job& job, const DelayedAction& delayed);
// "worker-3 was evicted for job big".
std::string HowItWasEvicted(const Look& look, uint32_t task);
// "worker-3 has waited for a place for 10m".
std::string HowItWaits(const Look& look, uint32_t task);

// ---- Checkpoints (checkpoint.cc)

// It ended with one of JobSpec::saved_exit_codes after it was asked to save its work.
bool Saved(const Job& job, const Task& task);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LIFECYCLE_STEPS_H_
