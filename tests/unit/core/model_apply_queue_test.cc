#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

// Every rejected event, and its message.
struct Refusal {
  EventBody event;
  absl::StatusCode code;
  std::string message;
};

void CheckRefusals(World& world, const std::vector<Refusal>& refusals) {
  const uint64_t before = Fingerprint(world.state);
  for (const Refusal& refusal : refusals) {
    const absl::Status status = world.Try(refusal.event);
    CHECK(std::string(status.message()) == refusal.message);
    CHECK(status.code() == refusal.code);
    CHECK(Fingerprint(world.state) == before);
  }
  CHECK(CheckConsistency(world.state).ok());
}

QueueSpec Spec(const std::string& name, QueueId parent, std::vector<NamedAmount> limit = {}) {
  QueueSpec spec;
  spec.name = name;
  spec.parent = parent;
  spec.limit = std::move(limit);
  return spec;
}

TEST_CASE("a queue has a limit for each resource that it names", "[model]") {
  World world;
  const QueueId team = world.AddQueue("team", kRootQueue, {{"cpu", 8000}, {"gpu", 16}});
  const Queue& queue = world.queue(team);
  CHECK(queue.limit[kCpu] == 8000);
  CHECK(queue.limit[kMemory] == INT64_MAX);
  CHECK(queue.limit[*world.state.interner().FindKind("gpu")] == 16);
  CHECK(world.queue(kRootQueue).children == std::vector<QueueId>{team});
  CHECK(world.state.FindQueue("team") == &queue);
  CHECK(world.state.Open(team));
  REQUIRE(world.Try(QueueOpened{kRootQueue, false}).ok());
  CHECK_FALSE(world.state.Open(team));
}

TEST_CASE("limits apply at every level of the tree to requested resources", "[model]") {
  World world;
  const QueueId org = world.AddQueue("org", kRootQueue, {{"cpu", 3000}});
  const QueueId team = world.AddQueue("team", org, {{"gpu", 4 * kWhole}});
  const NodeId node = world.AddNode("n", 8);
  Resources request;
  request[kCpu] = 3000;
  CHECK(world.state.WithinLimits(team, request));
  request[kCpu] = 3001;
  CHECK_FALSE(world.state.WithinLimits(team, request));

  const JobId job = world.Submit(JobOf("j", team, {GroupOfGpus("w", 1, 3)}));
  REQUIRE(world.Bind(job, {{0, node, Devices({0, 1, 2})}}).ok());
  CHECK(world.queue(org).allocated[kCpu] == 1000);
  // Lowered below usage: running tasks continue, requests for more wait.
  REQUIRE(world.Try(QueueUpdated{team, Spec("team", org, {{"gpu", 2 * kWhole}})}).ok());
  Resources gpu;
  gpu[*world.state.interner().FindKind("gpu")] = 1;
  CHECK_FALSE(world.state.WithinLimits(team, gpu));
  request[kCpu] = 2000;
  CHECK(world.state.WithinLimits(team, request));
}

TEST_CASE("invalid queue events are rejected with a reason, and change nothing", "[model]") {
  World world;
  const QueueId org = world.AddQueue("org");
  const QueueId team = world.AddQueue("team", org);
  world.Submit(JobOf("j", team, {GroupOfGpus("w", 1, 1)}));
  std::vector<NamedAmount> many;
  for (int i = 10; i < 30; ++i) many.push_back({"r" + std::to_string(i), 1});
  using C = absl::StatusCode;
  const QueueId next = world.state.next_queue_id();
  CheckRefusals(
      world,
      {{QueueCreated{QueueId{9}, Spec("x", org)}, C::kFailedPrecondition,
        "the next queue is 3, not 9"},
       {QueueCreated{next, Spec("", org)}, C::kInvalidArgument, "a queue needs a name"},
       {QueueCreated{next, Spec("team", org)}, C::kAlreadyExists, "queue team exists"},
       {QueueCreated{next, Spec("x", QueueId{77})}, C::kNotFound, "queue x: no parent queue 77"},
       {QueueCreated{next, Spec("x", team)}, C::kFailedPrecondition,
        "queue team (2) has 1 jobs: only a leaf has jobs"},
       {QueueCreated{next, Spec("x", org, {{"cpu", -1}})}, C::kInvalidArgument,
        "queue x: cpu must be 0 to 281474976710656, not -1"},
       {QueueCreated{next, Spec("x", org, {{"b", 1}, {"a", 1}})}, C::kInvalidArgument,
        "queue x: resources must be sorted by name, each once (a)"},
       {QueueCreated{next, Spec("x", org, many)}, C::kResourceExhausted,
        "resource \"r22\" exceeds the limit of 16 kinds of resources per cluster"},
       {QueueUpdated{QueueId{77}, Spec("x", org)}, C::kNotFound, "no queue 77"},
       {QueueUpdated{team, Spec("other", org)}, C::kInvalidArgument,
        "queue team (2): name and parent cannot change"},
       {QueueUpdated{team, Spec("team", kRootQueue)}, C::kInvalidArgument,
        "queue team (2): name and parent cannot change"},
       {QueueOpened{QueueId{77}, true}, C::kNotFound, "no queue 77"},
       {QueueDeleted{QueueId{77}}, C::kNotFound, "no queue 77"},
       {QueueDeleted{kRootQueue}, C::kInvalidArgument, "the root queue cannot be deleted"},
       {QueueDeleted{org}, C::kFailedPrecondition, "queue org (1) has 1 child queues"},
       {QueueDeleted{team}, C::kFailedPrecondition, "queue team (2) has 1 jobs"}});
}

TEST_CASE("a deleted queue's name can be reused, its id cannot", "[model]") {
  World world;
  const QueueId first = world.AddQueue("team");
  REQUIRE(world.Try(QueueDeleted{first}).ok());
  CHECK(world.state.FindQueue("team") == nullptr);
  CHECK(world.AddQueue("team") == QueueId{first.value + 1});
  CHECK(CheckConsistency(world.state).ok());
}

}  // namespace
}  // namespace berth
