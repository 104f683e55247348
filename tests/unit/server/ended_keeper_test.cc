#include "server/controllers/ended_keeper.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {

TEST_CASE("ended tasks beyond the limit: the jobs that expire first are deleted early") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory.set_cpu_millis(64'000);
  agent.inventory.set_memory_bytes(int64_t{1} << 40);
  agent.Connect();
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) {
    const JobId job =
        world.Submit(absl::StrCat("j", i), {.tasks = 3, .ttl_after_finished = absl::Hours(24)});
    agent.Work();
    for (uint32_t task = 0; task < 3; ++task) agent.Exit(job, task, 0);
    world.Advance(absl::Seconds(2));
    REQUIRE(world.job(job).status.state == JobState::kSucceeded);
    jobs.push_back(job);
  }
  const JobId never_ran = world.Submit(
      "never-ran", {.tasks = 2, .cpu_millis = 100'000, .ttl_after_finished = absl::Hours(1)});
  world.Cancel(never_ran);
  world.Run();
  EndedKeeper content(world.loop.get(), 12);
  content.Tick();
  world.Run();
  CHECK(world.state().jobs().size() == 5);
  EndedKeeper keeper(world.loop.get(), 7);
  keeper.Tick();
  world.Run();
  CHECK(world.state().jobs().Find(jobs[0]) == nullptr);
  CHECK(world.state().jobs().Find(jobs[1]) == nullptr);
  CHECK(world.state().jobs().Find(jobs[2]) != nullptr);
  CHECK(world.state().jobs().Find(never_ran) != nullptr);
  keeper.Tick();
  world.Run();
  CHECK(world.state().jobs().size() == 3);
}

// Walltimes and deadlines are timers, too.
TEST_CASE("ended tasks beyond the limit: found behind any number of timers of active jobs") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory.set_cpu_millis(64'000);
  agent.inventory.set_memory_bytes(int64_t{1} << 40);
  agent.Connect();
  std::vector<JobId> active, ended;
  for (int i = 0; i < 10; ++i) {
    active.push_back(world.Submit(absl::StrCat("a", i), {.tasks = 1, .walltime = absl::Hours(1)}));
    agent.Work();
  }
  for (int i = 0; i < 2; ++i) {
    ended.push_back(
        world.Submit(absl::StrCat("e", i), {.tasks = 1, .ttl_after_finished = absl::Hours(24)}));
    agent.Work();
    agent.Exit(ended.back(), 0, 0);
    world.Advance(absl::Seconds(2));
    REQUIRE(world.job(ended.back()).status.state == JobState::kSucceeded);
  }
  EndedKeeper keeper(world.loop.get(), 1, /*most_looked=*/3);
  for (int tick = 0; tick < 5; ++tick) {
    keeper.Tick();
    world.Run();
  }
  CHECK(world.state().jobs().Find(ended[0]) == nullptr);
  CHECK(world.state().jobs().Find(ended[1]) != nullptr);
  for (JobId job : active) CHECK(world.job(job).status.state == JobState::kRunning);
}

}  // namespace berth::testing
