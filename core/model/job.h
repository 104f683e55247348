// Jobs, groups and tasks as the scheduler stores them, limited to what placement and ordering need.
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
#include "core/base/boxed.h"
#include "core/base/fields.h"
#include "core/model/avoided.h"
#include "core/model/device_topology.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job_marks.h"
#include "core/model/job_tasks.h"
#include "core/model/refusals.h"
#include "core/model/resources.h"
#include "core/model/series.h"
#include "core/model/task.h"
#include "core/prediction/run_prediction.h"

namespace berth {

// Instances of divided GPUs: a separate kind, whose models are the profiles ("2g.20gb").
inline constexpr char kMigKind[] = "mig";

struct DeviceRequest {
  std::string kind;  // "gpu", "nic", ...
  int32_t count = 0;
  // A share of one device in thousandths, with count 1; 0 = whole devices. Queues count this
  // number; ShareOn (core/model/node.h) is what it takes of a device.
  int32_t share = 0;
  bool by_memory = false;        // share only: min_memory_bytes as a part of the device's memory
  bool oversubscribe = false;    // share only: may be smaller where the node allows it
  int64_t min_memory_bytes = 0;  // of each device; for a share: of the part
  int32_t min_compute_capability = 0;  // 100 * major + minor; 0 = any
  std::vector<std::string> models;     // any of these; empty = any
  std::vector<std::string> deny_models;
  std::vector<std::string> allow_uuids;  // empty = any
  std::vector<std::string> deny_uuids;
  // For every two devices of the set: the worst class allowed, and the minimum bandwidth. kUnknown
  // and 0 = any. No effect on a single device.
  LinkClass min_link = LinkClass::kUnknown;
  int64_t min_bandwidth_gbps = 0;
  bool AsksForLinks() const {
    return count > 1 && (min_link != LinkClass::kUnknown || min_bandwidth_gbps > 0);
  }
  bool operator==(const DeviceRequest&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceRequest& v) {
    return HashFields(std::move(h), v);
  }
};

struct NamedAmount {
  std::string name;
  int64_t amount = 0;  // in UnitOf the kind
  bool operator==(const NamedAmount&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const NamedAmount& v) {
    return HashFields(std::move(h), v);
  }
};

struct Toleration {
  std::string key;    // empty = every key
  std::string value;  // empty = every value
  bool operator==(const Toleration&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Toleration& v) {
    return HashFields(std::move(h), v);
  }
};

// Everything that decides where one task fits. Tasks of equal shape are interchangeable. Interned
// in ClusterState.
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
    return HashFields(std::move(h), v);
  }
};

enum class PolicyEvent : uint8_t {
  kAny,
  kTaskFailed,
  kNodeLost,
  kTaskCompleted,
  kTimeout,
  kTaskEvicted,
  kTaskPending,
  kDeviceUnhealthy,
  kTaskHung,
};
enum class PolicyAction : uint8_t {
  kRestartTask,
  kRestartGroup,
  kRestartJob,
  kAbort,
  kComplete,
  kIgnore,
  kRestartPartition,
};

struct LifecyclePolicy {
  PolicyEvent event = PolicyEvent::kAny;
  std::vector<int32_t> exit_codes;  // kTaskFailed only; empty = any
  PolicyAction action = PolicyAction::kAbort;
  Duration after = absl::ZeroDuration();
  int32_t rung = 0;  // 0: applies always; else only to failures on that rung of the escalation,
  Duration within = absl::ZeroDuration();  // after which one that comes so soon is on the next
  bool operator==(const LifecyclePolicy&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LifecyclePolicy& v) {
    return HashFields(std::move(h), v);
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
    return HashFields(std::move(h), v);
  }
};

// What the loss of one task means for the other tasks (docs/developers/gangs.md).
enum class GangMembership : uint8_t {
  kDefault,
  kRigid,        // all run in one epoch, or none
  kRendezvous,   // they find each other anew: one that is lost is replaced alone
  kIndependent,  // they do not need each other
};

enum class NodeLossPolicy : uint8_t { kFence, kKeep, kReplaceNow };

// How tasks are distributed over nodes. kDefault: inherited from the next level (group, job,
// queue), finally binpack.
enum class Strategy : uint8_t {
  kDefault,
  kBinpack,   // tightest node that fits
  kSpread,    // the node with the most free devices, then cpu
  kColocate,  // a node that already has tasks of the job, if one fits; else tightest
};

// Limits the skew of a group: of the places that could hold one of its tasks if empty, none has
// over `max_skew` more tasks of it than the place that has fewest (core/engine/search/spread.h).
struct Spread {
  int32_t tier = 0;      // places: nodes, or HyperNodes of the network tree up to that tier
  int32_t max_skew = 0;  // 0 = not spread
  bool Any() const { return max_skew > 0; }
  bool operator==(const Spread&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Spread& v) {
    return HashFields(std::move(h), v);
  }
};

using LabelPair = std::pair<std::string, std::string>;

// Where the job's tasks go depending on tasks of other jobs (core/engine/search/job_affinity.h).
struct AffinityTerm {
  bool apart = false;             // away from them; else near one of them
  std::vector<LabelPair> labels;  // they have all of these; sorted by key, never empty
  int32_t tier = 0;         // places: nodes, or HyperNodes of the network tree up to that tier
  bool all_queues = false;  // else only jobs of the same queue
  bool operator==(const AffinityTerm&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const AffinityTerm& v) {
    return HashFields(std::move(h), v);
  }
};

// A group of tasks. `Shape` describes one of them: a TaskShape in a specification, its id in a Job.
template <class Shape>
struct BasicGroup {
  std::string name;
  int32_t replicas = 1;
  int32_t min_available = 1;  // 0..replicas
  Shape shape;
  std::vector<LifecyclePolicy> policies;
  std::vector<GroupDependency> depends_on;
  int32_t partition_size = 0;  // tasks of each sub-gang; 0 = no partitions; divides replicas and
                               // min_available
  Strategy strategy = Strategy::kDefault;
  std::vector<uint32_t> near_groups;  // each task on a node that has a task of each of these
  std::vector<uint32_t> apart_from;   // and on none that has one of these; may include itself
  int32_t affinity_tier = 0;  // of both: HyperNodes of the network tree of that tier instead of
                              // nodes; 0 = nodes
  TopologyConstraint topology;
  TopologyConstraint partition_topology;  // of each partition; only with partition_size
  int32_t communication = 0;  // weight of its traffic, at most kMaxCommunication; 0 = unset
  bool has_image = false;     // may take long to unpack
  ImageId image;              // 0: it has none, or the name is none of a registry
  bool preemptible = false;   // although the job is not; only with min_available 0
  Strategy device_strategy = Strategy::kDefault;  // never kColocate
  Spread spread;                                  // not with a topology of the job or the group
  std::optional<int32_t> priority;                // see PriorityOf; nullopt: the job's
  GangMembership membership = GangMembership::kDefault;  // see MembershipOf
  bool coordinator = false;                              // hosts the rendezvous; of one task
  std::optional<uint32_t> spare_of;  // holds places in reserve for that group, of the same shape
  bool operator==(const BasicGroup&) const = default;
};
using GroupSpec = BasicGroup<TaskShape>;

// The same group with another description of its tasks.
template <class From, class To>
BasicGroup<To> WithShape(const BasicGroup<From>& group, To shape) {
  BasicGroup<To> result;
  ForEachPair(group, result, [](const auto& from, auto& to) {
    if constexpr (requires { to = from; }) to = from;
  });
  result.shape = std::move(shape);
  return result;
}

inline constexpr int32_t kMaxCommunication = 16'000;
inline constexpr Duration kDefaultDumpWait = absl::Seconds(10);
// A healthy node prepares a task within this time, excluding the unpacking of its image.
inline constexpr Duration kDefaultPrepareTimeout = absl::Seconds(60);
// The default of a job with an image, which may have to be pulled.
inline constexpr Duration kImagePrepareTimeout = absl::Minutes(30);

// The hard limit; the API's limit (limits.tasks_per_job) is lower by default. Sums over one job
// stay in int64.
inline constexpr int64_t kMaxTasksPerJob = 30'000;

// The content of a JobSubmitted event. Valid by construction: the API has checked it
// (server/validation).
// How its tasks make room for a job of higher priority (core/actions/preempt.cc).
enum class PreemptMode : uint8_t {
  kRequeue,  // they are stopped, and start again later
  kPause,    // they are frozen, if what that gives back suffices
};

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
  bool preempts = true;  // other jobs may be evicted or moved for it
  PreemptMode preempt_mode = PreemptMode::kRequeue;
  Strategy strategy = Strategy::kDefault;
  Strategy device_strategy = Strategy::kDefault;  // never kColocate
  TopologyConstraint topology;
  std::vector<AffinityTerm> affinity;
  std::string user;            // the user it is accounted to; may be empty
  std::string owner;           // the user who submitted it, as the connection proved; may be empty
  std::string priority_class;  // that it was submitted with, and whose values it has; may be empty
  // Work lost on eviction: since the last checkpoint. Infinite = it never checkpoints.
  Duration checkpoint_interval = absl::InfiniteDuration();
  // The checkpoint signal is sent this long before the walltime is used up; 0 = it is not.
  Duration walltime_notice = absl::ZeroDuration();
  std::vector<int32_t> saved_exit_codes;  // after that signal, ends that are no failures; ascending
  bool saves_before_drain = false;  // a drain with DrainMode::kCheckpoint sends the signal, too
  bool may_migrate = false;         // away from degraded domains (core/actions/migrate.cc)
  bool suspends_idle = false;       // when its devices are idle; the rest of the rule is cold
  bool checkpoints_devices =
      false;  // it lends its devices while it is paused (core/model/pauses.h)
  // It hangs if it shows no progress for so long. Infinite: nobody watches.
  Duration watchdog = absl::InfiniteDuration();
  Duration dump_wait = absl::ZeroDuration();  // from the signal for its stacks until it is stopped
  Time deadline = absl::InfiniteFuture();     // orders jobs of equal priority
  Duration walltime = absl::InfiniteDuration();
  Duration retry_backoff = absl::Seconds(1);
  Duration prepare_timeout = kDefaultPrepareTimeout;
  Duration kill_grace = absl::Seconds(10);  // for explanations and fencing; the signal is cold
  Duration ttl_after_finished = absl::InfiniteDuration();
  Time start_after = absl::InfinitePast();
  int32_t min_success = 0;  // tasks; it succeeds once so many have; 0 = its minimum, once all ended
  Duration run_limit = absl::InfiniteDuration();  // from its first start, restarts included
  Boxed<SeriesSpec> series;                       // it makes jobs, and has no tasks
  Boxed<MemberOf> member;                         // a series made it
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

struct Group : BasicGroup<ShapeId> {
  uint32_t first_task = 0;  // its tasks are Job::tasks[first_task .. first_task + replicas)
  bool operator==(const Group&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Group& v) {
    return HashFields(std::move(h), static_cast<const BasicGroup<ShapeId>&>(v));
  }
};

// A lifecycle action waiting for its delay.
struct DelayedAction {
  PolicyAction action = PolicyAction::kIgnore;
  uint32_t task = 0;     // the task of the event
  uint32_t attempt = 0;  // dropped if that task has a newer attempt
  Time due = absl::InfiniteFuture();
  std::string message;
  bool operator==(const DelayedAction&) const = default;
};

// Tasks of a job were stopped for the benefit of another job.
struct Eviction {
  Time time = absl::InfinitePast();
  ReleaseReason reason = ReleaseReason::kReclaimed;
  JobId beneficiary;
  int32_t tasks = 0;
  std::string detail;  // for people: the justification
  bool operator==(const Eviction&) const = default;
};

// The part of a job that changes as a whole; plain data, written as one record. Apply itself
// changes `epoch` (TasksBound), `starts` and `state` to Binding (of a gang), `suspended`,
// `cancelled`, `message` (requests), `evictions` and `eviction` (TasksReleased), `checkpoint` and
// `hang` (CheckpointRecorded, TaskHung), `pause` and `first_start` (TasksPaused, TasksResumed).
// JobStatusChanged sets the rest.
struct JobStatus {
  JobState state = JobState::kPending;
  JobState outcome = JobState::kPending;  // while kCompleting: the final state
  int32_t retries = 0;                    // used for the job's own failures
  uint32_t starts = 0;                    // gangs bound so far
  Time bound = absl::InfinitePast();      // when the latest gang was bound
  Time start = absl::InfinitePast();      // of the latest gang start
  Time end = absl::InfinitePast();
  Time hold_until = absl::InfinitePast();  // retry back-off
  bool suspended = false;                  // held by the user
  bool cancelled = false;                  // by the user; `message` is the given reason
  bool forced = false;                     // likewise, by force: its tasks are killed without grace
  uint8_t rung = 0;  // of its escalation, for the latest incident of its own; 0 = none
  std::string message;
  std::vector<DelayedAction> delayed;
  uint32_t evictions = 0;  // so far
  Eviction eviction;       // the latest one
  Refusals refusals;
  AvoidedNodes avoided;
  // Total run time of gangs that were stopped: attained service (docs/developers/prediction.md).
  Duration attained = absl::ZeroDuration();
  int64_t line_from = 0;  // Queue::line at its last release from a hold; 0: never held
  uint32_t epoch = 0;     // of the latest TasksBound
  // When the latest incident of its own began. What fails soon after it, in attempts that ran
  // before it, belongs to it (core/engine/lifecycle/incident.cc).
  Time incident = absl::InfinitePast();
  Time checkpoint_asked = absl::InfinitePast();  // before the end of the walltime
  // While it restarts: until when it keeps the places that its tasks had (KeepsPlaces).
  Time places_until = absl::InfinitePast();
  Checkpoint checkpoint;
  Hang hang;
  Time first_start = absl::InfinitePast();
  Boxed<SeriesStatus> series;  // once a series has begun
  Pause pause;
  bool operator==(const JobStatus&) const = default;
};

// The job's position in its queue's line (core/model/line.h). Facts, fixed at submission.
struct LinePlace {
  int64_t work = 0;    // its expected use
  int64_t before = 0;  // Queue::line before it
  bool operator==(const LinePlace&) const = default;
};

// The part of a status that binding changes; without a gang start only the epoch.
struct GangStart {
  JobState state = JobState::kPending;
  uint32_t starts = 0;
  Time bound = absl::InfinitePast();
  uint32_t epoch = 0;
};

// How many of a group's tasks are in each state (TallyState). Derived.
struct GroupTally {
  std::array<int32_t, kTaskStates> count{};

  int32_t In(TaskState state) const { return count[static_cast<size_t>(state)]; }
  int32_t Waiting() const { return In(TaskState::kPending) + In(TaskState::kNominated); }
  int32_t Nominated() const { return In(TaskState::kNominated); }
  // Tasks that hold a place in the gang: bound to running, or on a silent node.
  int32_t Members() const {
    return In(TaskState::kBound) + In(TaskState::kPrepared) + In(TaskState::kStarting) +
           In(TaskState::kRunning) + In(TaskState::kLost);
  }
  int32_t Occupying() const { return Members() + In(TaskState::kReleasing); }
  int32_t Done() const { return In(TaskState::kSucceeded) + In(TaskState::kFailed); }
  int32_t All() const { return Waiting() + Occupying() + Done(); }
  bool operator==(const GroupTally&) const = default;
};

// Order within a queue: higher priority first, then earlier deadline, then lower rank, then older
// (job ids increase with submission).
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

// The fields that planning reads and writes for every job that it places come first, next to each
// other: there are many jobs, far apart in memory (StateEditor prefetches this part of the next
// ones).
struct Job {
  JobId id;
  QueueId queue;
  int32_t priority = 0;
  int32_t min_available = 0;
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  bool preemptible = false;
  bool preempts = true;
  PreemptMode preempt_mode = PreemptMode::kRequeue;
  Strategy strategy = Strategy::kDefault;
  Strategy device_strategy = Strategy::kDefault;
  // Derived.
  bool has_timer = false;
  // Its pending tasks count as demand of its queues: it has neither ended nor is it held, and
  // planning does not know that it can never fit (PendingClass::never).
  bool wanting = false;
  bool class_remembered = false;  // by the planning editor
  bool walltime_updated = false;  // a fact: it differs from the submitted one
  ClassId pending_class;          // 0 = requests nothing now
  int32_t occupying = 0;          // tasks
  int32_t leaving = 0;            // of these: being released, without a place to move to
  Duration walltime;
  Time deadline;
  // Set by planning, not a fact: from the job order (JobOrder::PrepareRank, StateEditor::SetRank).
  int64_t rank = 0;
  LinePlace line;
  RunPrediction prediction;                      // made at submission
  absl::Span<const Group> groups;                // shared with equal jobs; valid as long as the job
  const TopologyConstraint* topology = nullptr;  // likewise; never null in a ClusterState
  absl::Span<const AffinityTerm> affinity;       // likewise
  absl::InlinedVector<GroupTally, 1> tallies;    // derived; parallel to groups
  JobTasks tasks;
  std::vector<JobDependency> dependencies;
  std::vector<int32_t> saved_exit_codes;
  bool saves_before_drain = false;
  bool may_migrate = false;
  bool suspends_idle = false;
  bool checkpoints_devices = false;
  int32_t min_success = 0;
  Duration run_limit = absl::InfiniteDuration();
  Boxed<SeriesSpec> series;
  Boxed<MemberOf> member;
  JobStatus status;

  std::string name;
  std::string user, owner, priority_class;
  int32_t max_retries = 0;
  Duration retry_backoff, prepare_timeout, kill_grace, ttl_after_finished;
  Duration checkpoint_interval, walltime_notice, watchdog, dump_wait;
  Time submit, start_after;
  uint64_t revision = 0;                       // batch sequence of its last change; the etag
  absl::Span<const LifecyclePolicy> policies;  // as groups
  std::map<std::string, std::string> labels;
  const JobTemplate* shared = nullptr;  // derived
  int64_t longest_line_before = 0;      // Queue::longest_line; while the submission can be undone
};

// For a pending job.
inline OrderKey KeyOf(const Job& job) { return {job.priority, job.deadline, job.rank, job.id}; }
// For a job that holds resources: a fact.
inline OrderKey HolderKeyOf(const Job& job) { return {job.priority, job.deadline, 0, job.id}; }

// It restarts, and waits for the places that it had: those are its own although others lack.
inline bool KeepsPlaces(const Job& job, Time now) {
  const bool waits =
      job.status.state == JobState::kRestarting || job.status.state == JobState::kPending;
  return waits && job.status.places_until > now;
}

// The strategy for the group's tasks; `of_queue` is the queue's own strategy.
Strategy StrategyOf(const Job& job, const Group& group, Strategy of_queue);

// The strategy for a task's devices within its node: kBinpack or kSpread. `of_queue` is the queue's
// own device strategy, and `of_nodes` the result of StrategyOf.
Strategy DeviceStrategyOf(const Job& job, const Group& group, Strategy of_queue, Strategy of_nodes);

// kRigid, kRendezvous or kIndependent. By default a group is rigid if it needs all its tasks.
template <class Shape>
GangMembership MembershipOf(const BasicGroup<Shape>& group) {
  if (group.membership != GangMembership::kDefault) return group.membership;
  return group.min_available == group.replicas ? GangMembership::kRigid
                                               : GangMembership::kIndependent;
}

// The task does not need the others: kIndependent. Otherwise it is of the job's gang.
bool RunsAlone(const Job& job, uint32_t task);

// True if one of its groups hosts the rendezvous of the others.
bool HasCoordinator(const Job& job);

// True if tasks of the group, or of any group, may be evicted for others.
inline bool Preemptible(const Job& job, const Group& group) {
  return job.preemptible || group.preemptible;
}
bool AnyPreemptible(const Job& job);

// The priority of the group's tasks beyond the minimum. It never exceeds the job's: the minimum has
// the job's own priority, and would otherwise have less than they.
int32_t PriorityOf(const Job& job, const Group& group);
// The lowest PriorityOf any group.
int32_t LowestPriority(const Job& job);
// True if some group's priority differs from the job's.
inline bool HasGroupPriorities(const Job& job) { return LowestPriority(job) != job.priority; }

// It is frozen, or is about to be: its clock stands still.
inline bool IsPaused(const JobStatus& status) { return status.pause.since != absl::InfinitePast(); }
// For how long it has run until `now` since its latest start, without pauses.
Duration RunTime(const JobStatus& status, Time now);
// When its walltime is used up, if it runs; InfiniteFuture while it is paused.
Time WalltimeEnd(const Job& job);

// The latest end according to the walltime; InfiniteFuture without one, and while it is paused.
// Counted from the gang's start, or from its bind while the start is pending; infinite before the
// first bind. If it has passed, the job is being stopped. For jobs that occupy.
Time PlannedEnd(const Job& job);

// When the job is to be asked to save its work, before its walltime ends; InfiniteFuture if it is
// not, or has been. For jobs that run.
Time CheckpointDue(const Job& job);

// A task of it, or its gang, hangs and nothing has been done about it yet.
bool Hangs(const Job& job);
// The task is one of those that hang then.
bool HangsWith(const Job& job, uint32_t task);

// The attempt was asked to save its work before the walltime ends, and goes on.
inline bool AskedToSave(const Job& job, const Task& task) {
  return job.status.checkpoint_asked != absl::InfinitePast() &&
         job.status.checkpoint_asked >= task.start;
}

// When its latest checkpoint was reported; InfinitePast if its attempt, or the gang since this
// attempt began, reported none.
Time SavedAt(const Job& job, uint32_t task);

inline bool IsSpare(const Group& group) { return group.spare_of.has_value(); }
// Its tasks have ranks and count in the world.
inline bool HasRanks(const Group& group) { return !group.coordinator && !IsSpare(group); }

GroupTally TallyOf(const Job& job);     // sum over all groups
GroupTally StartersOf(const Job& job);  // but spares: tasks that start
// True if the job, a group or a partition has a topology constraint.
bool HasTopology(const Job& job);

// Index of the group of task `task`.
uint32_t GroupOf(const Job& job, uint32_t task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_H_
