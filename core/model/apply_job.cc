#include <algorithm>
#include <utility>

#include "core/model/apply_internal.h"
#include "core/model/finished_run.h"
#include "core/model/line.h"
#include "core/model/refusals.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

std::string GroupOfJob(const GroupSpec& group, const JobSpec& job) {
  return absl::StrCat("group ", group.name, " of job ", job.name);
}

absl::Status CheckShape(const JobSpec& job, const GroupSpec& group) {
  const TaskShape& shape = group.shape;
  for (int64_t amount : {shape.cpu_millis, shape.memory_bytes}) {
    if (amount < 0 || amount > kMaxAmount) {
      return Invalid(GroupOfJob(group, job), ": cpu and memory must be 0 to ", kMaxAmount, ", not ",
                     amount);
    }
  }
  for (size_t i = 0; i < shape.devices.size(); ++i) {
    const DeviceRequest& request = shape.devices[i];
    const auto is_same = [&](const DeviceRequest& other) { return other.kind == request.kind; };
    const auto end = shape.devices.begin() + static_cast<ptrdiff_t>(i);
    if (request.kind.empty() || std::any_of(shape.devices.begin(), end, is_same)) {
      return Invalid(GroupOfJob(group, job), ": one request per kind of device (\"", request.kind,
                     "\")");
    }
    if (request.count < 0 || request.count > static_cast<int32_t>(kMaxDevicesPerNode)) {
      return Invalid(GroupOfJob(group, job), ": ", request.kind, " must be 0 to ",
                     kMaxDevicesPerNode, ", not ", request.count);
    }
  }
  if (shape.extended.empty()) return absl::OkStatus();
  return CheckAmounts(shape.extended, GroupOfJob(group, job));
}

// depends_on must name other groups, without cycles.
absl::Status CheckGroupDependencies(const JobSpec& spec) {
  if (spec.groups.size() == 1 && spec.groups[0].depends_on.empty()) return absl::OkStatus();
  std::vector<bool> open(spec.groups.size(), false);  // can start once their dependencies have
  for (size_t round = 0; round < spec.groups.size(); ++round) {
    for (size_t g = 0; g < spec.groups.size(); ++g) {
      bool met = true;
      for (const GroupDependency& dependency : spec.groups[g].depends_on) {
        if (dependency.group >= spec.groups.size()) {
          return Invalid("group ", spec.groups[g].name, " depends on group ", dependency.group,
                         ", which does not exist");
        }
        met = met && open[dependency.group];
      }
      open[g] = met;
    }
  }
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    if (!open[g]) return Invalid("group ", spec.groups[g].name, " depends on itself in a cycle");
  }
  return absl::OkStatus();
}

absl::Status CheckTopology(const TopologyConstraint& topology, const std::string& whose) {
  if (!topology.Any()) {
    return topology == TopologyConstraint{}
               ? absl::OkStatus()
               : Invalid(whose, ": a topology constraint needs a mode");
  }
  if (topology.highest_tier < 0) return Invalid(whose, ": a tier must not be negative");
  if (topology.highest_tier > 0 && !topology.highest_tier_name.empty()) {
    return Invalid(whose, ": a topology constraint names its tier by number or by name, not both");
  }
  if (topology.kind.empty()) return Invalid(whose, ": a topology constraint needs a kind");
  if (topology.patience < absl::ZeroDuration() ||
      (topology.mode == TopologyMode::kHard && topology.patience > absl::ZeroDuration())) {
    return Invalid(whose, ": patience must not be negative, and needs a soft topology");
  }
  return absl::OkStatus();
}

absl::Status CheckDomains(const GroupSpec& group, const std::string& whose) {
  if (auto status = CheckTopology(group.topology, whose); !status.ok()) return status;
  auto status = CheckTopology(group.partition_topology, whose);
  if (!status.ok()) return status;
  if (group.partition_topology.Any() && group.partition_size == 0) {
    return Invalid(whose, ": a topology of partitions needs partitions");
  }
  if (group.affinity_tier < 0) return Invalid(whose, ": a tier must not be negative");
  if (group.communication < 0 || group.communication > kMaxCommunication) {
    return Invalid(whose, ": communication must be 0 to ", kMaxCommunication, ", not ",
                   group.communication);
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const GroupSpec& group, size_t groups, const std::string& whose) {
  const int32_t size = group.partition_size;
  if (size < 0 || (size > 0 && (group.replicas % size != 0 || group.min_available % size != 0))) {
    return Invalid(whose, ": partitions of ", size, " must divide replicas and min_available");
  }
  if (group.spare_of.has_value() && (*group.spare_of >= groups || group.min_available != 0)) {
    return Invalid(whose, ": spares need a group of the job, and no minimum");
  }
  for (const std::vector<uint32_t>* list : {&group.near_groups, &group.apart_from}) {
    for (uint32_t other : *list) {
      if (other >= groups) return Invalid(whose, ": affinity to unknown group ", other);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAffinity(const JobSpec& spec) {
  for (const AffinityTerm& term : spec.affinity) {
    const auto twice = [](const LabelPair& a, const LabelPair& b) { return a.first >= b.first; };
    const bool sorted =
        std::adjacent_find(term.labels.begin(), term.labels.end(), twice) == term.labels.end();
    if (term.tier < 0 || term.labels.empty() || !sorted) {
      return Invalid("job ", spec.name, ": affinity needs labels, sorted, and a tier of 0 or more");
    }
  }
  return absl::OkStatus();
}

// For groups that are spread, or preemptible in a job that is not.
absl::Status CheckExtras(const JobSpec& spec, int64_t minimum) {
  for (const GroupSpec& group : spec.groups) {
    const std::string whose = GroupOfJob(group, spec);
    if (group.spread.tier < 0 || group.spread.max_skew < 0) {
      return Invalid(whose, ": a tier and a skew must not be negative");
    }
    const bool topology =
        spec.topology.Any() || group.topology.Any() || group.partition_topology.Any();
    if (group.spread.Any() && topology) return Invalid(whose, ": spread excludes a topology");
    const bool surplus = group.min_available == 0 && spec.min_available == minimum;
    if (group.preemptible && !spec.preemptible && !surplus) {
      return Invalid(whose, ": preemptible in a non-preemptible job needs min_available 0");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const JobSpec& spec) {
  if (spec.groups.empty()) return Invalid("job ", spec.name, " has no groups");
  int64_t replicas = 0;
  int64_t minimum = 0;
  for (const GroupSpec& group : spec.groups) {
    if (group.replicas < 1 || group.min_available < 0 || group.min_available > group.replicas) {
      return Invalid(GroupOfJob(group, spec), ": needs 0 <= min_available <= replicas, not ",
                     group.min_available, " and ", group.replicas);
    }
    if (auto status = CheckShape(spec, group); !status.ok()) return status;
    auto layout = CheckLayout(group, spec.groups.size(), GroupOfJob(group, spec));
    if (!layout.ok()) return layout;
    auto domains = CheckDomains(group, GroupOfJob(group, spec));
    if (!domains.ok()) return domains;
    replicas += group.replicas;
    minimum += group.min_available;
  }
  if (replicas > kMaxTasksPerJob) {
    return Invalid("job ", spec.name, " has ", replicas, " tasks; at most ", kMaxTasksPerJob);
  }
  const int64_t least = std::max<int64_t>(minimum, 1);
  if (spec.min_available < least || spec.min_available > replicas) {
    return Invalid("job ", spec.name, ": min_available must be ", least, " to ", replicas, ", not ",
                   spec.min_available);
  }
  if (auto status = CheckExtras(spec, minimum); !status.ok()) return status;
  if (auto status = CheckAffinity(spec); !status.ok()) return status;
  auto topology = CheckTopology(spec.topology, absl::StrCat("job ", spec.name));
  return topology.ok() ? CheckGroupDependencies(spec) : topology;
}

absl::Status CheckQueue(const ClusterState& state, const JobSpec& spec) {
  int64_t tasks = 0;
  for (const GroupSpec& group : spec.groups) tasks += group.replicas;
  const Queue* leaf = state.queues().Find(spec.queue);
  if (leaf == nullptr) return NotFound("job ", spec.name, ": no queue ", spec.queue.value);
  if (!leaf->children.empty()) return Refused(NameOf(*leaf), " has children: only a leaf has jobs");
  for (QueueId id = spec.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    if (!queue.open) return Refused(NameOf(queue), " is closed");
    if (queue.spec.max_jobs > 0 && queue.active_jobs >= queue.spec.max_jobs) {
      return absl::ResourceExhaustedError(
          absl::StrCat(NameOf(queue), " is at its limit of ", queue.spec.max_jobs, " jobs"));
    }
    if (queue.spec.max_tasks > 0 && queue.active_tasks + tasks > queue.spec.max_tasks) {
      return absl::ResourceExhaustedError(absl::StrCat(NameOf(queue), " has ", queue.active_tasks,
                                                       " tasks; at most ", queue.spec.max_tasks,
                                                       ", and job ", spec.name, " has ", tasks));
    }
    if (id == kRootQueue) return absl::OkStatus();
  }
}

absl::Status CheckSubmitted(const ClusterState& state, const JobSubmitted& event) {
  const JobSpec& spec = event.spec;
  if (event.id < state.next_job_id()) {
    return Refused("the next job is ", state.next_job_id().value, ", not ", event.id.value);
  }
  if (event.id > kLastJobId) return Refused("job uids end at ", kLastJobId.value);
  if (spec.name.empty()) return Invalid("a job needs a name");
  if (state.FindJob(spec.name) != nullptr) return Exists("job ", spec.name, " exists");
  if (auto status = CheckGroups(spec); !status.ok()) return status;
  if (auto status = CheckQueue(state, spec); !status.ok()) return status;
  for (const JobDependency& dependency : spec.dependencies) {
    if (state.jobs().Find(dependency.job) == nullptr) {
      return NotFound("job ", spec.name, " depends on job ", dependency.job.value,
                      ", which does not exist");
    }
  }
  std::vector<absl::string_view> kinds;
  for (const GroupSpec& group : spec.groups) {
    for (absl::string_view name : KindNames(group.shape)) kinds.push_back(name);
  }
  return state.interner().CanAddKinds(kinds);
}

absl::Status CheckActive(const ClusterState& state, JobId id) {
  const Job* job = state.jobs().Find(id);
  if (job == nullptr) return NotFound("no job ", id.value);
  if (!Ended(job->status.state)) return absl::OkStatus();
  return Refused(NameOf(*job), " has ended: ", NameOf(job->status.state));
}

// It may be longer or shorter, but must exceed the time that the job has already run.
absl::Status CheckWalltime(const Job& job, const JobUpdated& event, Time now) {
  if (!event.walltime.has_value()) return absl::OkStatus();
  if (*event.walltime <= absl::ZeroDuration()) {
    return Invalid(NameOf(job), ": a walltime must be more than 0");
  }
  if (Ended(job.status.state)) {
    return Refused(NameOf(job), " has ended: ", NameOf(job.status.state));
  }
  if (job.series || job.status.state != JobState::kRunning ||
      RunTime(job.status, now) < *event.walltime) {
    return absl::OkStatus();
  }
  return Refused(NameOf(job),
                 " has run longer than that: ", absl::FormatDuration(RunTime(job.status, now)));
}

void EndLostTasks(StateEditor& editor, const Job& job, Time now) {
  for (uint32_t index = 0; index < job.tasks.size(); ++index) {
    const Task& task = job.tasks[index];
    if (task.state == TaskState::kLost) EndByForce(editor, {job.id, index}, task, now);
  }
}

}  // namespace

void EndByForce(StateEditor& editor, TaskKey key, const Task& task, Time now) {
  editor.SetTask(key, EndedByForce(task, now));
  editor.SetTaskMessage(key, "ended by force while its node was silent; it may still run there");
}

absl::Status ApplyBody(ClusterState& state, const JobSubmitted& event, Time now) {
  if (auto status = CheckSubmitted(state, event); !status.ok()) return status;
  StateEditor editor(state);
  editor.AddJob(event.id, event.spec, now, PredictionFor(state, event.spec));
  if (event.in_line && !event.spec.series)
    editor.EnterLine(event.id, WorkOf(state, state.jobs().At(event.id)));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobUpdated& event, Time now) {
  const Job* job = state.jobs().Find(event.id);
  if (job == nullptr) return NotFound("no job ", event.id.value);
  if (auto status = CheckWalltime(*job, event, now); !status.ok()) return status;
  StateEditor editor(state);
  if (event.walltime.has_value()) editor.SetJobWalltime(event.id, *event.walltime);
  if (event.priority != job->priority) editor.SetJobPriority(event.id, event.priority);
  editor.SetJobLabels(event.id, event.labels);
  return absl::OkStatus();
}

// Records both kinds of requests; the lifecycle stage decides what follows. Repeating a request
// changes nothing, except that a forced cancel ends tasks that have been lost by then.
absl::Status ApplyBody(ClusterState& state, const JobCancelled& event, Time now) {
  if (auto status = CheckActive(state, event.id); !status.ok()) return status;
  JobStatus status = state.jobs().At(event.id).status;
  const bool first = !status.cancelled || (event.force && !status.forced);
  StateEditor editor(state);
  if (first) {
    status.cancelled = true;
    status.forced = status.forced || event.force;
    status.message = event.reason;
    editor.SetJobStatus(event.id, std::move(status));
  }
  if (event.force) EndLostTasks(editor, state.jobs().At(event.id), now);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobSuspended& event, Time) {
  if (auto status = CheckActive(state, event.id); !status.ok()) return status;
  JobStatus status = state.jobs().At(event.id).status;
  // One that is frozen may still be stopped; one that is stopped cannot be frozen.
  const bool stops = event.suspended && status.pause.wanted && !event.freeze;
  if (status.suspended == event.suspended && !stops) return absl::OkStatus();
  status.suspended = event.suspended;
  status.pause.wanted = event.suspended && event.freeze;
  if (!event.why.empty()) status.message = event.why;
  StateEditor(state).SetJobStatus(event.id, std::move(status));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobDeleted& event, Time) {
  const Job* job = state.jobs().Find(event.id);
  if (job == nullptr) return NotFound("no job ", event.id.value);
  if (!Ended(job->status.state)) {
    return Refused(NameOf(*job), " has not ended: ", NameOf(job->status.state));
  }
  if (job->occupying > 0) {
    return Refused(NameOf(*job), " still has ", job->occupying, " tasks on nodes");
  }
  if (const auto waiting = state.Dependents(event.id); !waiting.empty()) {
    return Refused(NameOf(*job), " is still a dependency of ",
                   NameOf(state.jobs().At(waiting.front())));
  }
  StateEditor(state).EraseJob(event.id);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobStatusChanged& event, Time) {
  if (auto status = CheckActive(state, event.job); !status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  const JobStatus& value = event.status;
  if (value.starts != job.status.starts || value.suspended != job.status.suspended ||
      value.cancelled != job.status.cancelled || value.forced != job.status.forced ||
      value.pause.wanted != job.status.pause.wanted) {
    return Refused(NameOf(job), ": starts, suspended and cancelled have separate events");
  }
  if (Ended(value.state) && job.occupying > 0) {
    return Refused(NameOf(job), " cannot be ", NameOf(value.state), " with ", job.occupying,
                   " tasks on nodes");
  }
  if (Ended(value.state) && TallyOf(job).Nominated() > 0) {
    return Refused(NameOf(job), " cannot be ", NameOf(value.state), " while tasks are nominated");
  }
  if (value.state == JobState::kCompleting && !Ended(value.outcome)) {
    return Refused(NameOf(job), " cannot be Completing without an outcome");
  }
  if (!WellFormed(value.refusals)) return Invalid(NameOf(job), ": refusals out of order");
  if (!WellFormed(value.avoided)) return Invalid(NameOf(job), ": avoided nodes out of order");
  JobStatus status = value;  // may predate an eviction of this turn
  status.evictions = job.status.evictions;
  status.eviction = job.status.eviction;
  const JobState before = job.status.state;
  const bool held = before == JobState::kHeld || before == JobState::kSuspended;
  const bool released = held && InLine(status.state);
  if (released) status.line_from = state.queues().At(job.queue).line;
  StateEditor(state).SetJobStatus(event.job, std::move(status));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobRunRecorded& event, Time) {
  const Job* job = state.jobs().Find(event.job);
  if (job == nullptr) return NotFound("no job ", event.job.value);
  if (!Ended(job->status.state) || RunOf(*job) <= absl::ZeroDuration()) {
    return Refused(NameOf(*job), " has no finished run");
  }
  StateEditor(state).AddRun(state.run_history().next(), FinishedRunOf(state, *job));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const JobReserved& event, Time) {
  if (event.reservation.places.empty()) {  // given up, perhaps because the job ended or was deleted
    if (state.reservations().contains(event.job)) StateEditor(state).SetReservation(event.job, {});
    return absl::OkStatus();
  }
  if (auto status = CheckActive(state, event.job); !status.ok()) return status;
  const Job& job = state.jobs().At(event.job);
  const Reservation& reservation = event.reservation;
  if (reservation.start >= reservation.end) {
    return Invalid(NameOf(job), ": a reservation must end after it starts");
  }
  for (const Placement& place : reservation.places) {
    if (place.task >= job.tasks.size()) return NotFound(NameOf(job), " has no task ", place.task);
    if (state.nodes().Find(place.node) == nullptr) return NotFound("no node ", place.node.value);
  }
  StateEditor(state).SetReservation(event.job, reservation);
  return absl::OkStatus();
}

}  // namespace berth::apply_internal

namespace berth {

absl::Status CheckJobSubmitted(const ClusterState& state, const JobSubmitted& event) {
  return apply_internal::CheckSubmitted(state, event);
}

}  // namespace berth
