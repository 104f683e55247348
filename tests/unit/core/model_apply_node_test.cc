#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 4);

  // A job of one running task on device 2 of n.
  JobId Running(const std::string& name, NodeLossPolicy policy, size_t device) {
    JobSpec spec = JobOf(name, q, {GroupOfGpus("w", 1, 1)});
    spec.on_node_loss = policy;
    const JobId id = Submit(spec);
    REQUIRE(Bind(id, {{0, n, Devices({device})}}).ok());
    REQUIRE(Report(id, 0, ReportState::kRunning).ok());
    return id;
  }
  absl::Status Register(const NodeSpec& spec) {
    return Try(NodeRegistered{n, spec, node(n).status.epoch + 1, "agent", "boot2", "1.1"});
  }
  TaskState State(JobId id) const { return task(id, 0).state; }
};

TEST_CASE_METHOD(Fixture, "a registered node offers its healthy devices", "[model]") {
  NodeSpec spec = NodeWith("m", 3);
  spec.devices[1].unhealthy = true;
  spec.extended = {{"license", 2}};
  const NodeId m = AddNode(spec);
  const Interner& interner = state.interner();
  CHECK(node(m).capacity[kCpu] == 64'000);
  CHECK(node(m).capacity[*interner.FindKind("gpu")] == 2 * kWhole);
  CHECK(node(m).capacity[*interner.FindKind("license")] == 2);
  CHECK(node(m).healthy == Devices({0, 2}));
  CHECK(node(m).status.epoch == 1);
  CHECK(node(m).status.registered == now);
  CHECK(state.free().Has(m));
}

TEST_CASE_METHOD(Fixture, "silence makes tasks lost, and a return restores their state",
                 "[model]") {
  const JobId runs = Running("runs", NodeLossPolicy::kFence, 2);
  const JobId stops = Running("stops", NodeLossPolicy::kFence, 3);
  REQUIRE(Try(TasksReleased{stops, {0}, true, ReleaseReason::kRestart}).ok());
  REQUIRE(Try(NodeSilenced{n}).ok());
  CHECK(State(runs) == TaskState::kLost);
  CHECK(State(stops) == TaskState::kLost);
  CHECK_FALSE(state.free().Has(n));
  CHECK(node(n).allocated[kCpu] == 2000);  // still held
  now += absl::Seconds(3);
  REQUIRE(Register(NodeWith("n", 4)).ok());
  CHECK(State(runs) == TaskState::kRunning);
  CHECK(task(runs, 0).since == now);
  CHECK(State(stops) == TaskState::kReleasing);
  CHECK(task(stops, 0).requeue);
  CHECK(state.free().Has(n));
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "the state lists the nodes that tasks may have to leave", "[model]") {
  CHECK_FALSE(state.Expels(n));
  REQUIRE(Try(NodeSteered{.id = n, .cordoned = true, .reason = "cordoned only"}).ok());
  CHECK_FALSE(state.Expels(n));
  REQUIRE(Try(NodeSteered{.id = n, .cordoned = true, .draining = true, .reason = "drained"}).ok());
  CHECK(state.Expels(n));
  REQUIRE(
      Try(NodeSteered{.id = n, .reason = "one device", .drain = {.devices = Devices({1})}}).ok());
  CHECK(state.Expels(n));
  REQUIRE(Try(NodeSteered{.id = n}).ok());
  CHECK_FALSE(state.Expels(n));
  NodeSpec sick = NodeWith("n", 4);
  sick.devices[1].unhealthy = true;
  REQUIRE(Register(sick).ok());
  CHECK(state.Expels(n));
  NodeSpec tainted = NodeWith("n", 4);
  tainted.taints = {{.key = "keeps others off"}};
  REQUIRE(Register(tainted).ok());
  CHECK_FALSE(state.Expels(n));
  tainted.taints[0].evicts = true;
  REQUIRE(Register(tainted).ok());
  CHECK(state.expelling_nodes().size() == 1);
  CHECK(CheckConsistency(state).ok());
  REQUIRE(Try(NodeSilenced{n}).ok());
  REQUIRE(Try(NodeFenced{n}).ok());
  REQUIRE(Try(NodeDeleted{n}).ok());
  CHECK(state.expelling_nodes().empty());
}

TEST_CASE_METHOD(Fixture, "fencing ends lost tasks according to the job's policy", "[model]") {
  const JobId fence = Running("fence", NodeLossPolicy::kFence, 0);
  const JobId keep = Running("keep", NodeLossPolicy::kKeep, 1);
  const JobId replace = Running("replace", NodeLossPolicy::kReplaceNow, 2);
  const JobId stops = Running("stops", NodeLossPolicy::kFence, 3);
  REQUIRE(Try(TasksReleased{stops, {0}, true, ReleaseReason::kRestart}).ok());
  REQUIRE(Try(NodeSilenced{n}).ok());
  CHECK(State(fence) == TaskState::kLost);
  CHECK(State(replace) == TaskState::kFailed);  // at once
  CHECK(task(replace, 0).end_cause == EndCause::kNodeLost);
  REQUIRE(Try(NodeFenced{n}).ok());
  CHECK(node(n).status.state == NodeState::kLost);
  CHECK(State(fence) == TaskState::kFailed);
  CHECK(task(fence, 0).end_cause == EndCause::kNodeLost);
  CHECK(State(keep) == TaskState::kLost);
  CHECK(State(stops) == TaskState::kPending);  // to be requeued once gone
  CHECK(node(n).tasks.size() == 1);

  // A kept task there can only be given up, not stopped.
  REQUIRE(Try(TasksReleased{keep, {0}, false, ReleaseReason::kCancelled}).ok());
  CHECK(State(keep) == TaskState::kFailed);
  CHECK(task(keep, 0).end_cause == EndCause::kStopped);
  REQUIRE(Try(NodeDeleted{n}).ok());
  CHECK(state.FindNode("n") == nullptr);
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture,
                 "a kept task does not run again before its node reports that it is gone") {
  const JobId before = Running("before", NodeLossPolicy::kKeep, 0);  // released before the silence
  const JobId after = Running("after", NodeLossPolicy::kKeep, 1);    // and after the fence
  REQUIRE(Try(TasksReleased{before, {0}, true, ReleaseReason::kSuspended}).ok());
  REQUIRE(Try(NodeSilenced{n}).ok());
  REQUIRE(Try(NodeFenced{n}).ok());
  REQUIRE(Try(TasksReleased{after, {0}, true, ReleaseReason::kSuspended}).ok());
  for (const JobId id : {before, after}) {
    CHECK(State(id) == TaskState::kLost);
    CHECK(task(id, 0).before_lost == TaskState::kReleasing);
  }
  CHECK(CheckConsistency(state).ok());
  REQUIRE(Try(TasksReleased{after, {0}, false, ReleaseReason::kCancelled}).ok());
  CHECK(State(after) == TaskState::kFailed);  // none of its tasks is to run again
  REQUIRE(Register(NodeWith("n", 4)).ok());
  CHECK(State(before) == TaskState::kReleasing);
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "tasks follow their devices when the device list changes", "[model]") {
  const JobId id = Running("j", NodeLossPolicy::kFence, 2);
  const JobId other = Running("k", NodeLossPolicy::kFence, 3);
  NodeSpec spec = NodeWith("n", 4);
  std::swap(spec.devices[0], spec.devices[2]);   // n-2 comes first
  spec.devices.erase(spec.devices.begin() + 3);  // n-3, in use, is gone
  spec.devices.erase(spec.devices.begin() + 1);  // n-1, unused, is gone
  REQUIRE(Register(spec).ok());
  const NodeSpec& now_spec = node(n).spec;
  REQUIRE(now_spec.devices.size() == 3);
  const auto device_of = [&](JobId job_id) {
    for (size_t i = 0; i < now_spec.devices.size(); ++i) {
      if (task(job_id, 0).devices == Devices({i})) return now_spec.devices[i];
    }
    return Device{};
  };
  CHECK(device_of(id).uuid == "n-2");
  CHECK_FALSE(device_of(id).unhealthy);
  CHECK(device_of(other).uuid == "n-3");
  CHECK(device_of(other).unhealthy);  // kept while it is used
  const ResourceKind gpu = *state.interner().FindKind("gpu");
  CHECK(node(n).capacity[gpu] == 2 * kWhole);
  CHECK(FreeOf(node(n))[gpu] == kWhole);  // n-0
  CHECK(CheckConsistency(state).ok());

  REQUIRE(Report(other, 0, ReportState::kExited).ok());
  REQUIRE(Register(spec).ok());
  CHECK(node(n).spec.devices.size() == 2);  // removed now
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "cordons and refusals keep new tasks off a node", "[model]") {
  CHECK(state.free().Has(n));
  REQUIRE(Try(NodeSteered{n, true, false, "bad fan"}).ok());
  CHECK_FALSE(state.free().Has(n));
  CHECK(node(n).status.reason == "bad fan");
  REQUIRE(Try(NodeSteered{n, false, true, ""}).ok());
  CHECK_FALSE(state.free().Has(n));
  REQUIRE(Try(NodeRefused{n, 3, now + absl::Seconds(60), {}, ""}).ok());
  REQUIRE(Try(NodeSteered{n, false, false, ""}).ok());  // trusted again, back-off reset
  CHECK(node(n).status.refusals == 0);
  CHECK(state.free().Has(n));

  REQUIRE(Try(NodeRefused{n, 1, now + absl::Seconds(60), {}, ""}).ok());
  CHECK_FALSE(state.free().Has(n));
  CHECK(state.backoffs().size() == 1);
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "running a task clears a node's refusals", "[model]") {
  const JobId id = Submit(JobOf("j", q, {GroupOfGpus("w", 1, 0)}));
  REQUIRE(Bind(id, {{0, n, {}}}).ok());
  REQUIRE(Try(NodeRefused{n, 2, now + absl::Seconds(60), {}, ""}).ok());
  REQUIRE(Report(id, 0, ReportState::kPrepared).ok());
  CHECK_FALSE(state.free().Has(n));
  REQUIRE(Report(id, 0, ReportState::kRunning).ok());
  CHECK(node(n).status.refusals == 0);
  CHECK(state.free().Has(n));
}

TEST_CASE_METHOD(Fixture, "a node that starts to drain unsettles its jobs", "[model]") {
  const JobId id = Running("j", NodeLossPolicy::kFence, 0);
  StateEditor(state).Settle(id);
  CHECK(state.unsettled().empty());
  REQUIRE(Try(NodeSteered{n, true, true, "repair"}).ok());
  CHECK(state.unsettled().contains(id));
}

TEST_CASE_METHOD(Fixture, "invalid node events are rejected with a reason, and change nothing",
                 "[model]") {
  Running("j", NodeLossPolicy::kKeep, 0);
  const NodeId lost = AddNode("lost", 0);
  REQUIRE(Try(NodeSilenced{lost}).ok());
  REQUIRE(Try(NodeFenced{lost}).ok());
  const NodeId next = state.next_node_id();
  const auto registered = [&](NodeId id, NodeSpec spec, uint64_t epoch) {
    return NodeRegistered{id, std::move(spec), epoch, "a", "b", "c"};
  };
  NodeSpec twins = NodeWith("x", 2);
  twins.devices[1].uuid = twins.devices[0].uuid;
  NodeSpec nameless = NodeWith("x", 1);
  nameless.devices[0].uuid = "";
  NodeSpec negative = NodeWith("x", 0);
  negative.memory_bytes = -1;
  NodeSpec huge = NodeWith("x", 0);
  huge.cpu_millis = kMaxAmount + 1;
  struct Row {
    EventBody event;
    absl::StatusCode code;
    std::string message;
  };
  using C = absl::StatusCode;
  const std::vector<Row> rows = {
      {registered(NodeId{9}, NodeWith("x", 0), 1), C::kFailedPrecondition,
       "the next node is 3, not 9"},
      {registered(next, NodeWith("n", 0), 1), C::kAlreadyExists, "node n exists"},
      {registered(next, NodeWith("x", 0), 2), C::kInvalidArgument, "node x: the first epoch is 1"},
      {registered(next, NodeWith("", 0), 1), C::kInvalidArgument, "a node needs a name"},
      {registered(next, NodeWith("x", 129), 1), C::kInvalidArgument,
       "node x has 129 devices; at most 128"},
      {registered(next, twins, 1), C::kInvalidArgument,
       "node x: two devices of kind gpu with uuid x-0"},
      {registered(next, nameless, 1), C::kInvalidArgument, "node x: a device without kind or uuid"},
      {registered(next, negative, 1), C::kInvalidArgument,
       "node x: cpu and memory must be 0 to 281474976710656, not -1"},
      {registered(next, huge, 1), C::kInvalidArgument,
       "node x: cpu and memory must be 0 to 281474976710656, not 281474976710657"},
      {registered(n, NodeWith("x", 0), 2), C::kInvalidArgument, "node n (1) cannot become x"},
      {registered(n, NodeWith("n", 4), 1), C::kFailedPrecondition,
       "node n (1): the next epoch is 2, not 1"},
      {NodeSilenced{NodeId{77}}, C::kNotFound, "no node 77"},
      {NodeSilenced{lost}, C::kFailedPrecondition, "node lost (2) is already silent"},
      {NodeFenced{n}, C::kFailedPrecondition, "node n (1) is not silent"},
      {NodeFenced{lost}, C::kFailedPrecondition, "node lost (2) is not silent"},
      {NodeSteered{NodeId{77}, true, false, ""}, C::kNotFound, "no node 77"},
      {NodeRefused{NodeId{77}, 1, now, {}, ""}, C::kNotFound, "no node 77"},
      {NodeRefused{n, -1, now, {}, ""}, C::kInvalidArgument, "node 1: refusals is negative"},
      {NodeDeleted{NodeId{77}}, C::kNotFound, "no node 77"},
      {NodeDeleted{n}, C::kFailedPrecondition, "node n (1) is connected: stop its agent first"},
  };
  const uint64_t before = Fingerprint(state);
  for (const Row& row : rows) {
    const absl::Status status = Try(row.event);
    CHECK(std::string(status.message()) == row.message);
    CHECK(status.code() == row.code);
    CHECK(Fingerprint(state) == before);
  }
  REQUIRE(Try(NodeSilenced{n}).ok());
  CHECK(Try(NodeDeleted{n}).message() == "node n (1) holds 1 tasks");
  CHECK(CheckConsistency(state).ok());
}

}  // namespace
}  // namespace berth
