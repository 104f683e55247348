// Learning the mix of device requests.
#include "server/controllers/mix_keeper.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

void AddGpus(Agent* agent, int count, int max_tasks) {
  for (int i = 0; i < count; ++i) {
    v1::Device* device = agent->inventory.add_devices();
    device->set_kind("gpu");
    device->set_uuid(absl::StrCat("gpu-", i));
    device->set_max_tasks(max_tasks);
  }
}

void SubmitMany(World* world, int64_t from, int64_t count) {
  for (int64_t i = from; i < from + count; ++i) {
    world->Submit(absl::StrCat("j", i),
                  {.gpus = static_cast<int32_t>(i % 2), .share = i % 2 == 0 ? 0.25 : 0});
  }
}

TEST_CASE("a mix is learned from submitted jobs, and gets values") {
  World world;
  Agent agent(&world, "n1");
  AddGpus(&agent, 4, 8);
  agent.Connect();
  MixKeeper keeper(world.loop.get(), &world.executor, {});
  world.loop->AddObserver(&keeper);
  SubmitMany(&world, 0, kFirstMix - 1);
  CHECK(world.state().request_mix() == RequestMix{});
  SubmitMany(&world, kFirstMix - 1, 1);
  CHECK(world.state().request_mix().TotalWeight() == kFirstMix);
  CHECK(world.state().request_mix().priced);
  SubmitMany(&world, kFirstMix, 15 * kFirstMix);  // 2, 4, 8 and 16 times as many: due each time
  world.Run();
  const RequestMix mix = world.state().request_mix();
  REQUIRE(mix.types.size() == 2);
  CHECK(mix.types[0].request.share == 250);
  CHECK(mix.types[0].weight == 8 * kFirstMix);
  CHECK(mix.types[1].request.devices == 1);
  CHECK(mix.priced);

  SECTION("it continues from there after a restart") {
    world.Restart();
    CHECK(world.state().request_mix() == mix);
    MixKeeper again(world.loop.get(), &world.executor, world.state().request_mix());
    world.loop->AddObserver(&again);
    SubmitMany(&world, 1000, 2);
    world.Run();
    CHECK(world.state().request_mix().TotalWeight() > mix.TotalWeight());
  }
}

TEST_CASE(
    "the mix has no prices if the policy uses none, and is empty if the policy does not use it") {
  const auto with = [](SharingPolicy policy) {
    World world;
    PolicyConfig config;
    config.sharing.policy = policy;
    world.loop->SetPolicies(std::make_shared<const Policies>(*Policies::Create(config)), "");
    Agent agent(&world, "n1");
    AddGpus(&agent, 4, 8);
    agent.Connect();
    MixKeeper keeper(world.loop.get(), &world.executor, {});
    world.loop->AddObserver(&keeper);
    SubmitMany(&world, 0, 120);
    world.Run();
    return world.state().request_mix();
  };
  CHECK(with(SharingPolicy::kFragmentation).types.size() == 2);
  CHECK_FALSE(with(SharingPolicy::kFragmentation).priced);
  CHECK(with(SharingPolicy::kBinpack) == RequestMix{});
}

TEST_CASE("nothing is learned if no device may be shared") {
  World world;
  Agent agent(&world, "n1");
  AddGpus(&agent, 4, 1);
  agent.Connect();
  MixKeeper keeper(world.loop.get(), &world.executor, {});
  world.loop->AddObserver(&keeper);
  SubmitMany(&world, 0, 120);
  world.Run();
  CHECK(world.state().request_mix() == RequestMix{});
}

}  // namespace
}  // namespace berth
