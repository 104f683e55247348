// Jobs, groups and tasks as the scheduler keeps them: what placing and ordering need, and no more.
// Command, environment and annotations stay in the store (storage/store.h, "cold part").
#ifndef BERTH_CORE_MODEL_JOB_H_
#define BERTH_CORE_MODEL_JOB_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/model/device_topology.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job_tasks.h"
#include "core/model/resources.h"
#include "core/model/task.h"
#include "core/prediction/run_prediction.h"

namespace berth {

// Instances of GPUs that are divided: a kind of its own, whose models are the profiles ("2g.20gb").
inline constexpr char kMigKind[] = "mig";

struct DeviceRequest {
  std::string kind;  // "gpu", "nic", ...
  int32_t count = 0;
  // In thousandths: a part of one device, and count is 1; 0 = whole devices. What queues count;
  // what the device has less by: ShareOn (core/model/node.h).
  int32_t share = 0;
  bool by_memory = false;      // of a share: it is as much of a device as min_memory_bytes is there
  bool oversubscribe = false;  // of a share: less than that will do where the node allows it
  int64_t min_memory_bytes = 0;        // of each device; of a share: of the part
  int32_t min_compute_capability = 0;  // 100 * major + minor; 0 = any
  std::vector<std::string> models;     // any of these; empty = any
  std::vector<std::string> deny_models;
  std::vector<std::string> allow_uuids;  // empty = any
  std::vector<std::string> deny_uuids;
  // Of every two devices of the set: the worst class allowed, and the least bandwidth. kUnknown and
  // 0 = any. Of a single device they say nothing.
  LinkClass min_link = LinkClass::kUnknown;
  int64_t min_bandwidth_gbps = 0;
  bool AsksForLinks() const {
    return count > 1 && (min_link != LinkClass::kUnknown || min_bandwidth_gbps > 0);
  }
  bool operator==(const DeviceRequest&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceRequest& v) {
    return H::combine(std::move(h), v.kind, v.count, v.share, v.by_memory, v.oversubscribe,
                      v.min_memory_bytes, v.min_compute_capability, v.models, v.deny_models,
                      v.allow_uuids, v.deny_uuids, v.min_link, v.min_bandwidth_gbps);
  }
};

struct NamedAmount {
  std::string name;
  int64_t amount = 0;  // in UnitOf the kind
  bool operator==(const NamedAmount&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const NamedAmount& v) {
    return H::combine(std::move(h), v.name, v.amount);
  }
};

struct Toleration {
  std::string key;    // empty = every key
  std::string value;  // empty = every value
  bool operator==(const Toleration&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Toleration& v) {
    return H::combine(std::move(h), v.key, v.value);
  }
};

// All that decides where one task fits. Tasks of equal shape are interchangeable. Interned in
// ClusterState.
struct TaskShape {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::vector<DeviceRequest> devices;  // sorted by kind, one per kind; one share at most
  std::vector<NamedAmount> extended;   // sorted by name
  std::map<std::string, std::string> match_labels;
  std::vector<std::string> exclude_nodes;  // sorted
  std::vector<Toleration> tolerations;
  bool operator==(const TaskShape&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const TaskShape& v) {
    return H::combine(std::move(h), v.cpu_millis, v.memory_bytes, v.devices, v.extended,
                      v.match_labels, v.exclude_nodes, v.tolerations);
  }
};

enum class PolicyEvent : uint8_t { kAny, kTaskFailed, kNodeLost, kTaskCompleted, kTimeout };
enum class PolicyAction : uint8_t {
  kRestartTask,
  kRestartGroup,
  kRestartJob,
  kAbort,
  kComplete,
  kIgnore
};

struct LifecyclePolicy {
  PolicyEvent event = PolicyEvent::kAny;
  std::vector<int32_t> exit_codes;  // kTaskFailed only; empty = any
  PolicyAction action = PolicyAction::kAbort;
  Duration after = absl::ZeroDuration();
  bool operator==(const LifecyclePolicy&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LifecyclePolicy& v) {
    return H::combine(std::move(h), v.event, v.exit_codes, v.action, v.after);
  }
};

enum class DependencyCondition : uint8_t { kAfterOk, kAfterAny, kAfterNotOk };
struct JobDependency {
  JobId job;
  DependencyCondition condition = DependencyCondition::kAfterOk;
  bool operator==(const JobDependency&) const = default;
};

enum class GroupCondition : uint8_t { kRunning, kCompleted };
struct GroupDependency {
  uint32_t group = 0;  // index in JobSpec::groups
  GroupCondition condition = GroupCondition::kRunning;
  bool operator==(const GroupDependency&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const GroupDependency& v) {
    return H::combine(std::move(h), v.group, v.condition);
  }
};

enum class NodeLossPolicy : uint8_t { kFence, kKeep, kReplaceNow };

// How tasks are laid out over nodes. kDefault: the next level up says it (group, job, queue), at
// last binpack.
enum class Strategy : uint8_t {
  kDefault,
  kBinpack,   // tightest node that fits
  kSpread,    // the node with the most free devices, then cpu
  kColocate,  // a node that already has tasks of the job, if one fits; else tightest
};

// Of the places that could hold a task of the group if nothing ran there, none has more than
// `max_skew` tasks of it above the one that has fewest (core/engine/spread.h).
struct Spread {
  int32_t tier = 0;      // places: nodes, or HyperNodes of the network tree of at most that tier
  int32_t max_skew = 0;  // 0 = not spread
  bool Any() const { return max_skew > 0; }
  bool operator==(const Spread&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Spread& v) {
    return H::combine(std::move(h), v.tier, v.max_skew);
  }
};

using LabelPair = std::pair<std::string, std::string>;

// Where tasks of the job go by where tasks of other jobs are (core/engine/job_affinity.h).
struct AffinityTerm {
  bool apart = false;             // from them; else near one of them
  std::vector<LabelPair> labels;  // they have all of these; sorted by key, never empty
  int32_t tier = 0;         // places: nodes, or HyperNodes of the network tree of at most that tier
  bool all_queues = false;  // else jobs of the same queue only
  bool operator==(const AffinityTerm&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const AffinityTerm& v) {
    return H::combine(std::move(h), v.apart, v.labels, v.tier, v.all_queues);
  }
};

struct GroupSpec {
  std::string name;
  int32_t replicas = 1;
  int32_t min_available = 1;  // 0..replicas
  TaskShape shape;
  std::vector<LifecyclePolicy> policies;
  std::vector<GroupDependency> depends_on;
  int32_t partition_size = 0;  // tasks of each sub-gang; 0 = no partitions; divides replicas and
                               // min_available
  Strategy strategy = Strategy::kDefault;
  std::vector<uint32_t> near_groups;  // each task on a node that has a task of each of these
  std::vector<uint32_t> apart_from;   // and on none that has one of these; may name itself
  int32_t affinity_tier = 0;  // of both: HyperNodes of the network tree of that tier in place of
                              // nodes; 0 = nodes
  TopologyConstraint topology;
  TopologyConstraint partition_topology;  // of each partition; only with partition_size
  int32_t communication = 0;  // weight of its traffic, at most kMaxCommunication; 0 = not said
  bool has_image = false;     // which may take long to unpack
  bool preemptible = false;   // although the job is not; only with min_available 0
  Strategy device_strategy = Strategy::kDefault;  // never kColocate
  Spread spread;                                  // not with a topology of the job or the group
  std::optional<int32_t> priority;                // see PriorityOf; none: the job's
  bool operator==(const GroupSpec&) const = default;
};

inline constexpr int32_t kMaxCommunication = 16'000;
// A node that is well prepares a task in that time, but for unpacking its image.
inline constexpr Duration kDefaultPrepareTimeout = absl::Seconds(60);

// The hard bound; the API door's limit (limits.tasks_per_job) is lower by default. Sums over one
// job stay in int64.
inline constexpr int64_t kMaxTasksPerJob = 30'000;

// What a JobSubmitted event carries. Valid by construction: the API door checked it
// (server/validation).
struct JobSpec {
  std::string name;
  QueueId queue;
  int32_t priority = 0;
  int32_t min_available = 0;  // 1..sum of replicas, >= sum of the groups' min_available
  std::vector<GroupSpec> groups;
  std::vector<LifecyclePolicy> policies;
  std::vector<JobDependency> dependencies;
  std::map<std::string, std::string> labels;
  int32_t max_retries = 0;
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  bool suspended = false;
  bool preemptible =
      false;             // may be evicted for others, and may borrow beyond its queue's deserved
  bool preempts = true;  // others may be stopped or moved for it
  Strategy strategy = Strategy::kDefault;
  Strategy device_strategy = Strategy::kDefault;  // never kColocate
  TopologyConstraint topology;
  std::vector<AffinityTerm> affinity;
  std::string user;  // who it is accounted to; may be empty
  // Loss when evicted: since the last checkpoint. Infinite = it never checkpoints.
  Duration checkpoint_interval = absl::InfiniteDuration();
  Time deadline = absl::InfiniteFuture();  // orders jobs of one priority
  Duration walltime = absl::InfiniteDuration();
  Duration retry_backoff = absl::Seconds(1);
  Duration prepare_timeout = kDefaultPrepareTimeout;
  Duration kill_grace = absl::Seconds(10);  // for explanations and fencing; the signal is cold
  Duration ttl_after_finished = absl::InfiniteDuration();
  Time start_after = absl::InfinitePast();
  bool operator==(const JobSpec&) const = default;
};

enum class JobState : uint8_t {
  kPending,
  kHeld,
  kBinding,
  kRunning,
  kRestarting,
  kSuspended,
  kCompleting,
  kSucceeded,
  kFailed,
  kCancelled,
};
inline constexpr size_t kJobStates = 10;
constexpr bool Ended(JobState state) { return state >= JobState::kSucceeded; }

struct Group {
  std::string name;
  int32_t replicas = 1;
  int32_t min_available = 1;
  uint32_t first_task = 0;  // its tasks are Job::tasks[first_task .. first_task + replicas)
  ShapeId shape;
  std::vector<LifecyclePolicy> policies;
  std::vector<GroupDependency> depends_on;
  int32_t partition_size = 0;
  Strategy strategy = Strategy::kDefault;
  std::vector<uint32_t> near_groups;
  std::vector<uint32_t> apart_from;
  int32_t affinity_tier = 0;
  int32_t communication = 0;
  bool has_image = false;
  bool preemptible = false;
  Strategy device_strategy = Strategy::kDefault;
  Spread spread;
  std::optional<int32_t> priority;
  TopologyConstraint topology;
  TopologyConstraint partition_topology;
  bool operator==(const Group&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Group& v) {
    return H::combine(std::move(h), v.name, v.replicas, v.min_available, v.first_task, v.shape,
                      v.policies, v.depends_on, v.partition_size, v.strategy, v.near_groups,
                      v.apart_from, v.affinity_tier, v.communication, v.has_image, v.preemptible,
                      v.device_strategy, v.spread, v.priority, v.topology, v.partition_topology);
  }
};

// A lifecycle action that waits out its delay.
struct DelayedAction {
  PolicyAction action = PolicyAction::kIgnore;
  uint32_t task = 0;     // whose event it was
  uint32_t attempt = 0;  // dropped when that task has moved on
  Time due = absl::InfiniteFuture();
  std::string message;
  bool operator==(const DelayedAction&) const = default;
};

enum class ReleaseReason : uint8_t {
  kCancelled,
  kSuspended,
  kRestart,
  kGangBroken,
  kDrain,
  kTimeout,
  kCompleted,
  kFailed,
  kPrepareTimeout,
  // Evictions: for the sake of another.
  kReclaimed,     // for a job of another queue that is entitled to the room
  kPreempted,     // for a job of the same queue with higher priority
  kConsolidated,  // moved, to make room in one piece
  kGangExpired    // below its minimum for too long
};
constexpr bool IsEviction(ReleaseReason reason) {
  return reason >= ReleaseReason::kReclaimed && reason <= ReleaseReason::kConsolidated;
}
// Tasks of a job were stopped for the sake of another job.
struct Eviction {
  Time time = absl::InfinitePast();
  ReleaseReason reason = ReleaseReason::kReclaimed;
  JobId beneficiary;
  int32_t tasks = 0;
  std::string detail;  // for people: why it was lawful
  bool operator==(const Eviction&) const = default;
};

// Starts of the job that were refused since it last ran whole. What the job brought along (a
// directory, a user, an image) does not heal: it fails after kMaxOwnRefusals. Faults of nodes, and
// what is nobody's fault, are waited out, up to kMaxRefusedStarts. Refusals of tasks beyond the
// minimum only slow its growth.
struct Refusals {
  int32_t own = 0;                    // incidents: for what the job brought along
  int32_t starts = 0;                 // incidents: by faults of nodes, or by nobody's
  int32_t spare = 0;                  // incidents of tasks beyond the minimum, whoever's fault
  std::vector<NodeId> nodes;          // that refused by no fault of theirs, ascending
  Time until = absl::InfinitePast();  // until then `nodes` get none of its tasks
  bool rests = false;                 // and, while it runs, it asks for no place at all
  bool operator==(const Refusals&) const = default;
};
inline constexpr int32_t kMaxOwnRefusals = 2;     // incidents, or nodes in one incident
inline constexpr int32_t kMaxRefusedStarts = 16;  // in a row
inline constexpr size_t kMaxRefusingNodes = 8;    // remembered of one job

// The job is not to be placed there now.
bool Avoids(const Refusals& refusals, NodeId node);

// The part of a job that changes as a whole; plain data, written as one record. Apply itself
// changes `starts` and `state` to Binding (TasksBound of a gang), `suspended`, `cancelled` and
// `message` (requests), `evictions` and `eviction` (TasksReleased); the rest comes with
// JobStatusChanged.
struct JobStatus {
  JobState state = JobState::kPending;
  JobState outcome = JobState::kPending;  // while kCompleting: the state to end in
  int32_t retries = 0;                    // used because of the job's own failures
  uint32_t starts = 0;                    // gangs bound so far
  Time bound = absl::InfinitePast();      // when the latest gang was bound
  Time start = absl::InfinitePast();      // of the latest gang start
  Time end = absl::InfinitePast();
  Time hold_until = absl::InfinitePast();  // retry back-off
  bool suspended = false;                  // the user's hold
  bool cancelled = false;                  // the user's wish; `message` is the reason given
  bool forced = false;                     // likewise, by force: what runs is killed without grace
  std::string message;
  std::vector<DelayedAction> delayed;
  uint32_t evictions = 0;  // so far
  Eviction eviction;       // the latest of them
  Refusals refusals;
  // For how long gangs ran that were stopped before the job was done: attained service, over the
  // job's devices (docs/prediction.md).
  Duration attained = absl::ZeroDuration();
  // What had come into its queue's line (Queue::line) when it was last released from a hold; 0:
  // never.
  int64_t line_from = 0;
  bool operator==(const JobStatus&) const = default;
};

// Where a job came into its queue's line (core/model/line.h). Facts, fixed when it is submitted.
struct LinePlace {
  int64_t work = 0;    // what it is expected to use
  int64_t before = 0;  // Queue::line before it
  bool operator==(const LinePlace&) const = default;
};

// What binding a gang changes of a status.
struct GangStart {
  JobState state = JobState::kPending;
  uint32_t starts = 0;
  Time bound = absl::InfinitePast();
};

// How many of a group's tasks are in each state (TallyState). Derived.
struct GroupTally {
  std::array<int32_t, kTaskStates> count{};

  int32_t In(TaskState state) const { return count[static_cast<size_t>(state)]; }
  int32_t Waiting() const { return In(TaskState::kPending) + In(TaskState::kNominated); }
  int32_t Nominated() const { return In(TaskState::kNominated); }
  // Hold or will hold a place in the gang: bound to running, or on a silent node.
  int32_t Members() const {
    return In(TaskState::kBound) + In(TaskState::kPrepared) + In(TaskState::kStarting) +
           In(TaskState::kRunning) + In(TaskState::kLost);
  }
  int32_t Occupying() const { return Members() + In(TaskState::kReleasing); }
  bool operator==(const GroupTally&) const = default;
};

// Order inside a queue: higher priority first, then earlier deadline, then lower rank, then older
// (job ids grow with submission).
struct OrderKey {
  int32_t priority = 0;
  Time deadline = absl::InfiniteFuture();
  int64_t rank = 0;
  JobId job;
  bool operator==(const OrderKey&) const = default;
  friend bool operator<(const OrderKey& a, const OrderKey& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.deadline != b.deadline) return a.deadline < b.deadline;
    return a.rank != b.rank ? a.rank < b.rank : a.job < b.job;
  }
};

struct JobTemplate;  // core/model/interner.h

// What planning reads and writes of every job that it places stands together, first: jobs are many
// and far apart in memory (StateEditor fetches this part of the next ones ahead).
struct Job {
  JobId id;
  QueueId queue;
  int32_t priority = 0;
  int32_t min_available = 0;
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  bool preemptible = false;
  bool preempts = true;
  Strategy strategy = Strategy::kDefault;
  Strategy device_strategy = Strategy::kDefault;
  // Derived.
  bool has_timer = false;
  // What waits of it is part of its queues' demand: it has neither ended nor is it on hold, and
  // planning does not know that it can never fit (PendingClass::never).
  bool wanting = false;
  bool class_remembered = false;  // by the editor that is planning
  bool walltime_updated = false;  // a fact: it is not the one that was submitted
  ClassId pending_class;          // 0 = asks for nothing now
  int32_t occupying = 0;          // tasks
  int32_t leaving = 0;            // of these: being released, without a place to move to
  Duration walltime;
  Time deadline;
  // Planning's, and no fact: the job order gives it (JobOrder::PrepareRank, StateEditor::SetRank).
  int64_t rank = 0;
  LinePlace line;
  RunPrediction prediction;                      // of when it was submitted
  absl::Span<const Group> groups;                // shared with equal jobs; valid as long as the job
  const TopologyConstraint* topology = nullptr;  // likewise; never null in a ClusterState
  absl::Span<const AffinityTerm> affinity;       // likewise
  absl::InlinedVector<GroupTally, 1> tallies;    // derived; parallel to groups
  JobTasks tasks;
  std::vector<JobDependency> dependencies;
  JobStatus status;

  std::string name;
  std::string user;
  int32_t max_retries = 0;
  Duration retry_backoff, prepare_timeout, kill_grace, ttl_after_finished;
  Duration checkpoint_interval;
  Time submit, start_after;
  uint64_t revision = 0;                       // batch sequence of its last change; the etag
  absl::Span<const LifecyclePolicy> policies;  // as groups
  std::map<std::string, std::string> labels;
  const JobTemplate* shared = nullptr;  // derived
  int64_t longest_line_before = 0;      // Queue::longest_line; while it may be taken back
};

// While it waits.
inline OrderKey KeyOf(const Job& job) { return {job.priority, job.deadline, job.rank, job.id}; }
// While it holds resources: a fact.
inline OrderKey HolderKeyOf(const Job& job) { return {job.priority, job.deadline, 0, job.id}; }

// How the tasks of the group are laid out; `of_queue` is the queue's own strategy.
Strategy StrategyOf(const Job& job, const Group& group, Strategy of_queue);

// How a task of the group is laid out over the devices of its node: kBinpack or kSpread; `of_queue`
// is the queue's own strategy for devices, and `of_nodes` what StrategyOf says.
Strategy DeviceStrategyOf(const Job& job, const Group& group, Strategy of_queue, Strategy of_nodes);

// Tasks of the group may be stopped for others.
inline bool Preemptible(const Job& job, const Group& group) {
  return job.preemptible || group.preemptible;
}

// How much the group's tasks beyond the minimum matter: never more than the job, as its minimum
// has the job's own priority and would else be less than they.
int32_t PriorityOf(const Job& job, const Group& group);
// The least of them.
int32_t LowestPriority(const Job& job);
// Some group's is not the job's.
inline bool Graded(const Job& job) { return LowestPriority(job) != job.priority; }

// When it ends at the latest, by its walltime; InfiniteFuture without one. Runs from the gang's
// start, or from its bind while that is still to come; before its first bind it has no end. May
// have passed: it is then being stopped. For jobs that occupy.
Time PlannedEnd(const Job& job);

// Over all groups.
GroupTally TallyOf(const Job& job);

// Some topology constraint, of the job, a group or a partition, says where its tasks may be.
bool HasTopology(const Job& job);

// Index of the group that task `task` belongs to.
uint32_t GroupOf(const Job& job, uint32_t task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_H_
