// Events: everything that can happen to the cluster. The state is the fold of all events (Apply,
// core/model/apply.h); the store keeps them as the log. A decision of the planner is an event like
// any other.
//
// Events are self-contained: they use permanent ids (jobs, nodes, queues) and names, never interned
// ids. They are checked before they are persisted, so that replaying one cannot fail.
#ifndef BERTH_CORE_MODEL_EVENT_H_
#define BERTH_CORE_MODEL_EVENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/access/access.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/priority_classes.h"
#include "core/model/queue.h"
#include "core/sharing/request_mix.h"

namespace berth {

struct QueueCreated {
  QueueId id;  // the next one: ClusterState::next_queue_id()
  QueueSpec spec;
};
struct QueueUpdated {
  QueueId id;
  QueueSpec spec;  // name and parent unchanged
};
struct QueueOpened {
  QueueId id;
  bool open = true;
};
struct QueueDeleted {
  QueueId id;
};

// A new node (with the next id) or a new registration of a known one. Ends silence. The
// TaskReported and TasksGone events that follow in the same turn reconcile its tasks.
struct NodeRegistered {
  NodeId id;
  NodeSpec spec;
  uint64_t epoch = 0;  // one more than the previous one
  std::string agent_id, boot_id, agent_version;
  bool counts_faults = true;  // in NodeStatus::faults; here and below false in older logs
};
struct NodeSilenced {  // its lease expired: tasks become Lost; those of REPLACE_NOW jobs and of
                       // force-cancelled jobs end at once
  NodeId id;
  bool ends_forced = true;  // false in older logs: forced jobs waited for the fence
  bool counts_faults = true;
};
struct NodeFenced {  // silent so long that strict tasks must be dead: Lost tasks end,
                     // except those of KEEP jobs
  NodeId id;
  bool counts_faults = true;
};
struct NodeSteered {
  NodeId id;
  bool cordoned = false;
  bool draining = false;
  std::string reason;
  Drain drain = {};
  bool repaired = false;  // somebody says so: its faults are forgotten
};
// A member could not be prepared there, by the node's fault. The node backs off, and is cordoned
// after several refused jobs in a row.
struct NodeRefused {
  NodeId id;
  int32_t refusals = 0;  // in a row
  Time backoff_until = absl::InfinitePast();
  JobId job;            // whose member was refused
  std::string message;  // why
  bool counts_faults = true;
};
struct NodeDeleted {
  NodeId id;
};

struct JobSubmitted {
  JobId id;  // ClusterState::next_job_id() or later; skipped ids are never used
  JobSpec spec;
  // It enters its queue's line (core/model/line.h). False: decided before lines existed.
  bool in_line = true;
};
struct JobUpdated {
  JobId id;
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
  std::optional<Duration> walltime = std::nullopt;  // as before; must exceed the time already run
};
struct JobCancelled {
  JobId id;
  std::string reason;
  bool force = false;  // without waiting: its tasks on silent nodes end now, and those on nodes
                       // that become silent later end then
};
struct JobSuspended {
  JobId id;
  bool suspended = true;
  std::string why = {};  // for people; empty: somebody asked for it
  bool freeze = false;   // with `suspended`: its tasks are frozen where they are, not stopped
};
struct JobDeleted {
  JobId id;
};

// kRefused ends the attempt (kFailed, EndCause::kRefused). Planning reacts with NodeRefused, if it
// is the node's fault, and with TasksRequeued or the job's end.
enum class ReportState : uint8_t { kPrepared, kRefused, kRunning, kExited, kPaused };
enum class ExitCause : uint8_t {
  kItself,
  kKilled,
  kLeaseLapsed,
  kReboot,
  kSupervisorLost,
  kGone,
  kDevice,  // by itself, as one of its devices is bad
};

// What an agent reported about the current attempt. Reports of other attempts or epochs never
// become events. kExited with kGone: the node registered again without the task.
struct TaskReported {
  TaskKey task;
  uint32_t attempt = 0;
  ReportState state = ReportState::kRunning;
  int32_t exit_code = 0;
  uint8_t exit_signal = 0;
  ExitCause cause = ExitCause::kItself;
  uint16_t port = 0;  // with kPrepared
  std::string message;
  bool own_fault = false;      // with kRefused: the job's fault, not the node's
  bool nobodys_fault = false;  // likewise: nobody's fault
  // kRunning resets the node's refusals. False in older logs: kPrepared did.
  bool trust_at_running = true;
  // With kPaused: what it has on its devices is in its node's memory; others may use them.
  // `message` says why it keeps them instead.
  bool devices_lent = false;
};

// What a running task told through its NOTIFY_SOCKET, as far as decisions depend on it. They are of
// the current attempt of a task that runs.
struct TaskReady {
  TaskKey task;
  uint32_t attempt = 0;
};
struct CheckpointRecorded {  // it would lose only what came after
  TaskKey task;
  uint32_t attempt = 0;
  int64_t step = 0;
  int64_t bytes = 0;
  CheckpointPlace place = CheckpointPlace::kUnknown;
};
// The watchdog found that the task hangs, or that its gang does: then it is the one that has come
// least far. Or that it shows progress again.
struct TaskHung {
  TaskKey task;
  uint32_t attempt = 0;
  Duration still = absl::ZeroDuration();
  int64_t step = -1;
  bool over = false;
};

// Decisions.
struct Placement {
  uint32_t task = 0;
  NodeId node;
  DeviceSet devices;
  bool operator==(const Placement&) const = default;
};
struct TasksBound {  // attempts increase by one; Prepare is sent to each
  JobId job;
  bool gang = false;  // a gang start (JobStatus::starts, Binding), else growth or a replacement
  std::vector<Placement> placements;
  // The next one of the job. 0: decided before there were epochs; ranks do not stick, and ports
  // and reasons of releases are not kept.
  uint32_t epoch = 0;
};
struct TasksStarted {  // every member is prepared: Start is sent to each
  JobId job;
  std::vector<uint32_t> tasks;
};
// The tasks wait for these places, which are free or being released, and which other tasks may not
// take. Each task is pending, or already nominated and changes its place.
struct TasksNominated {
  JobId job;
  std::vector<Placement> placements;
  bool claims = false;  // the queue is entitled to room that others held: sets Task::claimed for
                        // all tasks of the job that then hold a place
};
struct TasksUnnominated {  // they are no longer tied to a place
  JobId job;
  std::vector<uint32_t> tasks;
};
// Keeps places for a blocked job in the future: nothing may start there that would still run at
// `start`. Replaces its reservation. Counts as use of its queue from `start` to `end`.
struct Reservation {
  Time start = absl::InfiniteFuture();
  Time end = absl::InfiniteFuture();
  std::vector<Placement> places;
  // The start time in the first of an unbroken series of reservations. From then on, nothing that
  // could delay the job starts on the basis of a prediction (docs/developers/prediction.md).
  Time firm_from = absl::InfiniteFuture();
  bool operator==(const Reservation&) const = default;
};
struct JobReserved {
  JobId job;
  Reservation reservation;  // without places: it is removed
};
// `elapsed` has passed since the last one: moves Queue::usage of every queue towards its current
// allocation, by 1 - 2^(-elapsed / half_life).
struct UsageCharged {
  Duration elapsed;
  Duration half_life;
};
struct TasksReleased {  // Kill is sent to each; they occupy until reported gone
  JobId job;
  std::vector<uint32_t> tasks;
  bool requeue = false;  // Pending again once gone
  ReleaseReason reason = ReleaseReason::kCancelled;
  JobId beneficiary = {};                // of an eviction: never 0
  std::string detail = {};               // of an eviction, for people: the justification
  std::vector<Placement> moves_to = {};  // with requeue: places where some of `tasks` are
                                         // nominated once they are gone
};
struct TasksRequeued {  // ended tasks that will run again
  JobId job;
  std::vector<uint32_t> tasks;
};
// Freeze is sent to each; they keep their places, and their CPU until they are reported frozen.
// Those that are frozen and wait for what they lend wait no longer. The job's clock stands still
// from now on.
struct TasksPaused {
  JobId job;
  std::vector<uint32_t> tasks;
  Time until = absl::InfiniteFuture();  // then the job is stopped
  JobId beneficiary = {};               // it makes room for that job; 0: its user paused it
  std::string detail = {};              // with a beneficiary, for people: the justification
};
// Tasks that are frozen, or were told to freeze, shall go on: with `waits` once what they lend is
// free, which is reserved for them from now on; else at once: Thaw is sent to each.
struct TasksResumed {
  JobId job;
  std::vector<uint32_t> tasks;
  bool waits = false;
};
struct JobStatusChanged {  // the whole new status except evictions; revision and tasks unchanged
  JobId job;
  JobStatus status;
};

// A new HyperNode (with the next id) or the new specification of a known one with the same name and
// kind. NodesJoined and NodesLeft list the nodes in it.
struct HyperNodeChanged {
  HyperNodeId id;
  HyperNodeSpec spec;
};
struct HyperNodeDeleted {  // its nodes leave it; its children become roots
  HyperNodeId id;
};
// The nodes are now in this domain, and in no lower one of its kind. Each leaves its previous
// domain of that kind.
struct NodesJoined {
  HyperNodeId domain;
  std::vector<NodeId> nodes;  // ascending
};
struct NodesLeft {  // they are in no domain of its kind any more
  HyperNodeId domain;
  std::vector<NodeId> nodes;  // ascending
};
// The demand for devices that planning uses from now on, where devices are placed by the resources
// that remain (core/sharing).
struct RequestMixChanged {
  RequestMix mix;
};
// Adds the run of a job that has ended, from JobStatus::start to JobStatus::end, to RunHistory.
struct JobRunRecorded {
  JobId job;
};

// What changed of the images that the node holds (Node::images), as its agent reported it. Both
// ascending; not both empty.
struct NodeImagesChanged {
  NodeId id;
  std::vector<ImageId> gained;  // it held none of these
  std::vector<ImageId> lost;    // it held all of these
};

// One change of the access rules (core/access/access.h).
struct AccessChanged {
  AccessChange change;
};

// One change of the priority classes (core/model/priority_classes.h).
struct PriorityClassesChanged {
  PriorityClassChange change;
};

using AnyFact =
    std::variant<QueueCreated, QueueUpdated, QueueOpened, QueueDeleted, NodeRegistered,
                 NodeSilenced, NodeFenced, NodeSteered, NodeRefused, NodeDeleted, JobSubmitted,
                 JobUpdated, JobCancelled, JobSuspended, JobDeleted, TaskReported, TasksBound,
                 TasksStarted, TasksReleased, TasksRequeued, JobStatusChanged, TasksNominated,
                 TasksUnnominated, JobReserved, UsageCharged, HyperNodeChanged, HyperNodeDeleted,
                 NodesJoined, NodesLeft, RequestMixChanged, JobRunRecorded, TaskReady,
                 CheckpointRecorded, TaskHung, AccessChanged, PriorityClassesChanged,
                 NodeImagesChanged, TasksPaused, TasksResumed>;

// One of the facts. Copying, moving and destroying them is compiled once, in event.cc: otherwise it
// would make up a third of the object code of every file that handles events.
class EventBody : public AnyFact {
 public:
  EventBody();
  template <typename Fact>
  requires(!std::is_base_of_v<AnyFact, Fact> && std::is_constructible_v<AnyFact, Fact>)
      EventBody(Fact fact);  // NOLINT(google-explicit-constructor): as of a variant
  EventBody(const EventBody& other);
  EventBody(EventBody&& other) noexcept;
  EventBody& operator=(const EventBody& other);
  EventBody& operator=(EventBody&& other) noexcept;
  ~EventBody();
};

struct Event {
  Time time;
  EventBody body;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_EVENT_H_
