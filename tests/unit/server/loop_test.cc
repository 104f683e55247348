// The loop, turn by turn: order, durability, bounds.
#include "server/loop/loop.h"

#include <catch2/catch.hpp>

#include "berth/store/v1/store.pb.h"
#include "core/model/state_editor.h"
#include "server/reads/read_view.h"
#include "storage/codec.h"
#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::World;

// Records what became durable.
struct Recorder final : DurableListener {
  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override {
    revisions.push_back(revision);
    event_counts.push_back(events->size());
    turns.push_back(*turn);
    if (order != nullptr) order->push_back("turn " + std::to_string(revision));
  }
  std::vector<uint64_t> revisions;
  std::vector<size_t> event_counts;
  std::vector<std::string> turns;
  std::vector<std::string>* order = nullptr;
};

Command Note(std::vector<std::string>* log, std::string text) {
  return [=](Turn& turn) { turn.OnDurable([=] { log->push_back(text); }); };
}

Command CreateQueue(std::string name, std::vector<std::string>* log = nullptr) {
  return [=](Turn& turn) {
    QueueSpec spec;
    spec.name = name;
    REQUIRE(turn.Emit(QueueCreated{turn.state().next_queue_id(), spec}).ok());
    if (log != nullptr) turn.OnDurable([=] { log->push_back(name); });
  };
}

TEST_CASE("loop: effects run only once their turn is durable, and in order") {
  World world;
  std::vector<std::string> log;
  Recorder recorder;
  recorder.order = &log;
  world.loop->AddListener(&recorder);
  world.committer.hold = true;
  REQUIRE(world.loop->Post(CreateQueue("a", &log)).ok());
  world.Run();
  REQUIRE(world.loop->Post(CreateQueue("b", &log)).ok());
  REQUIRE(world.loop->Post(CreateQueue("c", &log)).ok());
  world.Run();
  CHECK(world.state().FindQueue("c") != nullptr);  // the loop is ahead of the disk
  CHECK(world.committer.held() == 2);
  CHECK(log.empty());
  CHECK(recorder.revisions.empty());

  world.committer.Release(1);
  CHECK(log == std::vector<std::string>{"a", "turn 2"});
  world.committer.Release();
  CHECK(log == std::vector<std::string>{"a", "turn 2", "b", "c", "turn 3"});
  CHECK(recorder.event_counts == std::vector<size_t>{1, 2});
  absl::StatusOr<LoggedTurn> turn = DecodeTurn(recorder.turns[1]);
  REQUIRE(turn.ok());
  CHECK(turn->sequence == 3);
  CHECK(turn->events.size() == 2);
}

TEST_CASE("loop: nodes join their HyperNodes in the turn in which they register") {
  World world;
  Recorder recorder;
  world.loop->AddListener(&recorder);
  REQUIRE(world.loop
              ->Post([](Turn& turn) {
                HyperNodeSpec rack;
                rack.name = "rack";
                rack.members = {{.match = HyperNodeMember::Match::kRegex, .text = "r1-.*"}};
                auto events = turn.membership().Plan(turn.state(), {rack}, {});
                REQUIRE(events.ok());
                for (EventBody& event : *events) {
                  REQUIRE(turn.Emit(std::move(event)).ok());
                }
              })
              .ok());
  world.Run();
  const auto register_node = [&](const std::string& name) {
    return world.loop->Post([name](Turn& turn) {
      NodeSpec spec;
      spec.name = name;
      REQUIRE(turn.Emit(NodeRegistered{turn.state().next_node_id(), spec, 1, "a", "b", "v"}).ok());
    });
  };
  for (const char* name : {"r1-a", "r2-a", "r1-b"}) REQUIRE(register_node(name).ok());
  world.Run();
  CHECK(world.state().FindHyperNode("rack")->nodes.size() == 2);
  const absl::StatusOr<LoggedTurn> turn = DecodeTurn(recorder.turns.back());
  REQUIRE(turn.ok());
  REQUIRE(turn->events.size() == 4);  // both at once, before planning
  CHECK(std::get<NodesJoined>(turn->events[3].body).nodes.size() == 2);
  CHECK(turn->events_before_cycle == 4);
  CHECK(CheckConsistency(world.state()).ok());
}

TEST_CASE("loop: a batch that never becomes durable leaves no trace") {
  World world;
  std::vector<std::string> log;
  world.committer.hold = true;
  REQUIRE(world.loop->Post(CreateQueue("a", &log)).ok());
  world.Run();
  world.Restart();
  CHECK(log.empty());
  CHECK(world.state().FindQueue("a") == nullptr);
  CHECK(world.state().FindQueue("main") != nullptr);
}

TEST_CASE("loop: an answer waits for the state that it was based on, even if it changes nothing") {
  World world;
  std::vector<std::string> log;
  world.committer.hold = true;
  REQUIRE(world.loop->Post(CreateQueue("a")).ok());
  world.Run();
  REQUIRE(world.loop->Post(Note(&log, "saw a")).ok());
  world.Run();
  CHECK(world.committer.held() == 1);  // no batch for the answer
  CHECK(log.empty());
  world.committer.Release();
  CHECK(log == std::vector<std::string>{"saw a"});
  REQUIRE(world.loop->Post(Note(&log, "at once")).ok());
  world.Run();
  CHECK(log.size() == 2);
}

TEST_CASE("loop: no batch and no turn when nothing happens") {
  World world;
  const size_t before = world.committer.batches;
  CHECK(world.loop->RunTurn() == TurnResult::kIdle);
  CHECK(world.loop->NextWake() == absl::InfiniteFuture());
  REQUIRE(world.loop->Post([](Turn& turn) { CHECK(turn.revision() == 2); }).ok());
  CHECK(world.loop->RunTurn() == TurnResult::kWorked);
  CHECK(world.loop->RunTurn() == TurnResult::kIdle);
  CHECK(world.committer.batches == before);
}

TEST_CASE("loop: an event that the state refuses changes nothing") {
  World world;
  REQUIRE(
      world.loop->Post([](Turn& turn) { CHECK_FALSE(turn.Emit(QueueDeleted{QueueId{77}}).ok()); })
          .ok());
  const size_t before = world.committer.batches;
  world.Run();
  CHECK(world.committer.batches == before);
}

TEST_CASE("loop: the answer to a reader waits until the state that it read is durable") {
  World world;
  world.committer.hold = true;
  REQUIRE(world.loop->Post(CreateQueue("a")).ok());
  world.Run();
  ReadView view(*world.loop);
  const bool found =
      view.Step([](const ClusterState& state) { return state.FindQueue("a") != nullptr; });
  CHECK(found);
  CHECK(view.revision() == 2);
  std::vector<absl::Status> answers;
  view.Answer([&](absl::Status status) { answers.push_back(status); });
  CHECK(answers.empty());
  SECTION("the write succeeds") {
    world.committer.Release();
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].ok());
    view.Answer([&](absl::Status status) { answers.push_back(status); });
    CHECK(answers.size() == 2);  // at once
  }
  SECTION("the write never succeeds") {
    world.loop->ExpireReaders();
    world.clock.Advance(kDurablePatience);
    CHECK(answers.empty());
    world.loop->ExpireReaders();
    REQUIRE(answers.size() == 1);
    CHECK(absl::IsUnavailable(answers[0]));
    world.committer.Release();
    CHECK(answers.size() == 1);
  }
}

TEST_CASE("loop: the command queue is bounded by weight, with a reserve for reports") {
  LoopOptions options;
  options.pending_commands = 10;
  options.essential_commands = 2;
  World world(options);
  const auto nothing = [](Turn&) {};
  REQUIRE(world.loop->Post(nothing, CommandClass::kNewWork, 25).ok());  // alone, any weight is fine
  absl::Status refused = world.loop->Post(nothing);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(RetryDelayOf(refused) == options.retry_delay);
  world.Run();
  for (int i = 0; i < 10; ++i) REQUIRE(world.loop->Post(nothing).ok());
  CHECK_FALSE(world.loop->Post(nothing).ok());
  CHECK(world.loop->Post(nothing, CommandClass::kEssential, 2).ok());
  CHECK_FALSE(world.loop->Post(nothing, CommandClass::kEssential).ok());
  CHECK(world.loop->counters().commands_refused == 3);
  world.Run();
  CHECK(world.loop->Post(nothing).ok());
}

TEST_CASE("loop: a turn takes a bounded number of commands") {
  LoopOptions options;
  options.commands_per_turn = 3;
  World world(options);
  int ran = 0;
  for (int i = 0; i < 7; ++i) REQUIRE(world.loop->Post([&](Turn&) { ++ran; }).ok());
  world.loop->RunTurn();
  CHECK(ran == 3);
  world.loop->RunTurn();
  CHECK(ran == 6);
  world.Run();
  CHECK(ran == 7);
}

TEST_CASE("loop: a full disk refuses new work and accepts reports, then service resumes") {
  World world;
  std::vector<std::string> log;
  world.committer.hold = true;
  world.committer.paused = "disk full: 0 bytes free";
  absl::Status refused = world.loop->Post(CreateQueue("a", &log));
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(std::string(refused.message()).find("disk full") != std::string::npos);
  CHECK(RetryDelayOf(refused) > absl::ZeroDuration());
  CHECK(world.loop->PausedReason() == "disk full: 0 bytes free");
  REQUIRE(world.loop->Post(CreateQueue("b", &log), CommandClass::kEssential).ok());
  world.Run();
  CHECK(log.empty());
  world.committer.paused.clear();
  world.committer.Release();
  CHECK(log == std::vector<std::string>{"b"});
  CHECK(world.loop->Post(CreateQueue("c")).ok());
}

TEST_CASE("loop: it runs ahead of the disk by a bounded number of batches") {
  LoopOptions options;
  options.backlog_batches = 3;
  World world(options);
  bool woken = false;
  world.loop->SetWaker([&] { woken = true; });
  world.committer.hold = true;
  for (int i = 0; i < 5; ++i) {
    REQUIRE(world.loop->Post(CreateQueue("q" + std::to_string(i))).ok());
    world.Run();
  }
  CHECK(world.committer.held() == 3);
  CHECK(world.loop->RunTurn() == TurnResult::kBlocked);
  woken = false;
  world.committer.Release(1);
  CHECK(woken);
  CHECK(world.loop->RunTurn() == TurnResult::kWorked);
  CHECK(world.loop->RunTurn() == TurnResult::kBlocked);
  world.committer.hold = false;
  world.committer.Release();
  world.Run();
  CHECK(world.state().FindQueue("q4") != nullptr);
}

TEST_CASE("loop: the time of turns never goes back") {
  World world;
  Time first, second;
  REQUIRE(world.loop->Post([&](Turn& turn) { first = turn.now(); }).ok());
  world.Run();
  world.clock.Advance(-absl::Minutes(5));
  REQUIRE(world.loop->Post([&](Turn& turn) { second = turn.now(); }).ok());
  world.Run();
  CHECK(second == first);
}

TEST_CASE("loop: effects may post commands, and hold no lock") {
  World world;
  int seen = 0;
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                turn.OnDurable([&] {
                  world.loop->Read([&](const ClusterState&, uint64_t) {
                    ++seen;
                    return 0;
                  });
                  REQUIRE(world.loop->Post([&](Turn&) { ++seen; }).ok());
                });
              })
              .ok());
  world.Run();
  CHECK(seen == 2);
}

TEST_CASE("loop: the written records load into the same state") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  const JobId one = world.Submit("one");
  world.Submit("many", {.tasks = 4});
  world.Submit("too-big", {.cpu_millis = 99'000});
  agent.Work();
  agent.Exit(one, 0, 0);
  REQUIRE(CheckConsistency(world.state()).ok());
  const uint64_t before = Fingerprint(world.state());
  world.Restart();
  CHECK(Fingerprint(world.state()) == before);
}

TEST_CASE("loop: the log records the budget and the work of each cycle") {
  World world;
  Recorder recorder;
  world.loop->AddListener(&recorder);
  testing::Agent agent(&world, "n1");
  agent.Connect();
  world.Submit("one");
  absl::StatusOr<store::v1::LogTurn> turn = ParseTurn(recorder.turns.back());
  REQUIRE(turn.ok());
  CHECK(turn->events_size() > 1);
  CHECK(turn->cycle_budget() == CycleBudget::kFirst);
  CHECK(turn->cycle_work() > 0);
  CHECK(turn->cycle_work() < turn->cycle_budget());
}

TEST_CASE("budget: follows measured time within bounds") {
  CycleBudget budget(absl::Milliseconds(50));
  CHECK(budget.Get() == CycleBudget::kFirst);
  budget.Note(10, absl::Microseconds(5));  // too short for a measurement
  CHECK(budget.Get() == CycleBudget::kFirst);
  for (int i = 0; i < 50; ++i) budget.Note(budget.Get(), absl::Nanoseconds(100) * budget.Get());
  CHECK(budget.Get() == Approx(500'000).epsilon(0.01));  // 100 ns a unit, 50 ms
  for (int i = 0; i < 100; ++i) budget.Note(100, absl::Seconds(10));
  CHECK(budget.Get() == CycleBudget::kLeast);
}

}  // namespace
}  // namespace berth
