// StateEditor: loading records. The result must equal the fold of the events.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/hyper_node_check.h"
#include "core/model/line.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

std::vector<absl::string_view> NamesOf(const std::vector<NamedAmount>& amounts) {
  std::vector<absl::string_view> names;
  for (const NamedAmount& amount : amounts) names.push_back(amount.name);
  return names;
}

std::vector<absl::string_view> KindNames(const NodeSpec& spec) {
  std::vector<absl::string_view> names = NamesOf(spec.extended);
  for (const Device& device : spec.devices) {
    if (names.empty() || names.back() != device.kind) names.push_back(device.kind);
  }
  return names;
}

absl::Status Repeated(absl::string_view what, uint64_t id, absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", id, " (", name, "): its id or name already exists"));
}

absl::Status Unknown(absl::string_view what, uint64_t id, absl::string_view needed) {
  return absl::FailedPreconditionError(absl::StrCat(what, " ", id, ": ", needed));
}

// True if the lifecycle stage may have work left.
bool MayBeUnsettled(const Job& job) {
  if (Ended(job.status.state)) return false;
  if (job.series) return true;
  const bool untouched =
      job.status == JobStatus{} && job.occupying == 0 &&
      TallyOf(job).In(TaskState::kPending) == static_cast<int32_t>(job.tasks.size());
  return !untouched || !job.dependencies.empty() || job.start_after != absl::InfinitePast();
}

// Checks that the devices exist, and that no other task uses those that are held in a conflicting
// way.
absl::Status CheckHold(const ClusterState& state, const ShapeEntry& shape, NodeId id,
                       const DeviceSet& devices, const DeviceSet& held, DeviceUse Node::*taken) {
  const Node* node = state.nodes().Find(id);
  if (node == nullptr) return absl::NotFoundError(absl::StrCat("no node ", id.value));
  for (size_t i = node->spec.devices.size(); i < kMaxDevicesPerNode; ++i) {
    if (devices.Has(i)) return absl::NotFoundError(absl::StrCat("node has no device ", i));
  }
  if ((node->*taken).Clashes(UseOf(*node, shape, held))) {
    return absl::AlreadyExistsError("another task has one of its devices");
  }
  return absl::OkStatus();
}

// Rejects what no event produces and later ones rely on.
absl::Status CheckTask(const ClusterState& state, const ShapeEntry& shape, const Task& task) {
  if (task.state == TaskState::kLost &&
      (!Occupies(task.before_lost) || task.before_lost == TaskState::kLost)) {
    return absl::InvalidArgumentError("it is lost but was not on a node before");
  }
  if (task.moves && !(Releasing(task) && task.requeue)) {
    return absl::InvalidArgumentError("it moves but is not released to run again");
  }
  if (!MayPause(task)) return absl::InvalidArgumentError("it is paused and does not run");
  if (task.devices_lent && shape.share > 0) {
    return absl::InvalidArgumentError("it lends a share of a device");
  }
  const bool holds = Occupies(task.state) || Reserves(task.state);
  if (task.claimed && (!holds || (Releasing(task) && !task.moves))) {
    return absl::InvalidArgumentError("it claims a place but holds none");
  }
  if (Occupies(task.state)) {
    auto status =
        CheckHold(state, shape, task.node, task.devices, DevicesHeld(task), &Node::devices_used);
    if (!status.ok()) return status;
  }
  if (Reserves(task.state)) {
    return CheckHold(state, shape, task.node, task.devices, task.devices, &Node::devices_reserved);
  }
  if (!task.moves) return absl::OkStatus();
  return CheckHold(state, shape, task.next_node, task.next_devices, task.next_devices,
                   &Node::devices_reserved);
}

}  // namespace

absl::Status StateEditor::LoadQueue(QueueId id, QueueSpec spec, bool open, uint64_t revision) {
  mode_ = EditMode::kTentative;
  for (const auto* amounts : {&spec.limit, &spec.deserved, &spec.guarantee}) {
    if (auto status = state_.interner_.CanAddKinds(NamesOf(*amounts)); !status.ok()) return status;
  }
  if (id == kRootQueue) {
    if (spec.name != state_.queues_.At(id).spec.name) {
      return absl::InvalidArgumentError(absl::StrCat("queue 0 is the root, not ", spec.name));
    }
    SetQueueSpec(id, std::move(spec));
  } else {
    if (state_.queues_.Find(id) != nullptr || state_.FindQueue(spec.name) != nullptr) {
      return Repeated("queue", id.value, spec.name);
    }
    if (state_.queues_.Find(spec.parent) == nullptr) {
      return Unknown("queue", id.value, absl::StrCat("no parent queue ", spec.parent.value));
    }
    AddQueue(id, std::move(spec));
  }
  Queue& queue = state_.queues_.At(id);
  queue.open = open;
  queue.revision = revision;
  return absl::OkStatus();
}

absl::Status StateEditor::LoadRequestMix(RequestMix mix) {
  if (auto status = CheckMix(mix); !status.ok()) return status;
  SetRequestMix(std::move(mix));
  return absl::OkStatus();
}

absl::Status StateEditor::LoadAccess(const AccessChange& rules) {
  for (const Grant& grant : rules.grant) {
    if (state_.queues_.Find(grant.queue) != nullptr) continue;
    return Unknown("a grant in queue", grant.queue.value, "no such queue");
  }
  if (auto status = AccessRules().Check(rules); !status.ok()) return status;
  ChangeAccess(rules);
  return absl::OkStatus();
}

absl::Status StateEditor::LoadPriorityClasses(const PriorityClassChange& classes) {
  absl::Status status = PriorityClasses().Check(classes);
  if (status.ok()) ChangePriorityClasses(classes);
  return status;
}

absl::Status StateEditor::LoadQueueUsage(QueueId id, std::vector<NamedAmount> usage) {
  if (state_.queues_.Find(id) == nullptr)
    return Unknown("usage of queue", id.value, "no such queue");
  SetQueueUsage(id, std::move(usage));
  return absl::OkStatus();
}

absl::Status StateEditor::LoadNode(NodeId id, NodeSpec spec, NodeStatus status, uint64_t revision) {
  mode_ = EditMode::kTentative;
  if (state_.nodes_.Find(id) != nullptr || state_.FindNode(spec.name) != nullptr) {
    return Repeated("node", id.value, spec.name);
  }
  if (spec.devices.size() > kMaxDevicesPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("node ", id.value, ": too many devices"));
  }
  if (auto room = state_.interner_.CanAddKinds(KindNames(spec)); !room.ok()) return room;
  AddNode(id, std::move(spec), std::move(status));
  state_.nodes_.At(id).revision = revision;
  return absl::OkStatus();
}

absl::Status StateEditor::LoadHyperNode(HyperNodeId id, HyperNodeSpec spec, uint64_t revision) {
  mode_ = EditMode::kTentative;
  if (id == HyperNodeId{} || state_.hyper_nodes_.Find(id) != nullptr ||
      state_.FindHyperNode(spec.name) != nullptr) {
    return Repeated("HyperNode", id.value, spec.name);
  }
  if (auto status = CheckHyperNode(state_, spec); !status.ok()) return status;
  SetHyperNode(id, std::move(spec));
  state_.hyper_nodes_.At(id).revision = revision;
  return absl::OkStatus();
}

absl::Status StateEditor::LoadNodeDomains(NodeId id, absl::Span<const HyperNodeId> domains) {
  for (HyperNodeId domain : domains) {
    const HyperNode* held_by = state_.hyper_nodes_.Find(domain);
    if (held_by == nullptr) {
      return Unknown("node", id.value, absl::StrCat("no HyperNode ", domain.value));
    }
    if (state_.DomainOf(state_.nodes_.At(id), held_by->spec.kind) != nullptr) {
      return Unknown("node", id.value, absl::StrCat("two HyperNodes of kind ", held_by->spec.kind));
    }
    JoinNodes(domain, {id});
  }
  return absl::OkStatus();
}

absl::Status StateEditor::LoadNodeImages(NodeId id, std::vector<ImageId> images) {
  const bool ordered = std::adjacent_find(images.begin(), images.end(),
                                          std::greater_equal<ImageId>()) == images.end();
  if (!ordered || images.size() > kMaxNodeImages) {
    return Unknown("node", id.value, "its images are too many, or out of order");
  }
  SetNodeImages(id, std::move(images));
  return absl::OkStatus();
}

absl::Status StateEditor::LoadRun(RunId id, FinishedRun run) {
  const RunRequest& request = run.request;
  const bool sound =
      run.run_ms > 0 && request.walltime_s >= 0 && request.devices >= 0 && request.cpu_millis >= 0;
  if (!sound || id < state_.run_history_.next()) {
    return absl::InvalidArgumentError(
        absl::StrCat("run ", id.value, ": is out of order, or an amount is out of range"));
  }
  AddRun(id, std::move(run));
  return absl::OkStatus();
}

absl::Status StateEditor::LoadJob(JobId id, const JobSpec& spec, Time submit, uint64_t revision,
                                  const RunPrediction& prediction, const LinePlace& line) {
  mode_ = EditMode::kTentative;
  if (state_.jobs_.Find(id) != nullptr || state_.FindJob(spec.name) != nullptr) {
    return Repeated("job", id.value, spec.name);
  }
  if (id > kLastJobId) return Unknown("job", id.value, "the uid is above the maximum");
  if (state_.queues_.Find(spec.queue) == nullptr) {
    return Unknown("job", id.value, absl::StrCat("no queue ", spec.queue.value));
  }
  int64_t tasks = 0;
  for (const GroupSpec& group : spec.groups) {
    auto room = state_.interner_.CanAddKinds(berth::KindNames(group.shape));
    if (!room.ok()) return room;
    tasks += group.replicas;
  }
  for (const AffinityTerm& term : spec.affinity) {
    if (!term.labels.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("job ", spec.name, " has affinity to no label"));
  }
  if (tasks == 0)
    return absl::InvalidArgumentError(absl::StrCat("job ", spec.name, " has no tasks"));
  if (tasks > kMaxTasksPerJob) {
    return absl::OutOfRangeError(
        absl::StrCat("job ", spec.name, " has ", tasks, " tasks; at most ", kMaxTasksPerJob));
  }
  const bool sound = line.work >= 0 && line.work <= kMaxWork && line.before >= 0;
  if (!sound || line.before > kMaxLine) {
    return absl::InvalidArgumentError(absl::StrCat("job ", spec.name, ": work out of range"));
  }
  AddJob(id, spec, submit, prediction);
  Job& job = state_.jobs_.At(id);
  job.revision = revision;
  job.line = line;
  CountInLine(job, 1);  // until its status is loaded
  return absl::OkStatus();
}

absl::Status StateEditor::LoadWalltime(JobId id, Duration walltime) {
  if (state_.jobs_.Find(id) == nullptr) return Unknown("walltime of job", id.value, "no such job");
  if (walltime <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("walltime of job ", id.value, " is not above 0"));
  }
  SetJobWalltime(id, walltime);
  return absl::OkStatus();
}

absl::Status StateEditor::LoadJobStatus(JobId id, JobStatus status, int32_t priority,
                                        std::map<std::string, std::string> labels,
                                        uint64_t revision) {
  Job* job = state_.jobs_.Find(id);
  if (job == nullptr) return Unknown("job status", id.value, "no such job");
  SetJobPriority(id, priority);
  SetJobLabels(id, std::move(labels));
  SetJobStatus(id, std::move(status));
  job->revision = revision;
  return absl::OkStatus();
}

absl::Status StateEditor::LoadReservation(JobId id, Reservation reservation) {
  const Job* job = state_.jobs_.Find(id);
  if (job == nullptr) return Unknown("reservation of job", id.value, "no such job");
  for (const Placement& place : reservation.places) {
    if (place.task >= job->tasks.size() || state_.nodes_.Find(place.node) == nullptr) {
      return Unknown("reservation of job", id.value, "no such task or node");
    }
  }
  SetReservation(id, std::move(reservation));
  return absl::OkStatus();
}

absl::Status StateEditor::LoadTask(TaskKey key, const Task& task, absl::string_view message) {
  const Job* job = state_.jobs_.Find(key.job);
  const std::string name = absl::StrCat("task ", key.task, " of job");
  if (job == nullptr || key.task >= job->tasks.size()) {
    return Unknown(name, key.job.value, "no such task");
  }
  const ShapeEntry& shape = state_.interner_.Shape(job->groups[GroupOf(*job, key.task)].shape);
  if (auto status = CheckTask(state_, shape, task); !status.ok()) {
    return Unknown(name, key.job.value, status.message());
  }
  SetTask(key, task);
  SetTaskMessage(key, message);
  return absl::OkStatus();
}

absl::Status StateEditor::LoadNextIds(JobId job, NodeId node, QueueId queue,
                                      HyperNodeId hyper_node) {
  if (job < state_.next_job_id_ || node < state_.next_node_id_ || queue < state_.next_queue_id_ ||
      hyper_node < state_.next_hyper_node_id_) {
    return absl::InvalidArgumentError("an id is larger than the last one given out");
  }
  state_.next_job_id_ = job;
  state_.next_node_id_ = node;
  state_.next_queue_id_ = queue;
  state_.next_hyper_node_id_ = hyper_node;
  return absl::OkStatus();
}

void StateEditor::RaiseNextJob(JobId job) {
  state_.next_job_id_ = std::max(state_.next_job_id_, job);
}

void StateEditor::FinishLoad() {
  Sync();
  state_.pending_.DropEmpty();
  for (auto id = state_.jobs_.NextFrom(JobId{}); id.has_value();
       id = state_.jobs_.NextFrom(JobId{id->value + 1})) {
    Job& job = state_.jobs_.At(*id);
    RefreshTimer(job);
    RefreshShort(job);
    if (MayBeUnsettled(job)) state_.unsettled_.insert(state_.unsettled_.end(), *id);
  }
  state_.dirty_ = Dirty{};
}

}  // namespace berth
