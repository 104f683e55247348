#include "tests/property/model_random.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace berth {
namespace {

template <class IdType, class T>
IdType AnyOf(const IdMap<IdType, T>& map, IdType next, Random& random) {
  const IdType from{static_cast<typename IdType::Value>(random.Below(next.value + 1))};
  return map.NextFrom(from).value_or(next);
}

// Thousandths.
int64_t TakesOf(const Device& device, const DeviceRequest& request) {
  return request.share > 0 ? ShareOn(device, request) : kWhole;
}

}  // namespace

JobId RandomEvents::AnyJob() {
  return AnyOf(world_.state.jobs(), world_.state.next_job_id(), random_);
}
NodeId RandomEvents::AnyNode() {
  return AnyOf(world_.state.nodes(), world_.state.next_node_id(), random_);
}
QueueId RandomEvents::AnyQueue() {
  return AnyOf(world_.state.queues(), world_.state.next_queue_id(), random_);
}

EventBody RandomEvents::Next() {
  world_.now += absl::Milliseconds(Up(3000));
  switch (Up(25)) {
    case 0:
      return QueueEvent();
    case 23:
      return TopologyEvent();
    case 20:
    case 21:
    case 22:
      return PlanEvent();
    case 1:
    case 2:
      return NodeEvent();
    case 3:
    case 4:
    case 5:
    case 6:
      return JobEvent();
    case 7:
    case 8:
      return StatusEvent();
    case 9:
    case 10:
    case 11:
    case 12:
      return BindEvent();
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
      return ReportEvent();
    case 18:
      return ProgressEvent();
    case 24:
      return AccessEvent();
    default:
      return TasksEvent();
  }
}

void RandomEvents::SetShares(QueueSpec& spec) {
  if (Chance(2)) spec.deserved = {{"gpu", Up(20) * kWhole}};
  if (Chance(3)) spec.guarantee = {{"gpu", Up(8) * kWhole}};
  spec.weight = Up(3);
  spec.priority = Up(3);
  spec.reclaimable = !Chance(3);
  spec.order = static_cast<QueueOrder>(Up(2));
  spec.user_fairness = static_cast<UserFairness>(Up(2));
  spec.strategy = static_cast<Strategy>(Up(4));
}

// Few users, so that some have a role already, or do not have the one that is revoked.
EventBody RandomEvents::AccessEvent() {
  const Grant grant{{Subject::Kind::kUser, "u" + std::to_string(Up(4))},
                    AnyQueue(),
                    std::string(BuiltInRoles()[static_cast<size_t>(Up(5))].name)};
  AccessChange change{.enforce = Chance(3)};
  if (Chance(3)) {
    const std::string id(JoinTokens::kIdBytes, static_cast<char>('0' + Up(3)));
    const std::string hash(JoinTokens::kHashBytes, 'h');
    switch (Up(3)) {
      case 0:
        change.join_tokens.drop = {id};
        break;
      case 1:
        change.join_tokens.redeem = {{id, "n1", hash}};
        break;
      default:
        change.join_tokens.create = {{.id = id,
                                      .secret_hash = hash,
                                      .nodes = "n*",
                                      .uses_left = static_cast<uint32_t>(Up(3)),
                                      .expires = absl::UnixEpoch() + absl::Hours(Up(100)),
                                      .created_by = "",
                                      .last_node = "",
                                      .last_request = ""}};
    }
    return AccessChanged{std::move(change)};
  }
  if (Chance(4)) {
    const std::string name = "c" + std::to_string(Up(3));
    if (Chance(2)) return PriorityClassesChanged{{.remove = {name}, .set = {}}};
    return PriorityClassesChanged{{.remove = {},
                                   .set = {{.name = name,
                                            .value = Up(9),
                                            .preempts = Chance(2),
                                            .global_default = Chance(3),
                                            .description = ""}}}};
  }
  (Chance(3) ? change.revoke : change.grant).push_back(grant);
  return AccessChanged{std::move(change)};
}

EventBody RandomEvents::QueueEvent() {
  QueueSpec spec;
  const QueueId id = AnyQueue();
  switch (Up(6)) {
    case 0:
      return QueueDeleted{id};
    case 1:
      return QueueOpened{id, !Chance(3)};
    case 2:
      if (const Queue* queue = world_.state.queues().Find(id); queue != nullptr) {
        spec = queue->spec;
        spec.max_running_jobs = Up(4);
        spec.limit = {{"cpu", Up(20) * 1000}, {"gpu", Up(30) * kWhole}};
        SetShares(spec);
        return QueueUpdated{id, spec};
      }
      [[fallthrough]];
    default:
      spec.name = "q" + std::to_string(Up(8));
      spec.parent = id;
      spec.max_jobs = Chance(4) ? 3 : 0;
      spec.max_tasks = Chance(4) ? 12 : 0;
      if (Chance(2)) spec.limit = {{"gpu", Up(40) * kWhole}};
      SetShares(spec);
      return QueueCreated{world_.state.next_queue_id(), spec};
  }
}

NodeSpec RandomEvents::RandomNode(const std::string& name) {
  NodeSpec spec = NodeWith(name, Up(9));
  if (Chance(3)) spec.extended = {{"license", Up(5)}};
  if (Chance(4)) spec.max_tasks = Up(6);
  for (Device& device : spec.devices) {
    device.unhealthy = Chance(10);
    device.max_tasks = Chance(2) ? 1 : 4;
    device.memory_bytes = Chance(2) ? 80 : 40;
    device.oversubscription = Chance(2) ? 100 : 250;
  }
  for (size_t i = spec.devices.size(); i > 1; --i) {  // another order: tasks must follow
    std::swap(spec.devices[i - 1], spec.devices[random_.Below(i)]);
  }
  return spec;
}

// Drained at once, later, by checkpoint; the whole node, or a device of it, which may not exist.
NodeSteered RandomEvents::RandomSteering(const Node& node) {
  NodeSteered event{node.id, Chance(3), Chance(5), "why"};
  if (Chance(2)) return event;
  event.drain.mode = static_cast<DrainMode>(Up(4));
  event.drain.begin = world_.now;
  event.drain.deadline = world_.now + absl::Seconds(Up(30));
  if (Chance(2)) event.drain.devices.Add(static_cast<size_t>(Up(8)));
  return event;
}

// Claims, tiers and kinds are random: some are rejected.
HyperNodeSpec RandomEvents::RandomHyperNode(std::string name, std::string kind) {
  HyperNodeSpec spec;
  spec.name = std::move(name);
  spec.kind = std::move(kind);
  spec.tier = 1 + Up(3);
  spec.tier_name = Chance(2) ? "tier" + std::to_string(spec.tier) : "";
  spec.health = Chance(4) ? DomainHealth::kDegraded : DomainHealth::kOk;
  spec.members = {{.text = "n" + std::to_string(Up(8))}};
  if (Chance(2)) {
    spec.members.push_back(
        {.type = HyperNodeMember::Type::kHyperNode, .text = "h" + std::to_string(Up(8))});
  }
  return spec;
}

EventBody RandomEvents::TopologyEvent() {
  const HyperNodeId next = world_.state.next_hyper_node_id();
  const HyperNodeId id = AnyOf(world_.state.hyper_nodes(), next, random_);
  const HyperNode* domain = world_.state.hyper_nodes().Find(id);
  if (domain == nullptr || Chance(6)) {
    const std::string name = "h" + std::to_string(Up(8));
    return HyperNodeChanged{next, RandomHyperNode(name, Chance(2) ? "network" : "nvlink")};
  }
  switch (Up(6)) {
    case 0:
      return HyperNodeChanged{id, RandomHyperNode(domain->spec.name, domain->spec.kind)};
    case 1:
      return HyperNodeDeleted{id};
    case 2:
      return NodesLeft{id, domain->nodes};
    case 3: {
      RequestMix mix =
          MixOf({"A"}, {{.request = {.devices = 1, .models = 1}, .weight = 1 + Up(5)}});
      if (Chance(3)) mix.mib_per_core = 1 + Up(5000);
      mix.score = static_cast<MixScore>(Up(static_cast<int>(kMixScores)));
      return RequestMixChanged{std::move(mix)};
    }
    default:
      break;
  }
  const NodeId node = AnyNode();
  NodesJoined joined{id, {node}};
  if (const auto other = world_.state.nodes().NextFrom(NodeId{node.value + 1});
      Chance(2) && other) {
    joined.nodes.push_back(*other);
  }
  return joined;
}

EventBody RandomEvents::NodeEvent() {
  const NodeId id = AnyNode();
  const Node* node = world_.state.nodes().Find(id);
  if (node == nullptr) {
    const NodeSpec spec = RandomNode("n" + std::to_string(Up(8)));
    return NodeRegistered{id, spec, 1, "agent", "boot", "1"};
  }
  switch (Up(10)) {
    case 8:
    case 9: {
      const ImageId image{static_cast<uint64_t>(1 + Up(3))};
      const bool held = HoldsImage(*node, image) != Chance(9);  // sometimes what Apply refuses
      if (held) return NodeImagesChanged{id, {}, {image}};
      return NodeImagesChanged{id, {image}, {}};
    }
    case 0:
    case 1:
      return NodeSilenced{id, !Chance(3)};
    case 2:
      return NodeFenced{id};
    case 3:
      return RandomSteering(*node);
    case 4:
      return NodeRefused{id, Up(3), world_.now + absl::Seconds(Up(20)),
                         JobId{static_cast<uint64_t>(Up(3))}, Chance(50) ? "why" : ""};
    case 5:
      return NodeDeleted{id};
    default:
      return NodeRegistered{id, RandomNode(node->spec.name), node->status.epoch + 1, "a", "b", "c"};
  }
}

JobSpec RandomEvents::RandomJob(const std::string& name) {
  std::vector<GroupSpec> groups;
  const int count = 1 + Up(3);
  for (int g = 0; g < count; ++g) {
    groups.push_back(GroupOfGpus("g" + std::to_string(g), 1 + Up(4), Up(3)));
    if (!groups.back().shape.devices.empty() && Chance(3)) {
      groups.back().shape.devices[0].count = 1;
      DeviceRequest& request = groups.back().shape.devices[0];
      request.share = 100 * (1 + Up(8));
      request.by_memory = Chance(3);
      request.oversubscribe = !request.by_memory && Chance(2);
      if (request.by_memory) request.min_memory_bytes = 1 + Up(40);
    }
    if (Chance(2)) groups.back().min_available = Up(groups.back().replicas + 1);
    if (Chance(4)) groups.back().spread = {.tier = 0, .max_skew = 1 + Up(3)};
    if (Chance(5)) groups.back().shape.extended = {{"license", 1}};
    if (g > 0 && Chance(3)) {
      groups.back().depends_on = {
          {0, Chance(2) ? GroupCondition::kRunning : GroupCondition::kCompleted}};
    }
    if (Chance(4)) groups.back().partition_size = 1;
    if (Chance(2)) groups.back().image = ImageId{static_cast<uint64_t>(1 + Up(3))};
    if (Chance(4)) groups.back().apart_from = {static_cast<uint32_t>(g)};
    if (g > 0 && Chance(4)) groups.back().near_groups = {0};
    groups.back().strategy = static_cast<Strategy>(Up(4));
  }
  JobSpec spec = JobOf(name, AnyQueue(), std::move(groups));
  spec.priority = Up(3);
  spec.on_node_loss = static_cast<NodeLossPolicy>(Up(3));
  spec.suspended = Chance(8);
  spec.preemptible = Chance(2);
  spec.preempts = !Chance(4);
  int32_t minimum = 0;
  for (const GroupSpec& group : spec.groups) minimum += group.min_available;
  spec.min_available = std::max(minimum, 1);
  for (GroupSpec& group : spec.groups) {
    const bool may = spec.preemptible || (group.min_available == 0 && minimum > 0);
    group.preemptible = may && Chance(2);
    if (Chance(3)) group.priority = spec.priority - Up(2);
  }
  if (Chance(4)) {
    spec.policies = {{.event = PolicyEvent::kTaskPending,
                      .action = PolicyAction::kAbort,
                      .after = absl::Seconds(1 + Up(30))}};
  }
  if (Chance(3)) spec.labels = {{"app", "a" + std::to_string(Up(2))}};
  if (Chance(6)) {
    spec.affinity = {{.apart = Chance(2),
                      .labels = {{"app", "a" + std::to_string(Up(2))}},
                      .all_queues = Chance(2)}};
  }
  spec.strategy = static_cast<Strategy>(Up(4));
  spec.user = "u" + std::to_string(Up(3));
  if (Chance(4)) spec.deadline = world_.now + absl::Seconds(Up(50));
  if (Chance(4)) spec.checkpoint_interval = absl::Seconds(Up(50));
  spec.saves_before_drain = Chance(3);
  spec.may_migrate = Chance(3);
  spec.checkpoints_devices = Chance(2);
  if (Chance(4)) spec.walltime = absl::Seconds(Up(100));
  if (Chance(4)) spec.ttl_after_finished = absl::Seconds(Up(100));
  if (Chance(4)) spec.start_after = world_.now + absl::Seconds(Up(20));
  if (Chance(4)) spec.dependencies = {{AnyJob(), DependencyCondition::kAfterAny}};
  return spec;
}

EventBody RandomEvents::JobEvent() {
  const JobId id = AnyJob();
  switch (Up(10)) {
    case 0:
      return JobUpdated{
          .id = id,
          .priority = Up(3),
          .labels = {{"label", std::to_string(Up(3))}},
          .walltime = Chance(2) ? std::optional<Duration>(absl::Seconds(Up(100))) : std::nullopt};
    case 1:
      return JobCancelled{id, "because", Chance(3)};
    case 2:
      return JobSuspended{.id = id, .suspended = Chance(2), .freeze = Chance(2)};
    case 3:
      return Chance(3) ? EventBody(JobRunRecorded{id}) : EventBody(JobDeleted{id});
    default: {
      const JobId next = world_.state.next_job_id();
      return JobSubmitted{next, RandomJob("j" + std::to_string(Chance(9) ? 1 : next.value))};
    }
  }
}

EventBody RandomEvents::StatusEvent() {
  const JobId id = AnyJob();
  const Job* job = world_.state.jobs().Find(id);
  if (job == nullptr) return JobStatusChanged{id, {}};
  JobStatus status = job->status;
  status.state = static_cast<JobState>(Up(Chance(3) ? 10 : 7));
  status.outcome = JobState::kFailed;
  if (Chance(2)) status.start = world_.now;
  if (Chance(3)) status.hold_until = world_.now + absl::Seconds(Up(9));
  if (Ended(status.state)) status.end = world_.now;
  if (Chance(5)) {
    status.delayed.push_back({PolicyAction::kAbort, 0, 1, world_.now + absl::Seconds(3), "m"});
  }
  return JobStatusChanged{id, status};
}

// Like a planner: pending tasks on the first nodes that accept them, sometimes wrong.
EventBody RandomEvents::BindEvent() {
  const JobId id = AnyJob();
  TasksBound event{id, Chance(2), {}};
  const Job* job = world_.state.jobs().Find(id);
  if (job == nullptr) return event;
  for (uint32_t t = 0; t < job->tasks.size(); ++t) {
    if (!Waits(job->tasks[t].state) && !Chance(20)) continue;
    Placement placement{t, AnyNode(), {}};
    const Node* node = world_.state.nodes().Find(placement.node);
    const TaskShape& shape =
        world_.state.interner().Shape(job->groups[GroupOf(*job, t)].shape).shape;
    int wanted = shape.devices.empty() ? 0 : shape.devices[0].count;
    for (size_t i = 0; node != nullptr && i < node->spec.devices.size() && wanted > 0; ++i) {
      const int64_t asked = TakesOf(node->spec.devices[i], shape.devices[0]);
      if (node->devices_used.FreeOf(i) < asked && !Chance(20)) continue;
      bool taken = false;
      for (const Placement& other : event.placements) {
        taken = taken || (other.node == placement.node && other.devices.Has(i));
      }
      if (taken) continue;
      placement.devices.Add(i);
      --wanted;
    }
    event.placements.push_back(placement);
    if (Chance(3)) break;
  }
  return event;
}

EventBody RandomEvents::ReportEvent() {
  const JobId id = AnyJob();
  const Job* job = world_.state.jobs().Find(id);
  TaskReported event;
  event.task = {id, 0};
  if (job == nullptr) return event;
  event.task.task = static_cast<uint32_t>(random_.Below(job->tasks.size()));
  event.attempt = job->tasks[event.task.task].attempt + (Chance(20) ? 1 : 0);
  event.state = Chance(3) ? ReportState::kPrepared : static_cast<ReportState>(Up(5));
  event.cause = Chance(2) ? ExitCause::kItself : static_cast<ExitCause>(Up(7));
  event.exit_code = Chance(2) ? 0 : Up(200);
  if (Chance(3)) event.message = "said";
  const int fault = event.state == ReportState::kRefused ? Up(3) : 0;
  event.own_fault = fault == 1;
  event.nobodys_fault = fault == 2;
  return event;
}

EventBody RandomEvents::ProgressEvent() {
  JobId id = AnyJob();
  for (int i = 0; i < 30; ++i) {  // mostly of a job that runs, with a task that does
    const Job* found = world_.state.jobs().Find(id);
    const bool runs = found != nullptr && found->status.state == JobState::kRunning;
    if (runs && TallyOf(*found).In(TaskState::kRunning) > 0) break;
    id = AnyJob();
  }
  const Job* job = world_.state.jobs().Find(id);
  TaskKey task{id, 0};
  if (job == nullptr) return TaskReady{task, 1};
  for (uint32_t t = 0; t < job->tasks.size(); ++t) {
    if (job->tasks[t].state == TaskState::kRunning) task.task = t;
  }
  const uint32_t attempt = job->tasks[task.task].attempt + (Chance(20) ? 1 : 0);
  if (Chance(2)) return PauseEvent(task, attempt);
  switch (Up(4)) {
    case 0:
      return TaskReady{task, attempt};
    case 1:
      return CheckpointRecorded{task, attempt, Up(100) - (Chance(20) ? 200 : 0), Up(100),
                                static_cast<CheckpointPlace>(Up(4))};
    default:
      return TaskHung{task, attempt, absl::Seconds(Up(100)), Up(100) - 1, Hangs(*job) != Chance(8)};
  }
}

// What may come next for the task, sometimes wrong.
EventBody RandomEvents::PauseEvent(TaskKey task, uint32_t attempt) {
  const PauseState pause = world_.state.jobs().At(task.job).tasks[task.task].pause;
  const bool told = pause == PauseState::kPausing;
  if (told && Chance(2)) {
    TaskReported frozen{task, attempt, ReportState::kPaused};
    frozen.devices_lent = Chance(2);
    return frozen;
  }
  const bool runs = pause == PauseState::kRuns || Chance(4);
  const JobId other = Chance(2) ? AnyJob() : JobId{};
  if (runs) return TasksPaused{task.job, {task.task}, world_.now + absl::Seconds(Up(100)), other};
  const bool waits = pause == PauseState::kPaused;
  return TasksResumed{task.job, {task.task}, Chance(20) ? !waits : waits};
}

EventBody RandomEvents::TasksEvent() {
  const JobId id = AnyJob();
  std::vector<uint32_t> tasks;
  const Job* job = world_.state.jobs().Find(id);
  const int kind = Up(3);
  for (uint32_t t = 0; job != nullptr && t < job->tasks.size(); ++t) {
    const TaskState s = job->tasks[t].state;
    const bool fits = kind == 0   ? s == TaskState::kPrepared
                      : kind == 1 ? Occupies(s) && Chance(2)
                                  : Ended(s);
    if (fits || Chance(30)) tasks.push_back(t);
  }
  if (kind == 0) return TasksStarted{id, tasks};
  if (kind == 1) return ReleaseEvent(id, std::move(tasks));
  return TasksRequeued{id, tasks};
}

// On a node on which it may wait, whoever holds the devices now.
Placement RandomEvents::PlaceFor(const Job& job, uint32_t task) {
  Placement place{task, AnyNode(), {}};
  const Node* node = world_.state.nodes().Find(place.node);
  const ShapeId shape = job.groups[GroupOf(job, task)].shape;
  const auto& requests = world_.state.interner().Shape(shape).shape.devices;
  int wanted = requests.empty() ? 0 : requests[0].count;
  for (size_t i = 0; node != nullptr && i < node->spec.devices.size() && wanted > 0; ++i) {
    const int64_t asked = TakesOf(node->spec.devices[i], requests[0]);
    if (node->devices_reserved.FreeOf(i) < asked && !Chance(20)) continue;
    place.devices.Add(i);
    --wanted;
  }
  return place;
}

EventBody RandomEvents::ReleaseEvent(JobId id, std::vector<uint32_t> tasks) {
  TasksReleased event{id, std::move(tasks), Chance(2), ReleaseReason::kRestart};
  if (Chance(2)) return event;
  event.reason = static_cast<ReleaseReason>(Up(13));
  event.beneficiary = AnyJob();
  const Job* job = world_.state.jobs().Find(id);
  if (job == nullptr || event.tasks.empty() || !event.requeue) return event;
  if (Chance(2)) event.moves_to = {PlaceFor(*job, event.tasks[0])};
  return event;
}

EventBody RandomEvents::PlanEvent() {
  const JobId id = AnyJob();
  const Job* job = world_.state.jobs().Find(id);
  std::vector<Placement> places;
  std::vector<uint32_t> nominated;
  for (uint32_t t = 0; job != nullptr && t < job->tasks.size(); ++t) {
    if (Reserves(job->tasks[t].state)) nominated.push_back(t);
    if (places.empty() && (Waits(job->tasks[t].state) || Chance(20))) {
      places.push_back(PlaceFor(*job, t));
    }
  }
  const Time start = world_.now + absl::Seconds(Up(100));
  switch (Up(6)) {
    case 0:
      return UsageCharged{absl::Seconds(Up(20)), absl::Seconds(Up(30))};
    case 1:
      return JobReserved{id, {start, start + absl::Seconds(Up(100)), places}};
    case 2:
      return TasksUnnominated{id, nominated};
    default:
      return TasksNominated{id, places, Up(2) == 0};
  }
}

}  // namespace berth
