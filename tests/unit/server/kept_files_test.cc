// Which kept files of jobs an agent is told to remove.
#include "server/controllers/kept_files.h"

#include <catch2/catch.hpp>

#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

std::vector<uint64_t> Uids(const v1::DropFiles& drop) {
  return {drop.job_uids().begin(), drop.job_uids().end()};
}

// What the agent is told; nothing if there is no reply.
std::vector<uint64_t> Ask(World& world, Agent& agent, std::vector<uint64_t> uids) {
  v1::AgentMessage message;
  for (const uint64_t uid : uids) message.mutable_kept_files()->add_job_uids(uid);
  const size_t before = agent.link->Of(v1::ServerMessage::kDropFiles).size();
  message.set_epoch(agent.epoch);
  agent.Send(std::move(message));
  world.Run();
  const auto received = agent.link->Of(v1::ServerMessage::kDropFiles);
  return received.size() == before ? std::vector<uint64_t>() : Uids(received.back().drop_files());
}

using List = std::vector<uint64_t>;

TEST_CASE("kept files: they stay while the job runs, and go with it") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId id = world.Submit("j1");
  agent.Work();
  REQUIRE(agent.Runs(id));
  CHECK(Ask(world, agent, {id.value}) == List{});
  CHECK(Ask(world, agent, {id.value, 99}) == List{99});
  agent.Exit(id, 0, 0);
  world.Run();
  REQUIRE(Ended(world.job(id).status.state));
  CHECK(Ask(world, agent, {id.value}) == List{id.value});
}

TEST_CASE("kept files: a job that restarts keeps them at its places alone") {
  World world;
  Agent n1(&world, "n1"), n2(&world, "n2");
  n1.Connect();
  n2.Connect();
  const JobId id = world.Submit("j1", {.max_retries = 3});
  n1.Work();
  n2.Work();
  Agent& here = n1.Runs(id) ? n1 : n2;
  Agent& elsewhere = n1.Runs(id) ? n2 : n1;
  CHECK(Ask(world, elsewhere, {id.value}) == List{id.value});
  here.Exit(id, 0, 1);
  world.Run();
  REQUIRE_FALSE(Occupies(world.task(id).state));
  REQUIRE_FALSE(Ended(world.job(id).status.state));
  CHECK(Ask(world, here, {id.value}) == List{});
}

TEST_CASE("kept files: they stay for a failed task of a job that restarts, and not for ever") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId id = world.Submit("j1", {.max_retries = 3});
  agent.Work();
  agent.Exit(id, 0, 1);
  agent.mute = true;  // nothing is prepared again
  world.Run();
  CHECK(Ask(world, agent, {id.value}) == List{});
}

TEST_CASE("kept files: a job that gave its places up has none") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId id = world.Submit("j1");
  agent.Work();
  REQUIRE(agent.Runs(id));
  REQUIRE(world.loop
              ->Post(
                  [&](Turn& turn) {
                    CHECK(turn.Emit(JobSuspended{id, true}).ok());
                  },
                  CommandClass::kEssential)
              .ok());
  world.Run();
  agent.Work();
  world.Run();
  REQUIRE_FALSE(Occupies(world.task(id).state));
  CHECK(Ask(world, agent, {id.value}) == List{id.value});
}

TEST_CASE("kept files: too many in a message are refused") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  CHECK(Ask(world, agent, List(1001, 1)) == List{});
  CHECK(agent.link->Of(v1::ServerMessage::kRefused).size() == 1);
}

}  // namespace
}  // namespace berth
