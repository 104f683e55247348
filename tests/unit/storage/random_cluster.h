// A cluster with random, mostly legal events, which go through a TurnRecorder into a store. Apply
// may refuse events, but each kind must be accepted often enough (accepted()).
#ifndef BERTH_TESTS_UNIT_STORAGE_RANDOM_CLUSTER_H_
#define BERTH_TESTS_UNIT_STORAGE_RANDOM_CLUSTER_H_

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/cluster_state.h"
#include "core/model/pauses.h"
#include "storage/keys.h"
#include "storage/turn_recorder.h"
#include "tests/unit/storage/random_values.h"

namespace berth {

class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed, Preserved* preserved = nullptr)
      : random_(seed), recorder_(state_, preserved) {}

  const ClusterState& state() const { return state_; }
  const std::array<int, std::variant_size_v<AnyFact>>& accepted() const { return accepted_; }

  // One turn of up to `events` attempts; nullopt if none was accepted.
  std::optional<Batch> Turn(uint64_t sequence, int events) {
    now_ += absl::Milliseconds(random_.Below(5000));
    recorder_.Begin(sequence, now_);
    for (int i = 0; i < events; ++i) {
      EventBody body = Next();
      const auto* submitted = std::get_if<JobSubmitted>(&body);
      const bool is_job = submitted != nullptr;
      const JobId job = is_job ? submitted->id : JobId{};
      const size_t kind = body.index();
      const Event event{now_, std::move(body)};
      if (!recorder_.Apply(event).ok()) continue;
      ++accepted_[kind];
      if (is_job && random_.Coin()) recorder_.PutCold(job, absl::StrCat("cold ", job.value));
    }
    return recorder_.Finish();
  }

 private:
  template <class IdType, class T>
  const T* Pick(const IdMap<IdType, T>& map) {
    if (map.empty()) return nullptr;
    auto id =
        map.NextFrom(IdType{static_cast<typename IdType::Value>(random_.Below(next_id(map)))});
    if (!id.has_value()) id = map.NextFrom(IdType{0});
    return map.Find(*id);
  }
  uint64_t next_id(const IdMap<JobId, Job>&) { return state_.next_job_id().value; }
  uint64_t next_id(const IdMap<NodeId, Node>&) { return state_.next_node_id().value; }
  uint64_t next_id(const IdMap<QueueId, Queue>&) { return state_.next_queue_id().value; }
  uint64_t next_id(const IdMap<HyperNodeId, HyperNode>&) {
    return state_.next_hyper_node_id().value;
  }

  EventBody Next() {
    if (state_.queues().size() < 3) return NewQueue();
    if (state_.nodes().size() < 3) return NewNode();
    switch (random_.Below(27)) {
      case 0:
        return QueueEvent();
      case 26:
        return random_.Below(3) == 0 ? EventBody(SomePriorityClasses(random_)) : SomeAccess();
      case 24:
      case 25:
        return TopologyEvent();
      case 20:
      case 21:
        return Nominate();
      case 22:
        return Reserve();
      case 23:
        if (random_.Below(4) == 0) return SomeMix();
        return random_.Coin() ? Unnominate()
                              : UsageCharged{absl::Seconds(random_.Below(100)), absl::Minutes(1)};
      case 1:
      case 2:
        return NodeEvent();
      case 3:
      case 4:
      case 5:
      case 6:
        return NewJob();
      case 7:
      case 8:
      case 9:
        return JobRequest();
      case 10:
      case 11:
      case 12:
        return Bind();
      default:
        return TaskEvent();
    }
  }

  EventBody NewQueue() {
    QueueSpec spec;
    spec.name = absl::StrCat("q", state_.next_queue_id().value);
    const Queue* parent = Pick(state_.queues());
    spec.parent = random_.Below(4) == 0 && parent != nullptr ? parent->id : kRootQueue;
    if (random_.Coin()) spec.limit = {{.name = "cpu", .amount = 1'000'000}};
    SetShares(spec);
    spec.labels = random_.Labels();
    return QueueCreated{state_.next_queue_id(), spec};
  }

  void SetShares(QueueSpec& spec) {
    if (random_.Coin()) spec.deserved = {{.name = "gpu", .amount = random_.Count(9) * kWhole}};
    if (random_.Coin()) spec.guarantee = {{.name = "cpu", .amount = random_.Count(9000)}};
    spec.weight = random_.Count(4);
    spec.priority = random_.Count(3);
    spec.reclaimable = random_.Coin();
    spec.order = random_.Any(QueueOrder::kFifoStrict);
    spec.user_fairness = random_.Any(UserFairness::kDrf);
    spec.strategy = random_.Any(Strategy::kColocate);
  }

  EventBody QueueEvent() {
    const Queue* queue = Pick(state_.queues());
    switch (random_.Below(5)) {
      case 0:
        return NewQueue();
      case 1:
        return QueueDeleted{queue->id};
      case 2: {
        QueueSpec spec = queue->spec;
        spec.max_jobs = random_.Count(1000) + 100;
        SetShares(spec);
        spec.labels = random_.Labels();
        return QueueUpdated{queue->id, spec};
      }
      default:
        return QueueOpened{queue->id, random_.Below(4) != 0};
    }
  }

  // Some are refused: granted already, or not granted.
  EventBody SomeAccess() {
    AccessChange change{.enforce = random_.Coin()};
    const std::string name = absl::StrCat("u", random_.Below(5));
    const Grant grant{.subject = {.kind = random_.Any(Subject::Kind::kGroup), .name = name},
                      .queue = Pick(state_.queues())->id,
                      .role = random_.Coin() ? "viewer" : "ci"};
    switch (random_.Below(7)) {
      case 0:
        change.set_roles = {{.name = "ci", .verbs = {random_.Any(Verb::kGrant)}}};
        break;
      case 1:
        change.refuse = {{.kind = random_.Any(Revocation::Kind::kNode), .name = name}};
        break;
      case 2: {
        const std::vector<Grant> grants = state_.access().SortedGrants();
        if (!grants.empty()) change.revoke = {grants[random_.Below(grants.size())]};
        break;
      }
      case 3:
      case 4:
        SomeJoinToken(change.join_tokens);
        break;
      default:
        change.grant = {grant};
    }
    return AccessChanged{std::move(change)};
  }

  // Often used up, and then dropped.
  void SomeJoinToken(JoinTokenChange& change) {
    const auto& all = state_.access().join_tokens().all();
    if (all.size() < 3) {
      change.create = {{.id = absl::StrCat(absl::Hex(random_.Below(1'000'000), absl::kZeroPad16)),
                        .secret_hash = std::string(JoinTokens::kHashBytes, 's'),
                        .nodes = "n*",
                        .uses_left = static_cast<uint32_t>(random_.Below(3)),
                        .expires = absl::UnixEpoch() + absl::Seconds(random_.Count(1000)),
                        .created_by = random_.Coin() ? "ada" : "",
                        .last_node = "",
                        .last_request = ""}};
      return;
    }
    const std::string id = std::next(all.begin(), static_cast<int>(random_.Below(3)))->first;
    if (random_.Below(3) == 0) {
      change.drop = {id};
    } else {
      change.redeem = {{id, "n1", std::string(JoinTokens::kHashBytes, 'r')}};
    }
  }

  // Two kinds. There are few names, so members often name nodes that come later or are gone.
  HyperNodeSpec SomeHyperNode(std::string name, std::string kind) {
    HyperNodeSpec spec;
    spec.name = std::move(name);
    spec.kind = std::move(kind);
    spec.tier = 1 + random_.Count(3);
    if (random_.Coin()) spec.tier_name = absl::StrCat("tier-", spec.tier);
    spec.health = random_.Any(DomainHealth::kDegraded);
    spec.members = {{.text = "n1"}};
    if (spec.tier > 1 && random_.Coin()) {
      spec.members.push_back(
          {.type = HyperNodeMember::Type::kHyperNode, .text = absl::StrCat("h", random_.Below(9))});
    }
    return spec;
  }

  EventBody SomeMix() {
    return RequestMixChanged{MixOf(
        {"A", "B"}, {{.request = {.devices = 1}, .weight = 1 + random_.Count(9)},
                     {.request = {.share = 250, .models = 2}, .weight = 1 + random_.Count(9)}})};
  }

  EventBody TopologyEvent() {
    const HyperNode* domain = Pick(state_.hyper_nodes());
    const uint64_t dice = random_.Below(8);
    if (domain == nullptr || dice == 0) {
      return HyperNodeChanged{
          state_.next_hyper_node_id(),
          SomeHyperNode(absl::StrCat("h", random_.Below(9)), random_.Coin() ? "network" : "nv")};
    }
    if (dice == 1) {
      return HyperNodeChanged{domain->id, SomeHyperNode(domain->spec.name, domain->spec.kind)};
    }
    if (dice == 2) return HyperNodeDeleted{domain->id};
    if (dice == 3) return NodesLeft{domain->id, domain->nodes};
    const NodeId node = Pick(state_.nodes())->id;
    NodesJoined joined{domain->id, {node}};
    if (const auto other = state_.nodes().NextFrom(NodeId{node.value + 1})) {
      joined.nodes.push_back(*other);
    }
    return joined;
  }

  TopologyConstraint SomeTopology() {
    if (random_.Below(4) != 0) return {};
    return {.mode = random_.Coin() ? TopologyMode::kHard : TopologyMode::kSoft,
            .highest_tier = random_.Count(3),
            .highest_tier_name = "",
            .kind = random_.Coin() ? "network" : "nv",
            .patience = {}};
  }

  NodeSpec SomeNode(std::string name) {
    NodeSpec spec;
    spec.name = std::move(name);
    spec.address = "10.0.0.1";
    spec.cpu_millis = 64'000;
    spec.memory_bytes = int64_t{1} << 38;
    const uint64_t gpus = random_.Below(9);
    for (uint64_t i = 0; i < gpus; ++i) {
      Device device;
      device.kind = "gpu";
      device.uuid = absl::StrCat("GPU-", i);
      device.unhealthy = random_.Below(8) == 0;
      device.max_tasks = random_.Coin() ? 1 : 8;
      device.memory_bytes = random_.Coin() ? 80 : 40;
      device.oversubscription = random_.Coin() ? 100 : 200;
      spec.devices.push_back(device);
    }
    if (random_.Coin()) spec.extended = {{.name = "licence", .amount = 5}};
    spec.labels = random_.Labels();
    return spec;
  }

  EventBody Steered(const Node& node) {
    NodeSteered event{node.id, random_.Coin(), random_.Below(4) == 0, random_.Text(),
                      random_.AnyDrain()};
    DeviceSet own;
    for (size_t i = 0; i < node.spec.devices.size(); ++i) own.Add(i);
    event.drain.devices = Intersection(event.drain.devices, own);
    if (event.drain.mode == DrainMode::kCheckpoint) event.drain.deadline = now_ + absl::Hours(1);
    return event;
  }

  // Of a few images, one that the node does not hold, or one that it does.
  EventBody SomeImages(const Node& node) {
    const ImageId image{1 + random_.Below(4)};
    if (HoldsImage(node, image)) return NodeImagesChanged{node.id, {}, {image}};
    return NodeImagesChanged{node.id, {image}, {}};
  }

  EventBody NewNode() {
    return NodeRegistered{state_.next_node_id(),
                          SomeNode(absl::StrCat("n", state_.next_node_id().value)),
                          1,
                          "agent",
                          "boot",
                          "0.1"};
  }

  EventBody NodeEvent() {
    const Node* node = Pick(state_.nodes());
    switch (random_.Below(10)) {
      case 9:
        return SomeImages(*node);
      case 0:
        return NewNode();
      case 1:
        return NodeSilenced{node->id};
      case 2:
        return NodeFenced{node->id};
      case 3:
        return Steered(*node);
      case 4:
        return NodeRefused{node->id, random_.Count(5), now_ + absl::Seconds(random_.Below(20)),
                           JobId{random_.Below(3)}, random_.Text()};
      case 5:
        return NodeDeleted{node->id};
      default:
        return NodeRegistered{
            node->id, SomeNode(node->spec.name), node->status.epoch + 1, "agent2", "boot2", "0.2"};
    }
  }

  EventBody NewJob() {
    JobSpec spec;
    spec.name = absl::StrCat("j", state_.next_job_id().value);
    spec.queue = Pick(state_.queues())->id;
    spec.priority = random_.Int32() % 100;
    const uint64_t groups = random_.Below(2) + 1;
    for (uint64_t i = 0; i < groups; ++i) {
      GroupSpec group;
      group.name = absl::StrCat("g", i);
      group.replicas = 1 + random_.Count(4);
      group.shape.cpu_millis = 1000 * (1 + random_.Count(8));
      if (random_.Coin()) {
        DeviceRequest& request = group.shape.devices.emplace_back();
        request.kind = "gpu";
        request.count = 1;
        if (random_.Below(3) == 0) {
          request.share = 250;
          request.by_memory = random_.Coin();
          request.oversubscribe = !request.by_memory && random_.Coin();
          if (request.by_memory) request.min_memory_bytes = 20;
        }
      }
      if (random_.Below(4) == 0) group.shape.extended = {{.name = "licence", .amount = 1}};
      group.partition_size = random_.Below(4) == 0 ? 1 : 0;
      group.strategy = random_.Any(Strategy::kColocate);
      if (i > 0 && random_.Coin()) group.near_groups = {0};
      if (random_.Below(4) == 0) group.apart_from = {static_cast<uint32_t>(i)};
      group.affinity_tier = random_.Count(3);
      group.communication = random_.Count(100);
      group.has_image = random_.Coin();
      if (group.has_image) group.image = ImageId{1 + random_.Below(4)};
      group.topology = SomeTopology();
      if (group.partition_size > 0) group.partition_topology = SomeTopology();
      if (random_.Below(4) == 0) group.min_available = 0;
      const bool in_domain = group.topology.Any() || group.partition_topology.Any();
      if (!in_domain && random_.Coin()) group.spread = {.tier = 0, .max_skew = 1};
      group.device_strategy = random_.Any(Strategy::kSpread);
      spec.min_available += group.min_available;
      spec.groups.push_back(group);
    }
    spec.min_available = std::max(spec.min_available, 1);
    if (const Job* other = Pick(state_.jobs()); other != nullptr && random_.Below(4) == 0) {
      spec.dependencies = {{.job = other->id}};
    }
    spec.labels = random_.Labels();
    spec.on_node_loss = random_.Any(NodeLossPolicy::kReplaceNow);
    spec.suspended = random_.Below(8) == 0;
    if (random_.Coin()) spec.walltime = absl::Minutes(5);
    spec.preemptible = random_.Coin();
    spec.preempts = random_.Coin();
    spec.preempt_mode = random_.Any(PreemptMode::kPause);
    spec.strategy = random_.Any(Strategy::kColocate);
    spec.device_strategy = random_.Any(Strategy::kSpread);
    spec.topology = SomeTopology();
    if (random_.Below(4) == 0) {
      spec.affinity = {{.apart = random_.Coin(),
                        .labels = {{"app", "cache"}},
                        .tier = random_.Count(2),
                        .all_queues = random_.Coin()}};
    }
    for (GroupSpec& group : spec.groups) {
      group.preemptible = spec.preemptible && random_.Coin();
      if (random_.Coin()) group.priority = spec.priority - random_.Count(3);
      if (spec.topology.Any()) group.spread = {};
    }
    spec.user = absl::StrCat("u", random_.Below(3));
    if (random_.Coin()) spec.checkpoint_interval = absl::Minutes(10);
    if (random_.Coin()) spec.deadline = now_ + absl::Minutes(random_.Below(60));
    return JobSubmitted{state_.next_job_id(), spec};
  }

  std::optional<Duration> AnyWalltime() {
    if (random_.Coin()) return std::nullopt;
    return absl::Seconds(1 + random_.Below(1000));
  }

  EventBody JobRequest() {
    const Job* job = Pick(state_.jobs());
    if (job == nullptr) return NewJob();
    switch (random_.Below(8)) {
      case 0:
        return JobUpdated{job->id, random_.Int32() % 100, random_.Labels(), AnyWalltime()};
      case 1:
        return JobCancelled{job->id, random_.Text(), random_.Coin()};
      case 2:
        return JobSuspended{job->id, random_.Coin(), "", random_.Coin()};
      case 3:
      case 4:
        return JobDeleted{job->id};
      case 5: {
        if (Ended(job->status.state)) return JobRunRecorded{job->id};
        JobStatus ran = job->status;
        ran.state = JobState::kSucceeded;
        ran.start = now_ - absl::Minutes(1 + random_.Below(900));
        ran.end = now_;
        return JobStatusChanged{job->id, ran};
      }
      default: {
        JobStatus status = random_.AnyJobStatus();
        status.starts = job->status.starts;
        status.suspended = job->status.suspended;
        status.cancelled = job->status.cancelled;
        status.pause.wanted = job->status.pause.wanted;
        if (random_.Below(3) != 0) status.state = JobState::kRunning;
        return JobStatusChanged{job->id, status};
      }
    }
  }

  // On free devices if `free`; otherwise on devices that are only not reserved.
  Placement Place(const Job& job, uint32_t task, bool free) {
    const Node* node = Pick(state_.nodes());
    Placement placement{task, node->id, {}};
    const TaskShape& shape = state_.interner().Shape(job.groups[GroupOf(job, task)].shape).shape;
    DeviceSet left = node->healthy;
    DeviceUse used = node->devices_reserved;
    if (free) used += node->devices_used;
    for (size_t d = 0; d < kMaxDevicesPerNode && !shape.devices.empty(); ++d) {
      if (d >= node->spec.devices.size()) break;
      const DeviceRequest& request = shape.devices[0];
      const int64_t asked = request.share > 0 ? ShareOn(node->spec.devices[d], request) : kWhole;
      if (!left.Has(d) || used.FreeOf(d) < asked) continue;
      placement.devices.Add(d);
      break;
    }
    return placement;
  }

  std::vector<Placement> PlaceWaiting(const Job& job, bool free) {
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      if (Waits(job.tasks[i].state)) return {Place(job, i, free)};
    }
    return {};
  }

  EventBody Bind() {
    const Job* job = Pick(state_.jobs());
    if (job == nullptr) return NewJob();
    return TasksBound{job->id, random_.Coin(), PlaceWaiting(*job, true)};
  }

  EventBody Nominate() {
    const Job* job = Pick(state_.jobs());
    if (job == nullptr) return NewJob();
    return TasksNominated{job->id, PlaceWaiting(*job, false), random_.Coin()};
  }

  EventBody Unnominate() {
    if (state_.nominated_jobs().empty()) return Nominate();
    const Job& job = state_.jobs().At(*state_.nominated_jobs().begin());
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      if (Reserves(job.tasks[i].state)) return TasksUnnominated{job.id, {i}};
    }
    return Nominate();
  }

  EventBody Reserve() {
    const Job* job = Pick(state_.jobs());
    if (job == nullptr) return NewJob();
    const Time start = now_ + absl::Minutes(random_.Below(60));
    Reservation reservation{start, start + absl::Hours(1), PlaceWaiting(*job, false)};
    if (random_.Coin()) reservation.end = absl::InfiniteFuture();
    if (random_.Below(4) == 0) reservation = {};
    return JobReserved{job->id, reservation};
  }

  EventBody Release(const Job& job, uint32_t task) {
    TasksReleased event{job.id, {task}, random_.Coin(), random_.Any(ReleaseReason::kGangExpired)};
    if (!IsEviction(event.reason)) return event;
    event.beneficiary = JobId{1 + random_.Below(5)};
    event.detail = random_.Text();
    if (event.requeue && random_.Coin()) event.moves_to = {Place(job, task, false)};
    return event;
  }

  // Of a job that runs, if there is one.
  EventBody SomeHang() {
    const Job* job = Pick(state_.jobs());
    for (int i = 0; i < 50 && job->status.state != JobState::kRunning; ++i) {
      job = Pick(state_.jobs());
    }
    uint32_t task = 0;
    while (task + 1 < job->tasks.size() && job->tasks[task].state != TaskState::kRunning) ++task;
    const bool over = random_.Below(8) == 0 ? !Hangs(*job) : Hangs(*job);
    return TaskHung{
        {job->id, task}, job->tasks[task].attempt, absl::Seconds(random_.Count(99)), -1, over};
  }

  // Of a task that runs, or is paused, if there is one.
  EventBody SomePause() {
    const auto [job, task] = TaskWhere([](const Task& one) {
      return one.state == TaskState::kRunning && one.pause == PauseState::kRuns;
    });
    return RandomTasksPaused(random_, job, task, now_);
  }
  EventBody SomeResume() {
    const auto [job, task] =
        TaskWhere([](const Task& one) { return one.pause != PauseState::kRuns; });
    const Task& found = state_.jobs().At(job).tasks[task];
    if (found.pause == PauseState::kPausing && random_.Coin()) {
      TaskReported frozen{{job, task}, found.attempt, ReportState::kPaused};
      frozen.devices_lent = random_.Coin() && MayLend(state_, state_.jobs().At(job), task);
      return frozen;
    }
    return TasksResumed{job, {task}, found.pause == PauseState::kPaused};
  }
  template <class Test>
  std::pair<JobId, uint32_t> TaskWhere(Test test) {
    const Job* job = Pick(state_.jobs());
    for (int i = 0; i < 50; ++i) {
      for (uint32_t task = 0; task < job->tasks.size(); ++task) {
        if (test(job->tasks[task])) return {job->id, task};
      }
      job = Pick(state_.jobs());
    }
    return {job->id, 0};
  }

  EventBody TaskEvent() {
    const Job* job = Pick(state_.jobs());
    for (int i = 0; i < 20 && job != nullptr && job->occupying == 0; ++i) job = Pick(state_.jobs());
    if (job == nullptr) return NewJob();
    const auto task = static_cast<uint32_t>(random_.Below(job->tasks.size()));
    const uint32_t attempt = job->tasks[task].attempt;
    switch (random_.Below(14)) {
      case 13:
        return SomeHang();
      case 11:
        return SomePause();
      case 12:
        return SomeResume();
      case 8:
        return TaskReady{{job->id, task}, attempt};
      case 9:
        return CheckpointRecorded{{job->id, task},
                                  attempt,
                                  random_.Count(1000),
                                  random_.Count(1000),
                                  random_.Any(CheckpointPlace::kShared)};
      case 10:
        return SomeHang();
      case 0:
        return TasksStarted{job->id, {task}};
      case 1:
        return Release(*job, task);
      case 2:
        return TasksRequeued{job->id, {task}};
      default: {
        TaskReported report;
        report.task = {job->id, task};
        report.attempt = attempt;
        report.state = random_.Any(ReportState::kExited);
        report.exit_code = random_.Count(3);
        report.exit_signal = static_cast<uint8_t>(random_.Below(10));
        report.cause = random_.Any(ExitCause::kDevice);
        report.port = static_cast<uint16_t>(random_.Below(65536));
        report.message = random_.Text();
        report.own_fault = random_.Coin();
        report.nobodys_fault = random_.Coin();
        return report;
      }
    }
  }

  RandomValues random_;
  ClusterState state_;
  TurnRecorder recorder_;
  Time now_ = absl::FromUnixSeconds(1'795'000'000);
  std::array<int, std::variant_size_v<AnyFact>> accepted_{};
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_RANDOM_CLUSTER_H_
