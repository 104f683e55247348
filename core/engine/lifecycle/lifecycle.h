// The lifecycle stage: everything that follows from reports, requests and the time. It runs first
// in a cycle, over the jobs whose facts changed (ClusterState::unsettled) and those with a timer
// due.
//
// One step of one job is a pure function of the state: NextStep looks at the job and returns the
// next decisions, or none. The stage repeats steps until the job is settled. All its inputs are in
// the state, so it does not matter how many reports arrived since the last time.
//
//   Pending <-> Held        dependencies, start time, the user's hold before the first start
//   Pending -> Binding      when bound (actions/allocate)
//   Binding -> Running      all members prepared -> TasksStarted; all reported running
//   Binding, Running -> Restarting -> Pending
//                           a failure with retries left, a lost or draining node, a refusal
//   any -> Completing -> Succeeded | Failed | Cancelled
//   any -> Suspended        once nothing occupies
//   Running stays Running   while it is paused: its tasks are frozen where they are
//
// A series, which makes jobs, has no tasks and steps of its own (series.cc).
#ifndef BERTH_CORE_ENGINE_LIFECYCLE_LIFECYCLE_H_
#define BERTH_CORE_ENGINE_LIFECYCLE_LIFECYCLE_H_

#include <vector>

#include "core/engine/cycle.h"

namespace berth {

// One job, as a step sees it.
struct Look {
  const ClusterState& state;
  const Job& job;
  Time now;
  const LifecycleParameters& parameters;
  // Of jobs that series make in this cycle: the uid of the next; those that were made, and their
  // tasks.
  JobId next_job = {};
  int64_t made = 0;
  int64_t made_tasks = 0;
};

// In order; empty if nothing follows from the known facts. Decisions that belong together (a
// requeue and the status that explains it) are one step.
using Step = std::vector<EventBody>;

Step NextStep(const Look& look);

// Settles every unsettled job, or as many as the budget allows.
void RunLifecycle(Cycle& cycle);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LIFECYCLE_LIFECYCLE_H_
