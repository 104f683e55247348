// The loop and the actors of commands.
#include <catch2/catch.hpp>

#include "server/loop/loop.h"
#include "storage/codec.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::World;

struct TurnLog final : DurableListener {
  void OnTurnDurable(uint64_t, std::shared_ptr<const std::vector<Event>>,
                     std::shared_ptr<const std::string> turn) override {
    turns.push_back(DecodeTurn(*turn).value());
  }
  std::vector<LoggedTurn> turns;
};

Command MakeQueue(std::string name, std::string by) {
  return [=](Turn& turn) {
    if (!by.empty()) turn.By({.name = by, .door = Door::kIdentity});
    QueueSpec spec;
    spec.name = name;
    REQUIRE(turn.Emit(QueueCreated{turn.state().next_queue_id(), spec}).ok());
  };
}

TEST_CASE("loop actors: a command that changes nothing is in the log if it asks for it") {
  World world;
  TurnLog log;
  world.loop->AddListener(&log);
  for (const bool logged : {false, true}) {
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  turn.By({.name = "ada", .method = "JobService.Exec", .target = "job/train"});
                  if (logged) turn.LogCommand();
                })
                .ok());
    world.Run();
  }
  REQUIRE(log.turns.size() == 1);
  REQUIRE(log.turns[0].actors.size() == 1);
  CHECK(log.turns[0].actors[0].actor.target == "job/train");
  CHECK(log.turns[0].actors[0].first == log.turns[0].actors[0].end);
}

TEST_CASE("loop actors: an actor ends with its command, and planning's events have none") {
  World world;
  TurnLog log;
  world.loop->AddListener(&log);
  world.Run();
  log.turns.clear();
  REQUIRE(world.loop->Post(MakeQueue("a", "ada")).ok());
  REQUIRE(world.loop->Post(MakeQueue("b", "")).ok());
  REQUIRE(world.loop->Post([](Turn& turn) { turn.By({.name = "idle"}); }).ok());
  REQUIRE(world.loop->Post(MakeQueue("c", "bob")).ok());
  world.Run();
  REQUIRE(log.turns.size() == 1);
  const std::vector<ActorRange>& actors = log.turns[0].actors;
  REQUIRE(actors.size() == 2);
  CHECK(actors[0].actor.name == "ada");
  CHECK(actors[0].first == 0);
  CHECK(actors[0].end == 1);
  CHECK(actors[1].actor.name == "bob");
  CHECK(actors[1].first == 2);
  CHECK(actors[1].end == 3);
  for (const ActorRange& range : actors) CHECK(range.end <= log.turns[0].events_before_cycle);
}

}  // namespace
}  // namespace berth
