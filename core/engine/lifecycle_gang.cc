// Starting gangs, and giving back places that turned out to be none.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle_steps.h"

namespace berth {
namespace {

bool Refused(const Task& task) {
  return task.state == TaskState::kFailed && task.end_cause == EndCause::kRefused;
}

bool PrepareTimedOut(const Look& look, const Task& task) {
  return task.state == TaskState::kBound && task.since + look.job.prepare_timeout <= look.now;
}

// Doubles with each refusal in a row.
Duration Backoff(const LifecycleParameters& parameters, int32_t refusals) {
  Duration wait = parameters.refusal_backoff;
  for (int32_t i = 1; i < refusals && wait < parameters.refusal_backoff_max; ++i) wait *= 2;
  return std::min(wait, parameters.refusal_backoff_max);
}

void Blame(const Look& look, NodeId id, Step* step) {
  const Node* node = look.state.nodes().Find(id);
  if (node == nullptr) return;
  const int32_t refusals = node->status.refusals + 1;
  step->push_back(NodeRefused{.id = id,
                              .refusals = refusals,
                              .backoff_until = look.now + Backoff(look.parameters, refusals),
                              .job = look.job.id});
  // Different jobs: one that is refused everywhere must not drain the cluster.
  const int32_t jobs = RefusedJobs(node->status, look.job.id);
  const int32_t bound = look.parameters.drain_after_refusals;
  if (bound == 0 || jobs < bound || node->status.draining) return;
  step->push_back(NodeSteered{.id = id,
                              .cordoned = true,
                              .draining = true,
                              .reason = absl::StrCat("refused ", jobs, " jobs in a row")});
}

// One refusal a node, however many members it turned away at once.
void BlameNodesOf(const Look& look, const TaskList& tasks, Step* step) {
  std::vector<NodeId> nodes;
  for (uint32_t task : tasks) nodes.push_back(look.job.tasks[task].node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (NodeId node : nodes) Blame(look, node, step);
}

bool Started(const GroupTally& tally) {
  return tally.In(TaskState::kStarting) + tally.In(TaskState::kRunning) > 0;
}

// Members of a group that began later than the job and cannot start without those that leave.
void AddBrokenGroups(const Job& job, TaskList* leaving) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    const auto in_group = [&](uint32_t task) { return GroupOf(job, task) == g; };
    if (std::none_of(leaving->begin(), leaving->end(), in_group) || Started(job.tallies[g])) {
      continue;
    }
    for (uint32_t i = 0; i < static_cast<uint32_t>(group.replicas); ++i) {
      if (Holds(job.tasks[group.first_task + i])) leaving->push_back(group.first_task + i);
    }
  }
  std::sort(leaving->begin(), leaving->end());
  leaving->erase(std::unique(leaving->begin(), leaving->end()), leaving->end());
}

// Prepared tasks of a running job: a group that runs takes them one by one; one that does not yet
// starts together.
bool MayStart(const Job& job, uint32_t group) {
  const GroupTally& tally = job.tallies[group];
  if (Started(tally)) return true;
  // Those that ended, and were not requeued, are not waited for.
  const int32_t ready = tally.In(TaskState::kPrepared) + tally.In(TaskState::kSucceeded) +
                        tally.In(TaskState::kFailed);
  return tally.In(TaskState::kBound) == 0 && ready >= job.groups[group].min_available;
}

TaskList PreparedOf(const Job& job, bool whole_gang) {
  TaskList tasks;
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].In(TaskState::kPrepared) == 0) continue;
    if (!whole_gang && !MayStart(job, g)) continue;
    const uint32_t first = job.groups[g].first_task;
    for (uint32_t i = first; i < first + static_cast<uint32_t>(job.groups[g].replicas); ++i) {
      if (job.tasks[i].state == TaskState::kPrepared) tasks.push_back(i);
    }
  }
  return tasks;
}

// On a silent node, and not known to run: should it come back, it starts with the gang.
bool AnyLostOnTheWay(const Job& job, const GroupTally& tally) {
  if (tally.In(TaskState::kLost) == 0) return false;
  return std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.state == TaskState::kLost && Holds(task) && task.before_lost != TaskState::kRunning;
  });
}

// The walltime runs from the first member's start.
Time FirstStart(const Look& look) {
  Time first = look.now;
  for (const Task& task : look.job.tasks) {
    if (task.state == TaskState::kRunning) first = std::min(first, task.start);
  }
  return first;
}

}  // namespace

// A member that was refused, or not prepared in time, blames its node; the job uses no retry. What
// cannot start without that member goes back to the queue with it.
Step BlameNodes(const Look& look) {
  const GroupTally tally = TallyOf(look.job);
  if (tally.In(TaskState::kFailed) + tally.In(TaskState::kBound) == 0) return {};
  TaskList blamed = TasksWhere(
      look.job, [&](const Task& task) { return Refused(task) || PrepareTimedOut(look, task); });
  if (blamed.empty()) return {};
  Step step;
  BlameNodesOf(look, blamed, &step);
  const std::string message =
      absl::StrCat(TaskLabel(look.job, blamed[0]), " was not prepared", OnNode(look, blamed[0]));
  const bool timed_out = look.job.tasks[blamed[0]].state == TaskState::kBound;
  const ReleaseReason reason =
      timed_out ? ReleaseReason::kPrepareTimeout : ReleaseReason::kGangBroken;
  if (look.job.status.state == JobState::kBinding) {
    for (EventBody& decision : Displace(look, blamed, reason, message)) {
      step.push_back(std::move(decision));
    }
    return step;
  }
  AddBrokenGroups(look.job, &blamed);
  Requeue(look, blamed, reason, &step);
  return step;
}

Step LeaveDraining(const Look& look) {
  TaskList leaving = TasksWhere(look.job, [&](const Task& task) {
    return Holds(task) && task.state != TaskState::kLost &&
           look.state.nodes().At(task.node).status.draining;
  });
  if (leaving.empty()) return {};
  const std::string message =
      absl::StrCat(TaskLabel(look.job, leaving[0]), " had to leave ",
                   look.state.nodes().At(look.job.tasks[leaving[0]].node).spec.name);
  return Displace(look, leaving, ReleaseReason::kDrain, message);
}

// The gang starts when every member has answered; a member on a silent node has not.
Step StartPrepared(const Look& look) {
  const GroupTally tally = TallyOf(look.job);
  if (tally.In(TaskState::kPrepared) == 0) return {};
  const bool whole_gang = look.job.status.state == JobState::kBinding;
  if (whole_gang && (tally.In(TaskState::kBound) > 0 || tally.In(TaskState::kLost) > 0)) return {};
  TaskList tasks = PreparedOf(look.job, whole_gang);
  if (tasks.empty()) return {};
  return {TasksStarted{.job = look.job.id, .tasks = std::move(tasks)}};
}

Step ReachRunning(const Look& look) {
  if (look.job.status.state != JobState::kBinding) return {};
  const GroupTally tally = TallyOf(look.job);
  const int32_t on_the_way =
      tally.In(TaskState::kBound) + tally.In(TaskState::kPrepared) + tally.In(TaskState::kStarting);
  if (on_the_way > 0 || AnyLostOnTheWay(look.job, tally)) return {};
  // All were taken away again before anything started: it goes on being bound.
  const int32_t gone = tally.Waiting() + tally.In(TaskState::kReleasing);
  if (gone == static_cast<int32_t>(look.job.tasks.size())) return {};
  return {WithStatus(look, [&](JobStatus& status) {
    status.state = JobState::kRunning;
    status.start = FirstStart(look);
  })};
}

}  // namespace berth
