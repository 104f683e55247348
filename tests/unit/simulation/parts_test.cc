// Tests of the simulation itself.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/collectives.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shrink.h"

namespace berth::simulation {
namespace {

TEST_CASE("simulation: events are ordered by time, then by the order of their scheduling") {
  Scheduler scheduler;
  const auto actor = std::make_shared<Actor>();
  std::string order;
  for (const auto& [at, what] : std::vector<std::pair<int, char>>{{2, 'c'}, {1, 'a'}, {1, 'b'}}) {
    scheduler.At(absl::Seconds(at), actor, [&order, what = what] { order += what; });
  }
  while (scheduler.Step(absl::Seconds(5))) {
  }
  CHECK(order == "abc");
  CHECK(scheduler.now() == absl::Seconds(5));
}

TEST_CASE("simulation: events of dead actors are dropped, and events of paused ones are delayed") {
  Scheduler scheduler;
  const auto dead = std::make_shared<Actor>(), paused = std::make_shared<Actor>();
  dead->dead = true;
  paused->paused_until = absl::Seconds(9);
  std::vector<absl::Duration> done;
  scheduler.At(absl::Seconds(1), dead, [&] { done.push_back(scheduler.now()); });
  scheduler.At(absl::Seconds(1), paused, [&] { done.push_back(scheduler.now()); });
  while (scheduler.Step(absl::Seconds(8))) {
  }
  CHECK(done.empty());
  while (scheduler.Step(absl::Seconds(10))) {
  }
  CHECK(done == std::vector<absl::Duration>{absl::Seconds(9)});
}

TEST_CASE("simulation: a disk keeps what was synced and a prefix of the rest") {
  bool part = false, renamed = false, old_name = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimDisk disk;
    Dice dice(seed, 0);
    auto file = *disk.OpenAppend("/a", false);
    REQUIRE(file->Append("synced").ok());
    REQUIRE(file->Sync().ok());
    REQUIRE(disk.SyncDirectory("/").ok());
    REQUIRE(file->Append("later").ok());
    file.reset();
    REQUIRE(disk.Rename("/a", "/b").ok());
    disk.PowerCut(dice);
    const bool moved = disk.ReadFile("/b").ok();
    const std::string text = *disk.ReadFile(moved ? "/b" : "/a");
    CHECK(disk.ReadFile(moved ? "/a" : "/b").status().code() == absl::StatusCode::kNotFound);
    CHECK(std::string("syncedlater").substr(0, text.size()) == text);
    CHECK(text.size() >= 6);
    part |= text.size() > 6 && text.size() < 11;
    renamed |= moved;
    old_name |= !moved;
  }
  CHECK((part && renamed && old_name));
}

struct Deaf final : Observer {
  void OnPrepared(size_t, const TaskId&) override {}
  void OnStarted(size_t, const TaskId&, const v1::TaskLaunch&, const v1::Start&) override {}
  void OnEnded(size_t, const TaskId&, bool) override {}
  void OnTaskFrozen(size_t, const TaskId&, bool, bool) override {}
  void OnFrozen(size_t, bool) override {}
};

TEST_CASE("simulation: members of a collective fail after one that did not succeed") {
  Deaf deaf;
  std::map<std::string, absl::Duration> failing;
  Collectives collectives(&deaf, 1, [&](size_t node, const TaskId& id, absl::Duration delay) {
    failing[absl::StrCat(ToString(id), " on n", node)] = delay;
  });
  v1::TaskLaunch alone, member;
  v1::EnvVar* variable = member.add_env();
  variable->set_name(kCollectiveVariable);
  variable->set_value("1");
  const auto start = [&](const TaskId& id, const v1::TaskLaunch& launch, int port) {
    v1::Start where;
    where.set_master_address("n0");
    where.set_master_port(port);
    collectives.OnStarted(id.task, id, launch, where);
  };
  for (const uint32_t task : {0u, 1u, 2u, 3u}) start({7, task, 1, 1}, member, 20000);
  start({7, 4, 1, 1}, alone, 20000);
  start({7, 1, 2, 1}, member, 20001);  // another collective of the job
  start({8, 1, 1, 1}, member, 20000);  // another job
  start({7, 1, 1, 2}, member, 20000);  // likewise, after a restore
  collectives.OnEnded(0, {7, 0, 1, 1}, true);
  CHECK(failing.empty());
  collectives.OnEnded(2, {7, 2, 1, 1}, false);
  std::vector<std::string> who;
  for (const auto& [task, delay] : failing) {
    who.push_back(task);
    CHECK((delay >= absl::ZeroDuration() && delay <= absl::Seconds(3)));
  }
  CHECK(who == std::vector<std::string>{"7-1-1.1 on n1", "7-3-1.1 on n3"});
}

TEST_CASE("simulation: shrinking keeps only what the failure needs") {
  Options options;
  int runs = 0;
  const Options least = Shrink(options, [&](const Options& tried) {
    ++runs;
    return tried.Has(Fault::kLoss) && tried.Has(Fault::kLie) && tried.hours >= 3 &&
           tried.max_nodes >= 3;
  });
  CHECK(least.faults == (Only(Fault::kLoss) | Only(Fault::kLie)));
  CHECK((least.hours >= 3 && least.hours < 4.5));
  CHECK(least.max_nodes == 3);
  CHECK(least.max_jobs == 1);
  CHECK(CommandLine(least).find("--faults loss,lie") != std::string::npos);
  CHECK(runs < 200);
}

}  // namespace
}  // namespace berth::simulation
