// Starts that were refused, or not prepared in time: whose fault it was, and what follows.
//
// The node's fault (no disk space, no process, a failed prolog, no answer in time): the node backs
// off, twice as long each time. It is cordoned after refusals of several jobs in a row: nothing new
// goes there, and running tasks continue. Refusals while a node backs off belong to the same
// incident, because those starts were sent before. The job uses no retry and is tried elsewhere;
// from the third time on it waits first, twice as long each time. After kMaxRefusedStarts in a row
// it fails. Members that are refused one after the other on nodes to which nothing of the job is
// sent any more are one incident.
//
// The job's fault (a directory, a user, an image, a prepareTimeout below the default) does not
// count against the node. The job alone avoids the node for a moment, so that another node is tried
// first. The job fails with the second incident, or at once if two nodes refused the gang for it.
//
//   worker-0 refused by n1, own fault   n1 avoided until now + 5 s, the gang starts again without
//   it worker-0 refused by n2, own fault   Failed "worker-0: cannot enter /typo (refused by n1 and
//   n2)"
//
// Nobody's fault (no room for an image, an image that is not unpacked in time) does not count
// against the node either. The job waits as for faults of nodes, and avoids the nodes that refused
// it.
//
// Refusals of tasks beyond the minimum never end a job: it requests no more places for a while.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"

namespace berth {
namespace {

constexpr Duration kAvoidNode = absl::Seconds(5);  // that refused through the job's fault
constexpr int32_t kStartsWithoutWait = 2;          // after faults of nodes, or nobody's

bool Refused(const Task& task) {
  return task.state == TaskState::kFailed && task.end_cause == EndCause::kRefused;
}

bool PrepareTimedOut(const Look& look, const Task& task) {
  return task.state == TaskState::kBound && task.since + look.job.prepare_timeout <= look.now;
}

enum class Fault : uint8_t { kJob, kNode, kNobody };

// For a task that was refused, or not prepared in time. A short prepareTimeout, or an image that
// takes long, does not make the node guilty.
Fault FaultOf(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (Refused(task)) {
    return task.own_fault ? Fault::kJob : task.nobodys_fault ? Fault::kNobody : Fault::kNode;
  }
  if (look.job.prepare_timeout < kDefaultPrepareTimeout) return Fault::kJob;
  return look.job.groups[GroupOf(look.job, index)].has_image ? Fault::kNobody : Fault::kNode;
}

// Doubles with each refusal in a row.
Duration Backoff(const LifecycleParameters& parameters, int32_t refusals) {
  Duration wait = parameters.refusal_backoff;
  for (int32_t i = 1; i < refusals && wait < parameters.refusal_backoff_max; ++i) wait *= 2;
  return std::min(wait, parameters.refusal_backoff_max);
}

// One incident of a job.
struct RefusalIncident {
  TaskList tasks;              // refused, or not prepared in time
  std::vector<NodeId> own;     // nodes that refused through the job's fault, ascending
  std::vector<NodeId> nodes;   // nodes at fault, ascending
  std::vector<NodeId> nobody;  // nodes that refused through nobody's fault, ascending
  uint32_t first = 0;          // the task that the message names
  bool spare = false;          // the job keeps its minimum without them
};

void SortOnce(std::vector<NodeId>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

std::string NodeNames(const Look& look, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (NodeId id : nodes) {
    const Node* node = look.state.nodes().Find(id);
    if (node != nullptr) names.push_back(node->spec.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  }
  return text;
}

std::string TextOf(const Look& look, uint32_t task) {
  return std::string(look.state.TaskMessage({look.job.id, task}));
}

// The nodes that the message of this incident names.
std::vector<NodeId> RefusingNodes(const RefusalIncident& incident) {
  if (!incident.own.empty()) return incident.own;
  std::vector<NodeId> all = incident.nodes;
  all.insert(all.end(), incident.nobody.begin(), incident.nobody.end());
  SortOnce(all);
  return all;
}

// "worker-0: cannot enter /typo (refused by n1 and n2)"
// "worker-0 was not prepared within 1ms (prepareTimeout) on n1 and n2"
std::string RefusalMessage(const Look& look, const RefusalIncident& incident,
                           const std::vector<NodeId>& nodes) {
  const uint32_t task = incident.first;
  const std::string label = TaskLabel(look.job, task);
  const std::string by = NodeNames(look, nodes);
  if (!Refused(look.job.tasks[task])) {
    return absl::StrCat(label, " was not prepared within ",
                        absl::FormatDuration(look.job.prepare_timeout), " (prepareTimeout)",
                        by.empty() ? "" : absl::StrCat(" on ", by));
  }
  const std::string text = TextOf(look, task);
  return absl::StrCat(label, ": ", text.empty() ? "its start was refused" : text,
                      by.empty() ? "" : absl::StrCat(" (refused by ", by, ")"));
}

RefusalIncident RefusalIncidentOf(const Look& look, TaskList tasks) {
  RefusalIncident incident;
  incident.tasks = std::move(tasks);
  incident.first = incident.tasks[0];
  for (uint32_t task : incident.tasks) {
    const Fault fault = FaultOf(look, task);
    if (fault == Fault::kJob && incident.own.empty()) incident.first = task;
    std::vector<NodeId>& list = fault == Fault::kJob    ? incident.own
                                : fault == Fault::kNode ? incident.nodes
                                                        : incident.nobody;
    list.push_back(look.job.tasks[task].node);
  }
  for (auto* list : {&incident.own, &incident.nodes, &incident.nobody}) SortOnce(*list);
  return incident;
}

// Members of a group that began later than the job and cannot start without those that leave.
void AddBrokenGroups(const Job& job, TaskList* leaving) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    const GroupTally& tally = job.tallies[g];
    const auto in_group = [&](uint32_t task) { return GroupOf(job, task) == g; };
    const bool started = tally.In(TaskState::kStarting) + tally.In(TaskState::kRunning) > 0;
    if (started || std::none_of(leaving->begin(), leaving->end(), in_group)) continue;
    for (uint32_t i = 0; i < static_cast<uint32_t>(group.replicas); ++i) {
      if (Holds(job.tasks[group.first_task + i])) leaving->push_back(group.first_task + i);
    }
  }
  std::sort(leaving->begin(), leaving->end());
  leaving->erase(std::unique(leaving->begin(), leaving->end()), leaving->end());
}

// ---- The node's side

std::string WhyRefused(const Look& look, const RefusalIncident& incident, NodeId node) {
  for (uint32_t task : incident.tasks) {
    const Task& value = look.job.tasks[task];
    if (value.node != node || FaultOf(look, task) != Fault::kNode) continue;
    if (!Refused(value)) return "a task was not prepared in time";
    return TextOf(look, task);
  }
  return "";
}

// It has refused a member of the job, and nothing has been sent there since.
bool BacksOffFor(const Look& look, const Node& node) {
  return node.status.backoff_until > look.now && node.status.last_refused == look.job.id;
}

// One refusal per node, however many members it refused at once.
void Blame(const Look& look, const RefusalIncident& incident, NodeId id, Step* step) {
  const Node* node = look.state.nodes().Find(id);
  if (node == nullptr) return;
  if (BacksOffFor(look, *node)) return;
  const bool again = node->status.backoff_until > look.now;
  const int32_t refusals = node->status.refusals + (again ? 0 : 1);
  const std::string why = WhyRefused(look, incident, id);
  const Time until =
      again ? node->status.backoff_until : look.now + Backoff(look.parameters, refusals);
  NodeRefused refused{
      .id = id, .refusals = refusals, .backoff_until = until, .job = look.job.id, .message = why};
  // Counts different jobs: one job that is refused everywhere must not cordon the cluster.
  const int32_t jobs = AfterRefusal(node->status, refused, look.now).refused_jobs;
  step->push_back(std::move(refused));
  const int32_t bound = look.parameters.cordon_after_refusals;
  if (bound == 0 || jobs < bound || node->status.cordoned) return;
  step->push_back(NodeSteered{.id = id,
                              .cordoned = true,
                              .draining = node->status.draining,
                              .reason = absl::StrCat(kCordonedForRefusals, jobs, " jobs in a row",
                                                     why.empty() ? "" : ", the last: ", why),
                              .drain = node->status.drain});
}

// ---- The job's side

void Remember(const std::vector<NodeId>& nodes, Refusals* refusals) {
  refusals->nodes.insert(refusals->nodes.end(), nodes.begin(), nodes.end());
  SortOnce(refusals->nodes);
  if (refusals->nodes.size() <= kMaxRefusingNodes) return;
  const size_t latest = std::min(nodes.size(), kMaxRefusingNodes);
  refusals->nodes.assign(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(latest));
}

// Part of an incident that was counted already: these starts were sent before the job learned of
// it, and nothing of the job has been sent to those nodes since.
bool CountedBefore(const Look& look, const RefusalIncident& incident) {
  const Refusals& refusals = look.job.status.refusals;
  const bool waits = refusals.until > look.now;
  const bool running = look.job.status.state == JobState::kRunning;
  const bool rests = waits && refusals.rests;
  if (rests && (incident.spare || (running && incident.own.empty()))) return true;
  const auto avoids = [&](const std::vector<NodeId>& nodes) {
    return waits &&
           std::includes(refusals.nodes.begin(), refusals.nodes.end(), nodes.begin(), nodes.end());
  };
  // A rest belongs to other incidents: its end says nothing about these nodes.
  if (!incident.own.empty()) return !refusals.rests && avoids(incident.own);
  if (!incident.nobody.empty() && !avoids(incident.nobody)) return false;
  return std::all_of(incident.nodes.begin(), incident.nodes.end(), [&](NodeId id) {
    const Node* node = look.state.nodes().Find(id);
    return node != nullptr && BacksOffFor(look, *node);
  });
}

Refusals Counted(const Look& look, const RefusalIncident& incident) {
  Refusals refusals = look.job.status.refusals;
  Remember(incident.own, &refusals);
  Remember(incident.nobody, &refusals);
  if (CountedBefore(look, incident)) return refusals;
  const bool running = look.job.status.state == JobState::kRunning;
  if (incident.spare) {
    ++refusals.spare;
    refusals.rests = true;
    refusals.until = look.now + Backoff(look.parameters, refusals.spare);
  } else if (!incident.own.empty()) {
    ++refusals.own;
    refusals.rests = false;
    refusals.until = look.now + kAvoidNode;
  } else {
    ++refusals.starts;
    const int32_t waits = refusals.starts - kStartsWithoutWait;
    const Duration wait = waits > 0 ? Backoff(look.parameters, waits) : absl::ZeroDuration();
    refusals.rests = running && waits > 0;
    if (refusals.rests) refusals.until = look.now + wait;
    // The first moment after the wait also belongs to other nodes.
    if (!incident.nobody.empty()) refusals.until = look.now + wait + kAvoidNode;
  }
  return refusals;
}

// Why the job is not tried again; empty if it is.
std::string WhyGivenUp(const Look& look, const RefusalIncident& incident,
                       const Refusals& refusals) {
  if (incident.spare) return "";
  const bool own = refusals.own >= kMaxOwnRefusals || incident.own.size() >= kMaxOwnRefusals;
  if (own && !incident.own.empty()) return RefusalMessage(look, incident, refusals.nodes);
  if (refusals.starts < kMaxRefusedStarts) return "";
  return absl::StrCat(RefusalMessage(look, incident, RefusingNodes(incident)), "; ",
                      refusals.starts, " starts in a row were refused");
}

Time HoldUntil(const Look& look, const RefusalIncident& incident, const Refusals& refusals) {
  const int32_t waits = refusals.starts - kStartsWithoutWait;
  if (!incident.own.empty() || waits <= 0) return absl::InfinitePast();
  return look.now + Backoff(look.parameters, waits);
}

// Tasks that cannot start without these are requeued with them.
void TakeBack(const Look& look, const RefusalIncident& incident, const Refusals& refusals,
              Step* step) {
  const auto record = [&](JobStatus& status) {
    status.refusals = refusals;
    status.message = RefusalMessage(look, incident, RefusingNodes(incident));
  };
  TaskList leaving = incident.tasks;
  const bool timed_out = look.job.tasks[leaving[0]].state == TaskState::kBound;
  const ReleaseReason reason =
      timed_out ? ReleaseReason::kPrepareTimeout : ReleaseReason::kGangBroken;
  if (look.job.status.state == JobState::kBinding && !incident.spare) {
    JobStatus status = look.job.status;
    record(status);
    Step restart = RestartJob(look, reason, status.message, HoldUntil(look, incident, refusals),
                              status.retries, /*rerun_all=*/false);
    std::get<JobStatusChanged>(restart.back()).status.refusals = refusals;
    std::move(restart.begin(), restart.end(), std::back_inserter(*step));
    return;
  }
  if (look.job.status.state == JobState::kRunning) AddBrokenGroups(look.job, &leaving);
  Requeue(look, leaving, reason, step);
  step->push_back(WithStatus(look, record));
}

}  // namespace

Step AnswerRefusals(const Look& look) {
  const GroupTally tally = TallyOf(look.job);
  if (tally.In(TaskState::kFailed) + tally.In(TaskState::kBound) == 0) return {};
  TaskList tasks = TasksWhere(
      look.job, [&](const Task& task) { return Refused(task) || PrepareTimedOut(look, task); });
  if (tasks.empty()) return {};
  RefusalIncident incident = RefusalIncidentOf(look, std::move(tasks));
  incident.spare = KeepsMinimum(look.job, incident.tasks);
  Step step;
  for (NodeId node : incident.nodes) Blame(look, incident, node, &step);
  const Refusals refusals = Counted(look, incident);
  if (const std::string why = WhyGivenUp(look, incident, refusals); !why.empty()) {
    Step end = Conclude(look, JobState::kFailed, why);
    std::get<JobStatusChanged>(end.back()).status.refusals = refusals;
    std::move(end.begin(), end.end(), std::back_inserter(step));
    return step;
  }
  TakeBack(look, incident, refusals, &step);
  return step;
}

Step EndRefusals(const Look& look) {
  const Refusals& refusals = look.job.status.refusals;
  if (refusals == Refusals{}) return {};
  const GroupTally tally = StartersOf(look.job);
  const int32_t runs = tally.In(TaskState::kRunning) + tally.In(TaskState::kSucceeded);
  if (look.job.status.state == JobState::kRunning && runs == tally.All()) {
    return {WithStatus(look, [](JobStatus& status) { status.refusals = {}; })};
  }
  if (refusals.until == absl::InfinitePast() || refusals.until > look.now) return {};
  return {WithStatus(look, [](JobStatus& status) {
    status.refusals.until = absl::InfinitePast();
    status.refusals.rests = false;
  })};
}

}  // namespace berth
