// Leases: silence, fencing, mass silence, and a server that was suspended.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

// Advances the time while these agents continue to send heartbeats.
void Pass(World& world, absl::Duration by, std::vector<Agent*> alive) {
  for (; by > absl::ZeroDuration(); by -= absl::Seconds(1)) {
    world.Advance(absl::Seconds(1));
    for (Agent* agent : alive) {
      agent->Heartbeat();
      agent->Work();
    }
  }
}

TEST_CASE("lease: heartbeats are answered without the loop and renew the lease") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const uint64_t turns = world.loop->counters().turns;
  for (int i = 0; i < 60; ++i) {
    world.clock.Advance(absl::Seconds(1));
    world.leases->Tick();
    agent.Heartbeat();
  }
  CHECK(agent.link->Of(Message::kHeartbeatAck).size() == 60);
  CHECK(world.loop->counters().turns == turns);
  CHECK(world.node("n1").status.state == NodeState::kReady);
}

TEST_CASE("lease: the gang of a silent node is requeued after the fence, never earlier") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("one", {.cpu_millis = 5000, .kill_grace = absl::Seconds(7)});
  a.Work();
  b.Work();
  Agent& dead = world.node("n1").id == world.task(job).node ? a : b;
  Agent& alive = &dead == &a ? b : a;
  dead.Disconnect();
  // Last contact was the registration: silent after 15 s, fenced after 15 + 7 + 5.
  Pass(world, absl::Seconds(14), {&alive});
  CHECK(world.task(job).state == TaskState::kRunning);
  Pass(world, absl::Seconds(3), {&alive});
  CHECK(world.task(job).state == TaskState::kLost);
  CHECK(world.node(dead.name).status.state == NodeState::kSilent);
  CHECK(world.leases->silent() == 1);
  Pass(world, absl::Seconds(9), {&alive});
  CHECK(world.task(job).state == TaskState::kLost);  // 26 s
  CHECK(world.task(job).attempt == 1);
  Pass(world, absl::Seconds(3), {&alive});
  CHECK(world.node(dead.name).status.state == NodeState::kLost);
  CHECK(world.task(job).attempt == 2);
  CHECK(alive.Runs(job));
  CHECK(world.job(job).status.retries == 0);
}

TEST_CASE("lease: an agent that comes back before the fence keeps the tasks of KEEP jobs") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one", {.on_node_loss = NodeLossPolicy::kKeep});
  agent.Work();
  agent.Disconnect();
  Pass(world, absl::Seconds(18), {});
  REQUIRE(world.task(job).state == TaskState::kLost);
  agent.Connect();
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(world.task(job).attempt == 1);
  Pass(world, absl::Seconds(60), {&agent});
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(world.leases->silent() == 0);
}

TEST_CASE(
    "lease: an agent that comes back before the fence stops strict tasks, which then restart") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId job = world.Submit("one");
  a.Work();
  b.Connect();
  a.Disconnect();
  Pass(world, absl::Seconds(18), {&b});
  REQUIRE(world.task(job).state == TaskState::kLost);
  a.Connect();  // its own lease should have killed the task, but it still runs
  CHECK(world.task(job).state == TaskState::kReleasing);
  REQUIRE(a.link->Of(Message::kKill).size() == 1);
  b.Work();
  CHECK(world.task(job).attempt == 1);  // not while the old one runs
  a.Work();
  b.Work();
  const bool both = a.Runs(job) && b.Runs(job);
  CHECK_FALSE(both);
  CHECK(world.task(job).attempt == 2);
  CHECK(world.job(job).status.retries == 0);
}

TEST_CASE("lease: once silence is posted no heartbeat is answered and the stream is closed") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  world.committer.hold = true;
  for (int i = 0; i < 17; ++i) {
    world.clock.Advance(absl::Seconds(1));
    world.leases->Tick();
  }
  agent.Heartbeat();  // even before the loop takes the command
  CHECK(agent.link->Of(Message::kHeartbeatAck).empty());
  CHECK(agent.link->closed);
  CHECK(agent.link->messages.back().refused().code() == v1::Refused::STALE_EPOCH);
}

TEST_CASE("lease: the session of a silent node ends once the silence is durable") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  world.committer.hold = true;
  Pass(world, absl::Seconds(17), {});
  CHECK_FALSE(agent.link->closed);
  world.committer.Release();
  CHECK(agent.link->closed);
}

TEST_CASE("lease: KEEP waits for its node, and REPLACE_NOW does not wait for the fence") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId keep = world.Submit("keep", {.on_node_loss = NodeLossPolicy::kKeep});
  const JobId now = world.Submit("now", {.on_node_loss = NodeLossPolicy::kReplaceNow});
  a.Work();
  b.Connect();
  a.Disconnect();
  Pass(world, absl::Seconds(17), {&b});
  CHECK(b.Runs(now));
  CHECK(world.task(now).attempt == 2);
  CHECK(world.task(keep).state == TaskState::kLost);
  Pass(world, absl::Minutes(5), {&b});
  CHECK(world.node("n1").status.state == NodeState::kLost);
  CHECK(world.task(keep).state == TaskState::kLost);
  CHECK(world.task(keep).attempt == 1);
  a.Connect();
  CHECK(world.task(keep).state == TaskState::kRunning);
  CHECK(world.task(keep).attempt == 1);
}

TEST_CASE("lease: nodes that fall silent in large numbers are not fenced until few are silent") {
  World world;
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < 10; ++i) {
    agents.push_back(std::make_unique<Agent>(&world, absl::StrCat("n", i)));
    agents.back()->Connect();
  }
  std::vector<JobId> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(world.Submit("job" + std::to_string(i), {.cpu_millis = 8000}));
  }
  std::vector<Agent*> alive;
  for (auto& agent : agents) {
    agent->Work();
    bool busy = false;
    for (JobId job : jobs) busy |= agent->Runs(job);
    if (busy) agent->Disconnect();
    if (!busy) alive.push_back(agent.get());
  }
  REQUIRE(alive.size() == 7);  // 3 of 10 silent: over 20 %, and at least 3
  Pass(world, absl::Minutes(3), alive);
  CHECK(world.leases->braking());
  CHECK(world.leases->silent() == 3);
  for (JobId job : jobs) CHECK(world.task(job).state == TaskState::kLost);
  // One comes back: 2 of 10 silent nodes are below the threshold, so they are fenced.
  for (auto& agent : agents) {
    if (!agent->Runs(jobs[0])) continue;
    agent->Connect();
    alive.push_back(agent.get());
    break;
  }
  CHECK(world.task(jobs[0]).attempt == 1);
  Pass(world, absl::Seconds(3), alive);
  CHECK_FALSE(world.leases->braking());
  CHECK(world.task(jobs[1]).attempt == 2);
  CHECK(world.task(jobs[2]).attempt == 2);
}

TEST_CASE("lease: in a small cluster two dead nodes are fenced") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2"), c(&world, "n3");
  for (Agent* agent : {&a, &b, &c}) agent->Connect();
  Pass(world, absl::Seconds(40), {&c});
  CHECK_FALSE(world.leases->braking());
  CHECK(world.node("n1").status.state == NodeState::kLost);
  CHECK(world.node("n2").status.state == NodeState::kLost);
}

TEST_CASE("lease: a server that was suspended declares no node silent") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  Pass(world, absl::Seconds(5), {&agent});
  world.clock.Advance(absl::Minutes(10));  // SIGSTOP
  world.leases->Tick();
  world.Run();
  CHECK(world.node("n1").status.state == NodeState::kReady);
  agent.Heartbeat();  // was in the socket
  CHECK_FALSE(agent.link->closed);
  Pass(world, absl::Seconds(14), {});
  CHECK(world.node("n1").status.state == NodeState::kReady);
  Pass(world, absl::Seconds(3), {});
  CHECK(world.node("n1").status.state == NodeState::kSilent);
  CHECK(world.task(job).attempt == 1);
}

TEST_CASE("lease: a server that was suspended restarts the wait for the fence") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  Pass(world, absl::Seconds(17), {});
  REQUIRE(world.task(job).state == TaskState::kLost);
  world.clock.Advance(absl::Minutes(10));
  world.leases->Tick();
  world.Run();
  CHECK(world.task(job).state == TaskState::kLost);
  Pass(world, absl::Seconds(32), {});
  CHECK(world.node("n1").status.state == NodeState::kLost);
}

TEST_CASE(
    "lease: after a restart every node gets a full lease and every silent node a full fence") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  Pass(world, absl::Seconds(17), {&a});
  REQUIRE(world.node("n2").status.state == NodeState::kSilent);
  world.Restart();
  Pass(world, absl::Seconds(14), {});
  CHECK(world.node("n1").status.state == NodeState::kReady);
  CHECK(world.node("n2").status.state == NodeState::kSilent);
  Pass(world, absl::Seconds(3), {});
  CHECK(world.node("n1").status.state == NodeState::kSilent);
  CHECK(world.node("n2").status.state == NodeState::kSilent);  // no strict tasks: 15 + 5
  Pass(world, absl::Seconds(5), {});
  CHECK(world.node("n2").status.state == NodeState::kLost);
}

TEST_CASE("lease: the lease of a deleted node is dropped") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  Pass(world, absl::Seconds(17), {});
  const NodeId node = world.node("n1").id;
  REQUIRE(world.loop->Post([=](Turn& turn) { REQUIRE(turn.Emit(NodeDeleted{node}).ok()); }).ok());
  world.Run();
  Pass(world, absl::Seconds(2), {});
  CHECK(world.leases->silent() == 0);
  agent.Connect();
  CHECK(agent.epoch == 1);  // a new node with that name
}

TEST_CASE("lease: nothing is fenced while the disk is full") {
  World world;
  Agent a(&world, "n1");
  a.Connect();
  const JobId job = world.Submit("one");
  a.Work();
  world.committer.hold = true;
  Pass(world, absl::Minutes(2), {});
  // The silence is decided but not durable, so the wait for the fence has not started.
  CHECK(world.task(job).state == TaskState::kLost);
  CHECK(world.task(job).attempt == 1);
  world.committer.Release();
  Pass(world, absl::Seconds(2), {});
  CHECK(world.node("n1").status.state == NodeState::kLost);
}

}  // namespace
}  // namespace berth
