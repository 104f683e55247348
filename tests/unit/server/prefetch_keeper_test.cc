// Nodes get images in advance for jobs that have reservations there.
#include "server/controllers/prefetch_keeper.h"

#include <catch2/catch.hpp>

#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::JobOptions;
using testing::World;
using Message = v1::ServerMessage;

// A node that is full, and jobs that wait for it.
struct Busy {
  explicit Busy(bool takes = true, absl::Duration walltime = absl::Minutes(10)) {
    agent.inventory.set_cpu_millis(1000);
    agent.last.set_takes_prefetch(takes);
    agent.Connect();
    holder = world.Submit("holder", {.walltime = walltime});
    agent.Work();
    REQUIRE(agent.Runs(holder));
  }
  JobId Wait(const std::string& name, const std::string& image) {
    const JobId job = world.Submit(name, {.walltime = absl::Minutes(10), .image = image});
    world.Run();
    REQUIRE(world.state().reservations().contains(job));
    return job;
  }
  std::vector<v1::ServerMessage> Tick() {
    keeper.Tick();
    world.Run();
    return agent.link->Of(Message::kPrefetch);
  }
  World world;
  Agent agent{&world, "n1"};
  PrefetchKeeper keeper{world.loop.get(), world.dispatcher.get()};
  JobId holder;
};

TEST_CASE("prefetch: a reserved node is asked once for each job") {
  Busy f;
  CHECK(f.Tick().empty());
  const JobId job = f.Wait("waits", "r.example/x:1");
  const auto asked = f.Tick();
  REQUIRE(asked.size() == 1);
  const v1::Prefetch& prefetch = asked[0].prefetch();
  CHECK(prefetch.job_uid() == job.value);
  CHECK(prefetch.launch().image() == "r.example/x:1");
  CHECK(prefetch.launch().queue() == "main");
  CHECK(prefetch.launch().command().empty());
  CHECK(f.Tick().size() == 1);
  f.world.Cancel(job);
  CHECK(f.Tick().size() == 1);
}

TEST_CASE("prefetch: not for jobs without an image, and not of agents that do not know it") {
  const bool takes = GENERATE(false, true);
  Busy f(takes);
  f.Wait("waits", takes ? "" : "r.example/x:1");
  CHECK(f.Tick().empty());
}

TEST_CASE("prefetch: only for reservations that begin soon") {
  Busy f(true, absl::Hours(2));
  f.Wait("waits", "r.example/x:1");
  CHECK(f.Tick().empty());
}

}  // namespace
}  // namespace berth
