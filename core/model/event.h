// Events: everything that can happen to the cluster. State is their fold (Apply,
// core/model/apply.h); the store keeps them as the log. A decision of the planner is an event like
// any other.
//
// Events are self-contained: ids that stay (jobs, nodes, queues) and names, never interned ids.
// They are checked before they are persisted, so that replaying one cannot fail.
#ifndef BERTH_CORE_MODEL_EVENT_H_
#define BERTH_CORE_MODEL_EVENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/node.h"
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

// A new node (id is the next one) or a new registration of a known one. Ends silence. Tasks are
// reconciled by the TaskReported and TasksGone events that follow in the same turn.
struct NodeRegistered {
  NodeId id;
  NodeSpec spec;
  uint64_t epoch = 0;  // one more than before
  std::string agent_id, boot_id, agent_version;
};
struct NodeSilenced {  // its lease lapsed: tasks become Lost; those of REPLACE_NOW jobs, and of
                       // jobs that were cancelled by force, are given up at once
  NodeId id;
  bool ends_forced = true;  // false in logs of before: forced jobs waited for the fence there
};
struct NodeFenced {  // silent for so long that strict tasks are certainly dead: Lost tasks end,
                     // except those of KEEP jobs
  NodeId id;
};
struct NodeSteered {
  NodeId id;
  bool cordoned = false;
  bool draining = false;
  std::string reason;
};
// A member could not be prepared there, by the node's own fault: back-off, and a cordon once
// several jobs in a row met that.
struct NodeRefused {
  NodeId id;
  int32_t refusals = 0;  // in a row
  Time backoff_until = absl::InfinitePast();
  JobId job;            // whose member it was
  std::string message;  // why
};
struct NodeDeleted {
  NodeId id;
};

struct JobSubmitted {
  JobId id;  // ClusterState::next_job_id(), or a later one: those between are never used
  JobSpec spec;
  // It comes into its queue's line (core/model/line.h). False: decided before there were lines.
  bool in_line = true;
};
struct JobUpdated {
  JobId id;
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
  std::optional<Duration> walltime = std::nullopt;  // as before; may not be used up already
};
struct JobCancelled {
  JobId id;
  std::string reason;
  bool force = false;  // nothing is waited for: its tasks on silent nodes have ended, and those on
                       // nodes that fall silent end then
};
struct JobSuspended {
  JobId id;
  bool suspended = true;
};
struct JobDeleted {
  JobId id;
};

// kRefused ends the attempt (kFailed, EndCause::kRefused): planning answers with NodeRefused, if it
// is the node's fault, and with TasksRequeued or the job's end.
enum class ReportState : uint8_t { kPrepared, kRefused, kRunning, kExited };
enum class ExitCause : uint8_t { kItself, kKilled, kLeaseLapsed, kReboot, kSupervisorLost, kGone };

// What an agent reported of the attempt that the state knows. Reports of other attempts or epochs
// never become events. kExited with kGone: the node registered again and no longer has it.
struct TaskReported {
  TaskKey task;
  uint32_t attempt = 0;
  ReportState state = ReportState::kRunning;
  int32_t exit_code = 0;
  uint8_t exit_signal = 0;
  ExitCause cause = ExitCause::kItself;
  uint16_t port = 0;  // with kPrepared
  std::string message;
  bool own_fault = false;      // with kRefused: the job's, not the node's
  bool nobodys_fault = false;  // likewise: neither the job's nor the node's
  // The node's refusals are forgotten with kRunning. False in logs of before: with kPrepared there.
  bool trust_at_running = true;
};

// Decisions.
struct Placement {
  uint32_t task = 0;
  NodeId node;
  DeviceSet devices;
  bool operator==(const Placement&) const = default;
};
struct TasksBound {  // attempts go up by one; Prepare is sent to each
  JobId job;
  bool gang = false;  // a gang start (JobStatus::starts, Binding), else growth or a replacement
  std::vector<Placement> placements;
};
struct TasksStarted {  // every member is prepared: Start is sent to each
  JobId job;
  std::vector<uint32_t> tasks;
};
// The tasks wait from now on for these very places, which others may not take: free, or still being
// released. A waiting task, or one that is nominated already and changes its place.
struct TasksNominated {
  JobId job;
  std::vector<Placement> placements;
  bool claims = false;  // of what others held, what the queue is entitled to: Task::claimed of all
                        // tasks of the job that hold a place then
};
struct TasksUnnominated {  // they wait for any place again
  JobId job;
  std::vector<uint32_t> tasks;
};
// A blocked job is kept a place for later: nothing may start that would still be there then.
// Replaces its reservation. Counts as use of its queue from `start` to `end`.
struct Reservation {
  Time start = absl::InfiniteFuture();
  Time end = absl::InfiniteFuture();
  std::vector<Placement> places;
  // When the job was to start by the first of the reservations that it has had without a break:
  // from then on nothing starts by a guess that could delay it (docs/prediction.md).
  Time firm_from = absl::InfiniteFuture();
  bool operator==(const Reservation&) const = default;
};
struct JobReserved {
  JobId job;
  Reservation reservation;  // without places: it has none any more
};
// `elapsed` has gone by since the last: moves Queue::usage of every queue towards what it holds
// now, by 1 - 2^(-elapsed / half_life).
struct UsageCharged {
  Duration elapsed;
  Duration half_life;
};
struct TasksReleased {  // Kill is sent to each; they occupy until they are reported gone
  JobId job;
  std::vector<uint32_t> tasks;
  bool requeue = false;  // Pending again once gone
  ReleaseReason reason = ReleaseReason::kCancelled;
  JobId beneficiary = {};                // of an eviction: never 0 then
  std::string detail = {};               // of an eviction, for people: why it was lawful
  std::vector<Placement> moves_to = {};  // with requeue: where those of `tasks` that are named here
                                         // are nominated once they are gone
};
struct TasksRequeued {  // tasks that ended, to run again
  JobId job;
  std::vector<uint32_t> tasks;
};
struct JobStatusChanged {  // the whole new status but evictions; revision and tasks untouched
  JobId job;
  JobStatus status;
};

// A new HyperNode (id is the next one) or the new specification of a known one, of the same name
// and kind. What nodes it means is said by NodesJoined and NodesLeft.
struct HyperNodeChanged {
  HyperNodeId id;
  HyperNodeSpec spec;
};
struct HyperNodeDeleted {  // the nodes in it leave it; its children become roots
  HyperNodeId id;
};
// The nodes are in this domain now, and no lower one of its kind. Each leaves the one of that kind
// in which it was.
struct NodesJoined {
  HyperNodeId domain;
  std::vector<NodeId> nodes;  // ascending
};
struct NodesLeft {  // they are in none of its kind any more
  HyperNodeId domain;
  std::vector<NodeId> nodes;  // ascending
};
// What is known of the demand for devices from now on: planning goes by it where devices are given
// out by what is left of them (core/sharing).
struct RequestMixChanged {
  RequestMix mix;
};
// The job has ended, having run from JobStatus::start to JobStatus::end: RunHistory takes that run
// in.
struct JobRunRecorded {
  JobId job;
};

using AnyFact =
    std::variant<QueueCreated, QueueUpdated, QueueOpened, QueueDeleted, NodeRegistered,
                 NodeSilenced, NodeFenced, NodeSteered, NodeRefused, NodeDeleted, JobSubmitted,
                 JobUpdated, JobCancelled, JobSuspended, JobDeleted, TaskReported, TasksBound,
                 TasksStarted, TasksReleased, TasksRequeued, JobStatusChanged, TasksNominated,
                 TasksUnnominated, JobReserved, UsageCharged, HyperNodeChanged, HyperNodeDeleted,
                 NodesJoined, NodesLeft, RequestMixChanged, JobRunRecorded>;

// One of the facts. Copying, moving and destroying them is compiled once, in event.cc: in every
// file that handles events it would be a third of its object.
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
