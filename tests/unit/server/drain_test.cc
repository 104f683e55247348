// Drains by mode and of devices: requests, what becomes of them, and what tasks are sent.
#include "server/validation/drain.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/commands/node_steering.h"
#include "server/controllers/conditions.h"
#include "server/convert/node.h"
#include "server/convert/values.h"
#include "server/validation/lifecycle.h"
#include "storage/store.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {
namespace {

using v1::NodeDrain;
using Message = v1::ServerMessage;

const Time kDrainTime = absl::FromUnixSeconds(1'800'000'000);

v1::DrainNodeRequest DrainRequest(NodeDrain::Mode mode,
                                  absl::Duration deadline = absl::ZeroDuration(),
                                  const std::vector<std::string>& devices = {}) {
  v1::DrainNodeRequest request;
  request.set_name("n1");
  request.set_mode(mode);
  if (deadline != absl::ZeroDuration()) ToProto(deadline, request.mutable_deadline());
  request.mutable_devices()->Assign(devices.begin(), devices.end());
  return request;
}

absl::Status ValidateNew(const v1::DrainNodeRequest& request) {
  return ValidateDrain(request, kStoreFormat);
}

Node NodeOfThreeGpus() {
  Node node;
  node.id = NodeId{1};
  node.spec.name = "n1";
  for (const char* uuid : {"GPU-a", "GPU-b", "GPU-c"}) {
    node.spec.devices.push_back({.kind = "gpu", .uuid = uuid});
  }
  return node;
}

TEST_CASE("drain requests are valid by mode") {
  CHECK(ValidateNew(DrainRequest(NodeDrain::MODE_UNSPECIFIED)).ok());
  CHECK(ValidateNew(DrainRequest(NodeDrain::NOW, {}, {"GPU-a"})).ok());
  CHECK(ValidateNew(DrainRequest(NodeDrain::CHECKPOINT)).ok());
  CHECK(ValidateNew(DrainRequest(NodeDrain::CHECKPOINT, absl::Minutes(30), {"GPU-a"})).ok());
  CHECK(ValidateNew(DrainRequest(NodeDrain::WAIT, absl::Hours(24 * 30))).ok());
}

TEST_CASE("drain requests that contradict themselves are refused by the field") {
  const auto invalid = [](const v1::DrainNodeRequest& request, const std::string& what) {
    const absl::Status status = ValidateNew(request);
    INFO(status.ToString());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), what));
  };
  invalid(DrainRequest(NodeDrain::NOW, absl::Minutes(1)),
          "deadline: needs another mode");
  invalid(DrainRequest(NodeDrain::MODE_UNSPECIFIED, absl::Minutes(1)), "deadline: needs another mode");
  invalid(DrainRequest(NodeDrain::WAIT, absl::Hours(24 * 30) + absl::Seconds(1)), "deadline");
  invalid(DrainRequest(NodeDrain::WAIT, -absl::Seconds(1)), "deadline");
  invalid(DrainRequest(static_cast<NodeDrain::Mode>(9)), "mode: 9 is not a value");
  invalid(DrainRequest(NodeDrain::WAIT, {}, std::vector<std::string>(129, "x")),
          "devices: at most 128");
  for (v1::DrainNodeRequest request : {DrainRequest(NodeDrain::WAIT), DrainRequest(NodeDrain::NOW),
                                       DrainRequest(NodeDrain::MODE_UNSPECIFIED, {}, {"GPU-a"})}) {
    request.set_wait_for_jobs(true);
    invalid(request, "wait_for_jobs: only cordons the node");
  }
  CHECK(ValidateNew(DrainRequest(NodeDrain::WHEN_PLACED, absl::Hours(8))).ok());
}

TEST_CASE("drains that an older server would misread wait for the upgrade of the store") {
  constexpr uint32_t kOld = kFormatOfProgress - 1;
  CHECK(ValidateDrain(DrainRequest(NodeDrain::NOW), kOld).ok());
  CHECK(absl::IsFailedPrecondition(ValidateDrain(DrainRequest(NodeDrain::WAIT), kOld)));
  CHECK(
      absl::IsFailedPrecondition(ValidateDrain(DrainRequest(NodeDrain::NOW, {}, {"GPU-a"}), kOld)));
}

TEST_CASE("a drain of the node cordons it, and one of devices does not") {
  const Node node = NodeOfThreeGpus();
  v1::DrainNodeRequest request = DrainRequest(NodeDrain::WAIT, absl::Minutes(30));
  request.set_reason("fan");
  const auto whole = DrainOf(node, request, kDrainTime);
  REQUIRE(whole.ok());
  CHECK(whole->cordoned);
  CHECK(whole->draining);
  CHECK(whole->reason == "fan");
  CHECK(whole->drain == Drain{.mode = DrainMode::kWait,
                              .begin = kDrainTime,
                              .deadline = kDrainTime + absl::Minutes(30)});
  CHECK(DrainOf(node, DrainRequest(NodeDrain::NOW), kDrainTime)->drain == Drain{});
  CHECK(DrainOf(node, DrainRequest(NodeDrain::WAIT), kDrainTime)->drain.deadline ==
        absl::InfiniteFuture());
  CHECK(DrainOf(node, DrainRequest(NodeDrain::CHECKPOINT), kDrainTime)->drain.deadline ==
        kDrainTime + absl::Minutes(10));

  const auto part = DrainOf(node, DrainRequest(NodeDrain::NOW, {}, {"GPU-c", "GPU-a"}), kDrainTime);
  REQUIRE(part.ok());
  CHECK_FALSE(part->cordoned);
  CHECK_FALSE(part->draining);
  CHECK(part->drain.devices == DeviceSet{{5, 0}});
}

TEST_CASE("unknown devices are listed") {
  const Node node = NodeOfThreeGpus();
  const auto drain =
      DrainOf(node, DrainRequest(NodeDrain::NOW, {}, {"GPU-a", "GPU-x", "GPU-y"}), kDrainTime);
  CHECK(absl::IsInvalidArgument(drain.status()));
  CHECK(drain.status().message() == "devices: node \"n1\" has no \"GPU-x\", \"GPU-y\"");
}

TEST_CASE("a repeated drain goes on, and another one replaces it") {
  Node node = NodeOfThreeGpus();
  const auto ask = [&](const v1::DrainNodeRequest& request, Time now) {
    const auto event = DrainOf(node, request, now);
    REQUIRE(event.ok());
    node.status.cordoned = event->cordoned;
    node.status.draining = event->draining;
    node.status.drain = event->drain;
    return node.status.drain;
  };
  const Time later = kDrainTime + absl::Minutes(1);
  ask(DrainRequest(NodeDrain::CHECKPOINT), kDrainTime);
  const Drain again = ask(DrainRequest(NodeDrain::CHECKPOINT, absl::Minutes(30)), later);
  CHECK(again.begin == kDrainTime);
  CHECK(again.deadline == later + absl::Minutes(30));
  CHECK(ask(DrainRequest(NodeDrain::WAIT), later).begin == later);
  CHECK(ask(DrainRequest(NodeDrain::CHECKPOINT), later).begin == later);
  const auto part = DrainOf(node, DrainRequest(NodeDrain::NOW, {}, {"GPU-a"}), later);
  CHECK(absl::IsFailedPrecondition(part.status()));
}

TEST_CASE("a cordon neither ends the drain of devices nor loses its reason to it") {
  Node node = NodeOfThreeGpus();
  node.status.drain =
      DrainOf(node, DrainRequest(NodeDrain::WAIT, {}, {"GPU-b"}), kDrainTime)->drain;
  CHECK(CordonOf(node, "fan").drain == node.status.drain);
  v1::NodeConditions conditions;
  v1::NodeCondition& full = *conditions.add_conditions();
  full.set_name("disk-space");
  full.set_effect(v1::NodeCondition::DRAIN);
  const auto drained = SteeringFor(node, conditions);
  REQUIRE(drained.has_value());
  CHECK(drained->draining);
  CHECK(drained->drain == node.status.drain);
  node.status.cordoned = node.status.draining = true;
  node.status.reason = drained->reason;
  CHECK(DrainModeOf(node.status) == DrainMode::kNow);
  const auto over = SteeringFor(node, {});
  REQUIRE(over.has_value());
  CHECK_FALSE(over->draining);
  CHECK(over->drain == node.status.drain);

  node.status.draining = false;
  node.status.reason = "agent: command: x";
  const auto part = DrainOf(node, DrainRequest(NodeDrain::NOW, {}, {"GPU-a"}), kDrainTime);
  REQUIRE(part.ok());
  CHECK(part->cordoned);
  CHECK(part->reason == "agent: command: x");
}

TEST_CASE("a drained node shows its mode, deadline and devices") {
  ClusterState state;
  Node node = NodeOfThreeGpus();
  v1::Node rendered;
  RenderNode(state, node, true, &rendered);
  CHECK_FALSE(rendered.status().has_drain());
  node.status.drain =
      DrainOf(node, DrainRequest(NodeDrain::CHECKPOINT, absl::Minutes(5), {"GPU-b"}), kDrainTime)
          ->drain;
  RenderNode(state, node, true, &rendered);
  const NodeDrain& drain = rendered.status().drain();
  CHECK(drain.mode() == NodeDrain::CHECKPOINT);
  CHECK(TimeFrom(drain.begin_time()) == kDrainTime);
  CHECK(TimeFrom(drain.deadline()) == kDrainTime + absl::Minutes(5));
  REQUIRE(drain.devices_size() == 1);
  CHECK(drain.devices(0) == "GPU-b");
}

// ---- What tasks are sent

std::vector<v1::ServerMessage> SaveAsksOf(const Agent& agent) {
  return agent.link->Of(Message::kSignalTask);
}

void EmitSteering(World& world, NodeSteered event) {
  REQUIRE(world.loop
              ->Post(
                  [&](Turn& turn) {
                    event.drain.begin = turn.now();
                    event.drain.deadline = turn.now() + absl::Minutes(10);
                    REQUIRE(turn.Emit(event).ok());
                  },
                  CommandClass::kEssential)
              .ok());
  world.Run();
}

void DrainByCheckpoint(World& world, const std::string& node) {
  NodeSteered event{.id = world.node(node).id, .cordoned = true, .draining = true};
  event.drain.mode = DrainMode::kCheckpoint;
  EmitSteering(world, event);
}

TEST_CASE("dispatch: a drain by checkpoint asks the whole gang once, also after a reconnect") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2"), c(&world, "n3");
  for (Agent* agent : {&a, &b, &c}) agent->Connect();
  const JobId gang = world.Submit(
      "gang",
      {.tasks = 3, .cpu_millis = 8000, .checkpoint_signal = "SIGUSR1", .saves_before_drain = true});
  for (Agent* agent : {&a, &b, &c}) agent->Work();
  for (Agent* agent : {&a, &b, &c}) agent->Work();
  REQUIRE(world.job(gang).status.state == JobState::kRunning);
  DrainByCheckpoint(world, "n2");
  for (Agent* agent : {&a, &b, &c}) {
    REQUIRE(SaveAsksOf(*agent).size() == 1);
    const v1::SignalTask ask = SaveAsksOf(*agent)[0].signal_task();
    CHECK(ask.signal() == "SIGUSR1");
    CHECK(ask.reason() == "its gang must leave a node");
    CHECK(ask.request() == (absl::ToUnixNanos(world.node("n2").status.drain.begin)));
  }
  CHECK(a.link->Of(Message::kKill).empty());
  const int64_t request = SaveAsksOf(a)[0].signal_task().request();
  // A second node of the gang: the same request, which agents carry out once.
  world.clock.Advance(absl::Seconds(1));
  DrainByCheckpoint(world, "n3");
  CHECK(SaveAsksOf(a).back().signal_task().request() == request);
  // The message may have been lost.
  a.Disconnect();
  a.Connect();
  REQUIRE(SaveAsksOf(a).size() == 1);
  CHECK(SaveAsksOf(a)[0].signal_task().request() == request);
  // Ended: nothing is asked any more.
  EmitSteering(world, {.id = world.node("n2").id});
  EmitSteering(world, {.id = world.node("n3").id});
  a.Disconnect();
  a.Connect();
  CHECK(SaveAsksOf(a).empty());
}

TEST_CASE("dispatch: other drains, and jobs without a checkpoint signal, are asked nothing") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const bool saves = GENERATE(false, true);
  const JobId job = world.Submit("one", {.saves_before_drain = saves});
  agent.Work();
  agent.Work();
  if (saves) {
    NodeSteered event{.id = world.node("n1").id, .cordoned = true, .draining = true};
    event.drain.mode = DrainMode::kWait;
    EmitSteering(world, event);
    CHECK(world.task(job).state == TaskState::kRunning);
  } else {
    DrainByCheckpoint(world, "n1");
    CHECK(agent.link->Of(Message::kKill).size() == 1);
  }
  CHECK(SaveAsksOf(agent).empty());
}

}  // namespace
}  // namespace berth::testing
