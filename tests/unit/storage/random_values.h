// Random core values from a seed. Every field has its default in about half of the cases, so that
// both presence and absence are tested.
#ifndef BERTH_TESTS_UNIT_STORAGE_RANDOM_VALUES_H_
#define BERTH_TESTS_UNIT_STORAGE_RANDOM_VALUES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/event.h"
#include "support/random.h"
#include "tests/unit/storage/random_access.h"
#include "tests/unit/storage/random_marks.h"

namespace berth {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  bool Coin() { return random_.Below(2) == 0; }
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  Random& random() { return random_; }

  std::string Text() {
    std::string text;
    if (Coin()) return text;
    for (uint64_t i = random_.Below(20); i > 0; --i) {
      text.push_back(static_cast<char>('a' + random_.Below(26)));
    }
    return text;
  }
  int32_t Int32() { return Coin() ? 0 : static_cast<int32_t>(random_.Next()); }
  uint32_t Uint32() { return Coin() ? 0 : static_cast<uint32_t>(random_.Next()); }
  int64_t Int64() { return Coin() ? 0 : static_cast<int64_t>(random_.Next()); }
  uint64_t Uint64() { return Coin() ? 0 : random_.Next(); }
  int32_t Count(int32_t bound) {
    return static_cast<int32_t>(random_.Below(static_cast<uint64_t>(bound)));
  }
  template <class Enum>
  Enum Any(Enum last) {
    return static_cast<Enum>(random_.Below(static_cast<uint64_t>(last) + 1));
  }

  Time AnyTime() {
    switch (random_.Below(5)) {
      case 0:
        return absl::InfinitePast();
      case 1:
        return absl::InfiniteFuture();
      case 2:
        return absl::UnixEpoch();
      case 3:
        return absl::FromUnixSeconds(-static_cast<int64_t>(random_.Below(1'000'000'000))) +
               absl::Nanoseconds(random_.Below(1'000'000'000));
      default:
        return absl::FromUnixNanos(static_cast<int64_t>(random_.Next() >> 2));
    }
  }
  Duration AnyDuration() {
    switch (random_.Below(4)) {
      case 0:
        return absl::ZeroDuration();
      case 1:
        return absl::InfiniteDuration();
      case 2:
        return absl::Hours(random_.Below(100'000'000));
      default:
        return absl::Nanoseconds(static_cast<int64_t>(random_.Next() >> 2));
    }
  }

  template <class Make>
  auto List(Make make) {
    std::vector<decltype(make())> list;
    if (Coin()) return list;
    for (uint64_t i = random_.Below(4); i > 0; --i) list.push_back(make());
    return list;
  }
  std::vector<std::string> Texts() {
    return List([this] { return Text(); });
  }
  std::vector<uint32_t> Indexes() {
    return List([this] { return Uint32(); });
  }
  std::map<std::string, std::string> Labels() {
    std::map<std::string, std::string> labels;
    for (uint64_t i = random_.Below(4); i > 0; --i) labels[Text()] = Text();
    return labels;
  }
  std::vector<NamedAmount> Amounts() {
    return List([this] { return NamedAmount{.name = Text(), .amount = Int64()}; });
  }
  DeviceSet Devices() {
    DeviceSet devices;
    if (Coin()) return devices;
    devices.bits[0] = Uint64();
    devices.bits[1] = Uint64();
    return devices;
  }

  QueueSpec AnyQueueSpec() {
    return {.name = Text(),
            .parent = QueueId{Uint32()},
            .guarantee = Amounts(),
            .deserved = Amounts(),
            .limit = Amounts(),
            .weight = Coin() ? 1 : Int32(),
            .priority = Int32(),
            .reclaimable = Coin(),
            .surplus_only = Coin(),
            .slice = AnyDuration(),
            .order = Any(QueueOrder::kFifoStrict),
            .user_fairness = Any(UserFairness::kDrf),
            .strategy = Any(Strategy::kColocate),
            .device_strategy = Any(Strategy::kSpread),
            .max_jobs = Int32(),
            .max_running_jobs = Int32(),
            .max_tasks = Int32(),
            .defaults = {.cpu_millis = Int64(),
                         .memory_bytes = Int64(),
                         .walltime = Coin() ? absl::InfiniteDuration() : absl::Seconds(90)},
            .labels = Labels()};
  }

  Device AnyDevice() {
    return {.kind = Text(),
            .uuid = Text(),
            .model = Text(),
            .memory_bytes = Int64(),
            .numa_node = Int32(),
            .pci_bus_id = Text(),
            .unhealthy = Coin(),
            .max_tasks = Coin() ? 1 : 9,
            .oversubscription = Coin() ? 100 : 350,
            .compute_capability = Int32()};
  }
  DeviceTopology AnyTopologyOf(size_t devices) {
    DeviceTopology topology;
    if (Coin()) return topology;
    for (uint32_t i = Uint32() % 4; i > 0; --i) {
      topology.links.push_back({.link = Any(LinkClass::kSys),
                                .count = Int32(),
                                .mb_per_s = Int64(),
                                .same_package = Coin()});
    }
    for (size_t i = 0; i < PairsOf(devices); ++i) {
      topology.between += static_cast<char>(Uint32() % (topology.links.size() + 1));
    }
    topology.numa_nodes.push_back(
        {.id = Int32(), .package = Int32(), .cpus = Text(), .memory_bytes = Int64()});
    return topology;
  }
  NodeSpec AnyNodeSpec() {
    std::vector<Device> devices = List([this] { return AnyDevice(); });
    const DeviceTopology topology = AnyTopologyOf(devices.size());
    return {
        .name = Text(),
        .address = Text(),
        .cpu_millis = Int64(),
        .memory_bytes = Int64(),
        .devices = std::move(devices),
        .extended = Amounts(),
        .labels = Labels(),
        .taints = List([this] { return Taint{.key = Text(), .value = Text(), .evicts = Coin()}; }),
        .os = Text(),
        .architecture = Text(),
        .topology = topology,
        .divides_gpus = Coin(),
        .freezes = Coin(),
        .checkpoints_devices = Coin(),
        .max_tasks = Count(1 << 30)};
  }
  NodeStatus AnyNodeStatus() {
    return {.state = Any(NodeState::kLost),
            .cordoned = Coin(),
            .draining = Coin(),
            .reason = Text(),
            .epoch = Uint64(),
            .agent_id = Text(),
            .boot_id = Text(),
            .agent_version = Text(),
            .registered = AnyTime(),
            .refusals = Count(1 << 30),
            .refused_jobs = Count(1 << 30),
            .last_refused = JobId{Uint64()},
            .refused_before = List([this] { return JobId{Uint64()}; }),
            .backoff_until = AnyTime(),
            .refusal = Text(),
            .drain = AnyDrain(),
            .faults = Coin() ? NodeFaults{} : NodeFaults{1 + Count(999), AnyTime()}};
  }
  Drain AnyDrain() {
    if (Coin()) return {};
    return {.mode = Any(DrainMode::kWhenPlaced),
            .begin = AnyTime(),
            .deadline = Coin() ? absl::InfiniteFuture() : absl::FromUnixSeconds(Count(1 << 30)),
            .devices = Devices()};
  }

  HyperNodeSpec AnyHyperNodeSpec() {
    return {.name = Text(),
            .kind = Coin() ? kNetworkKind : Text(),
            .tier = Int32(),
            .tier_name = Text(),
            .members = List([this] {
              return HyperNodeMember{.type = Any(HyperNodeMember::Type::kHyperNode),
                                     .match = Any(HyperNodeMember::Match::kLabel),
                                     .text = Text()};
            }),
            .bandwidth_gbps = Int64(),
            .latency_us = Int64(),
            .health = Any(DomainHealth::kDegraded),
            .health_reason = Text(),
            .source = Text()};
  }
  template <class SomeId>
  std::vector<SomeId> Ids() {
    return List([this] { return SomeId{static_cast<SomeId::Value>(Uint64())}; });
  }

  TopologyConstraint AnyTopology() {
    if (Coin()) return {};
    return {.mode = Any(TopologyMode::kSoft),
            .highest_tier = Int32(),
            .highest_tier_name = Text(),
            .kind = Coin() ? kNetworkKind : Text(),
            .patience = AnyDuration()};
  }

  LifecyclePolicy AnyPolicy() {
    return {.event = Any(PolicyEvent::kTaskHung),
            .exit_codes = List([this] { return Int32(); }),
            .action = Any(PolicyAction::kRestartPartition),
            .after = AnyDuration(),
            .rung = Int32(),
            .within = AnyDuration()};
  }
  DeviceRequest AnyDeviceRequest() {
    return {.kind = Text(),
            .count = Int32(),
            .share = Int32(),
            .by_memory = Coin(),
            .oversubscribe = Coin(),
            .min_memory_bytes = Int64(),
            .min_compute_capability = Int32(),
            .models = Texts(),
            .deny_models = Texts(),
            .allow_uuids = Texts(),
            .deny_uuids = Texts(),
            .min_link = Any(LinkClass::kSys),
            .min_bandwidth_gbps = Int64()};
  }
  TaskShape AnyShape() {
    return {.cpu_millis = Int64(),
            .memory_bytes = Int64(),
            .devices = List([this] { return AnyDeviceRequest(); }),
            .extended = Amounts(),
            .match_labels = Labels(),
            .exclude_nodes = Texts(),
            .tolerations = List([this] { return Toleration{.key = Text(), .value = Text()}; })};
  }
  GroupSpec AnyGroup() {
    return {.name = Text(),
            .replicas = Count(1000),
            .min_available = Int32(),
            .shape = AnyShape(),
            .policies = List([this] { return AnyPolicy(); }),
            .depends_on = List([this] {
              return GroupDependency{.group = Uint32(),
                                     .condition = Any(GroupCondition::kCompleted)};
            }),
            .partition_size = Int32(),
            .strategy = Any(Strategy::kColocate),
            .near_groups = Indexes(),
            .apart_from = Indexes(),
            .affinity_tier = Int32(),
            .topology = AnyTopology(),
            .partition_topology = AnyTopology(),
            .communication = Int32(),
            .has_image = Coin(),
            .image = ImageId{Uint64()},
            .preemptible = Coin(),
            .device_strategy = Any(Strategy::kSpread),
            .spread = {.tier = Int32(), .max_skew = Int32()},
            .priority = Coin() ? std::optional(Int32()) : std::nullopt,
            .membership = Any(GangMembership::kIndependent),
            .coordinator = Coin(),
            .spare_of = Coin() ? std::optional(Uint32()) : std::nullopt};
  }
  JobSpec AnyJobSpec() {
    JobSpec spec;
    spec.name = Text();
    spec.queue = QueueId{Uint32()};
    spec.priority = Int32();
    spec.min_available = Int32();
    spec.groups = List([this] { return AnyGroup(); });
    spec.policies = List([this] { return AnyPolicy(); });
    spec.dependencies = List([this] {
      return JobDependency{.job = JobId{Uint64()},
                           .condition = Any(DependencyCondition::kAfterNotOk)};
    });
    spec.labels = Labels();
    spec.max_retries = Int32();
    spec.on_node_loss = Any(NodeLossPolicy::kReplaceNow);
    spec.suspended = Coin();
    spec.preemptible = Coin();
    spec.preempts = Coin();
    spec.preempt_mode = Any(PreemptMode::kPause);
    spec.strategy = Any(Strategy::kColocate);
    spec.device_strategy = Any(Strategy::kSpread);
    spec.topology = AnyTopology();
    spec.affinity = List([this] {
      const auto labels = Labels();
      return AffinityTerm{.apart = Coin(),
                          .labels = {labels.begin(), labels.end()},
                          .tier = Int32(),
                          .all_queues = Coin()};
    });
    spec.user = Text();
    spec.owner = Text();
    spec.priority_class = Text();
    spec.checkpoint_interval = AnyDuration();
    spec.walltime_notice = AnyDuration();
    spec.saves_before_drain = Coin();
    spec.may_migrate = Coin();
    spec.suspends_idle = Coin();
    spec.checkpoints_devices = Coin();
    spec.watchdog = AnyDuration();
    spec.dump_wait = AnyDuration();
    spec.saved_exit_codes = List([this] { return Int32(); });
    spec.deadline = AnyTime();
    spec.walltime = AnyDuration();
    spec.retry_backoff = AnyDuration();
    spec.prepare_timeout = AnyDuration();
    spec.kill_grace = AnyDuration();
    spec.ttl_after_finished = AnyDuration();
    spec.start_after = AnyTime();
    return spec;
  }

  DelayedAction AnyDelayed() {
    return {.action = Any(PolicyAction::kIgnore),
            .task = Uint32(),
            .attempt = Uint32(),
            .due = AnyTime(),
            .message = Text()};
  }
  JobStatus AnyJobStatus() {
    return {.state = Any(JobState::kCancelled),
            .outcome = Any(JobState::kCancelled),
            .retries = Count(1 << 30),
            .starts = Uint32(),
            .bound = AnyTime(),
            .start = AnyTime(),
            .end = AnyTime(),
            .hold_until = AnyTime(),
            .suspended = Coin(),
            .cancelled = Coin(),
            .forced = Coin(),
            .rung = 3,
            .message = Text(),
            .delayed = List([this] { return AnyDelayed(); }),
            .evictions = Uint32(),
            .eviction = {.time = AnyTime(),
                         .reason = Any(ReleaseReason::kGangExpired),
                         .beneficiary = JobId{Uint64()},
                         .tasks = Int32(),
                         .detail = Text()},
            .refusals = AnyRefusals(),
            .avoided = AnyAvoided(),
            .attained = Coin() ? absl::Milliseconds(Count(1 << 30)) : absl::ZeroDuration(),
            .line_from = Count(1 << 30),
            .epoch = Uint32(),
            .incident = AnyTime(),
            .checkpoint_asked = AnyTime(),
            .places_until = AnyTime(),
            .checkpoint = AnyCheckpoint(),
            .hang = AnyHang(),
            .pause = RandomPause(*this)};
  }
  Checkpoint AnyCheckpoint() {
    if (Coin()) return {};
    return {.time = absl::FromUnixSeconds(Count(1 << 30)),
            .step = Count(1 << 30),
            .bytes = Count(1 << 30),
            .place = Any(CheckpointPlace::kShared)};
  }
  Hang AnyHang() {
    if (Coin()) return {};
    return {.time = absl::FromUnixSeconds(Count(1 << 30)),
            .task = Uint32(),
            .attempt = Uint32(),
            .still = absl::Milliseconds(Count(1 << 30)),
            .step = Int32()};
  }
  LinePlace AnyLinePlace() {
    if (Coin()) return {};
    return {.work = Count(1 << 30), .before = Count(1 << 30)};
  }
  Refusals AnyRefusals() {
    if (Coin()) return {};
    Refusals refusals{.own = Count(1 << 30),
                      .starts = Count(1 << 30),
                      .spare = Count(1 << 30),
                      .nodes = {},
                      .until = AnyTime(),
                      .rests = Coin()};
    for (uint32_t node = 0; Coin() && node < kMaxRefusingNodes; ++node) {
      refusals.nodes.push_back(NodeId{node});
    }
    return refusals;
  }
  AvoidedNodes AnyAvoided() {
    AvoidedNodes avoided;
    for (uint32_t node = 0; Coin() && node < kMaxAvoidedNodes; ++node) {
      avoided.push_back({.node = NodeId{node}, .until = absl::FromUnixSeconds(Count(1 << 30))});
    }
    return avoided;
  }
  Placement AnyPlacement() { return {Uint32(), NodeId{Uint32()}, Devices()}; }
  std::vector<Placement> Placements() {
    return List([this] { return AnyPlacement(); });
  }
  Reservation AnyReservation() {  // without placements there is no reservation, whatever its times
    std::vector<Placement> places = Placements();
    if (places.empty()) return {};
    return {
        .start = AnyTime(), .end = AnyTime(), .places = std::move(places), .firm_from = AnyTime()};
  }
  Task AnyTask() {
    const bool moves = Coin();
    return {.state = Any(TaskState::kFailed),
            .before_lost = Any(TaskState::kFailed),
            .end_cause = Any(EndCause::kDevice),
            .exit_signal = static_cast<uint8_t>(Uint32()),
            .requeue = Coin(),
            .own_fault = Coin(),
            .rank = static_cast<uint16_t>(Uint32()),
            .world = static_cast<uint16_t>(Uint32()),
            .epoch = Uint32(),
            .exit_code = Int32(),
            .attempt = Uint32(),
            .node = NodeId{Uint32()},
            .port = static_cast<uint16_t>(Uint32()),
            .released = Any(ReleaseReason::kGangExpired),
            .nobodys_fault = Coin(),
            .ready = Coin(),
            .claimed = Coin(),
            .pause = Any(PauseState::kResuming),
            .devices_lent = Coin(),
            .devices = Devices(),
            .moves = moves,
            .next_node = NodeId{moves ? Uint32() : 0},
            .next_devices = moves ? Devices() : DeviceSet{},
            .since = AnyTime(),
            .start = AnyTime(),
            .saved = AnyTime()};
  }

  // An event of the kind with this index in EventBody.
  EventBody AnyBody(size_t index) {
    const NodeId node{Uint32()};
    const JobId job{Uint64()};
    switch (index) {
      case 0:
        return QueueCreated{QueueId{Uint32()}, AnyQueueSpec()};
      case 1:
        return QueueUpdated{QueueId{Uint32()}, AnyQueueSpec()};
      case 2:
        return QueueOpened{QueueId{Uint32()}, Coin()};
      case 3:
        return QueueDeleted{QueueId{Uint32()}};
      case 4:
        return NodeRegistered{node, AnyNodeSpec(), Uint64(), Text(), Text(), Text(), Coin()};
      case 5:
        return NodeSilenced{node, Coin(), Coin()};
      case 6:
        return NodeFenced{node, Coin()};
      case 7:
        return NodeSteered{node, Coin(), Coin(), Text(), AnyDrain(), Coin()};
      case 8:
        return NodeRefused{node, Count(1 << 30), AnyTime(), JobId{Uint64()}, Text(), Coin()};
      case 9:
        return NodeDeleted{node};
      case 10:
        return JobSubmitted{job, AnyJobSpec(), Coin()};
      case 11:
        return JobUpdated{job, Int32(), Labels(),
                          Coin() ? std::optional<Duration>(AnyDuration()) : std::nullopt};
      case 12:
        return JobCancelled{job, Text(), Coin()};
      case 13:
        return JobSuspended{job, Coin(), Text(), Coin()};
      case 14:
        return JobDeleted{job};
      case 15:
        return RandomReport(*this, job);
      case 16:
        return TasksBound{job, Coin(), Placements(), Uint32()};
      case 17:
        return TasksStarted{job, Indexes()};
      case 18:
        return TasksReleased{
            job,    Indexes(),   Coin(), Any(ReleaseReason::kGangExpired), JobId{Uint64()},
            Text(), Placements()};
      case 19:
        return TasksRequeued{job, Indexes()};
      case 20:
        return JobStatusChanged{job, AnyJobStatus()};
      case 21:
        return TasksNominated{job, Placements(), Coin()};
      case 22:
        return TasksUnnominated{job, Indexes()};
      case 23:
        return JobReserved{job, AnyReservation()};
      case 24:
        return UsageCharged{AnyDuration(), AnyDuration()};
      case 25:
        return HyperNodeChanged{HyperNodeId{Uint32()}, AnyHyperNodeSpec()};
      case 26:
        return HyperNodeDeleted{HyperNodeId{Uint32()}};
      case 27:
        return NodesJoined{HyperNodeId{Uint32()}, Ids<NodeId>()};
      case 28:
        return NodesLeft{HyperNodeId{Uint32()}, Ids<NodeId>()};
      case 29:
        return RequestMixChanged{AnyMix()};
      case 30:
        return JobRunRecorded{job};
      case 31:
        return TaskReady{{job, Uint32()}, Uint32()};
      case 32:
        return CheckpointRecorded{{job, Uint32()},
                                  Uint32(),
                                  static_cast<int64_t>(Uint64()),
                                  static_cast<int64_t>(Uint64()),
                                  Any(CheckpointPlace::kShared)};
      case 33:
        return TaskHung{{job, Uint32()}, Uint32(), AnyDuration(), Int32(), Coin()};
      case 35:
        return PriorityClassesChanged{RandomPriorityClasses(*this)};
      case 36:
        return NodeImagesChanged{node, Ids<ImageId>(), Ids<ImageId>()};
      case 37:
        return TasksPaused{job, Indexes(), AnyTime(), JobId{Uint64()}, Text()};
      case 38:
        return TasksResumed{job, Indexes(), Coin()};
      default:
        return AccessChanged{AnyAccessChange()};
    }
  }

  AccessChange AnyAccessChange() { return RandomAccessChange(*this); }  // rules may refuse it

  RunPrediction AnyPrediction() {
    if (Coin()) return {};
    return {.expected_s = 1 + static_cast<int32_t>(Below(1'000'000)),
            .harmonic_s = Int32(),
            .low_s = Int32(),
            .high_s = Int32()};
  }

  FinishedRun AnyRun() { return RandomRun(*this); }

  RequestMix AnyMix() {
    RequestMix mix{.models = Texts(), .types = {}, .cpu_millis_per_device = Int64()};
    mix.priced = Coin();
    mix.mib_per_core = Int64();
    mix.score = static_cast<MixScore>(Below(kMixScores));
    mix.types = List([this] {
      return RequestType{.request = {.devices = Int32(),
                                     .share = Int32(),
                                     .cpu_millis = Int64(),
                                     .models = static_cast<uint64_t>(Int64())},
                         .weight = Int64(),
                         .value = Int64()};
    });
    return mix;
  }

 private:
  Random random_;
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_RANDOM_VALUES_H_
