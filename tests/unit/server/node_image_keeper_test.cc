// What agents report about the images of their nodes becomes facts: once, and not too often.
#include "server/controllers/node_image_keeper.h"

#include <catch2/catch.hpp>

#include "core/model/image_id.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

void Tell(Agent& agent, const std::vector<std::string>& images,
          const std::string& default_registry = "") {
  v1::AgentMessage message;
  message.set_epoch(agent.epoch);
  for (const std::string& name : images) message.mutable_images()->add_images()->set_image(name);
  message.mutable_images()->set_default_registry(default_registry);
  agent.Send(std::move(message));
  agent.world->Run();
}

std::vector<ImageId> Ids(std::vector<std::string> names) {
  std::vector<ImageId> ids;
  for (const std::string& name : names) ids.push_back(ImageIdOf(name));
  std::sort(ids.begin(), ids.end());
  return ids;
}

struct Reports {
  Reports() { agent.Connect(); }
  const std::vector<ImageId>& images() { return world.node("n1").images; }
  uint64_t batches() { return world.store.LastSequence(); }
  void Beat() {
    agent.Heartbeat();
    world.Run();
  }
  World world;
  Agent agent{&world, "n1"};
};

TEST_CASE("node images: the first report counts at once, equal ones are no events") {
  Reports f;
  Tell(f.agent, {"r.example/b:1", "r.example/a:1"});
  CHECK(f.images() == Ids({"r.example/a:1", "r.example/b:1"}));
  const uint64_t before = f.batches();
  Tell(f.agent, {"r.example/a:1", "r.example/b:1"});
  f.Beat();
  CHECK(f.batches() == before);
}

TEST_CASE("node images: a node that always reports others has one event in 30 s") {
  Reports f;
  Tell(f.agent, {"r.example/a:0"});
  const uint64_t before = f.batches();
  for (int i = 1; i <= 100; ++i) Tell(f.agent, {absl::StrCat("r.example/a:", i)});
  f.Beat();
  CHECK(f.batches() == before);
  CHECK(f.images() == Ids({"r.example/a:0"}));
  f.world.clock.Advance(NodeImageKeeper::kInterval);
  f.Beat();
  CHECK(f.batches() == before + 1);
  CHECK(f.images() == Ids({"r.example/a:100"}));
}

TEST_CASE("node images: connecting again gains nothing, and what is known is not sent twice") {
  Reports f;
  Tell(f.agent, {"r.example/a:1"});
  f.agent.Disconnect();
  f.agent.Connect();
  const uint64_t before = f.batches();
  Tell(f.agent, {"r.example/a:1"});
  CHECK(f.batches() == before);
  Tell(f.agent, {"r.example/b:1"});
  CHECK(f.batches() == before);  // less than 30 s after the first

  f.world.Restart();
  CHECK(f.images() == Ids({"r.example/a:1"}));
  f.agent.Connect();
  const uint64_t restarted = f.batches();
  Tell(f.agent, {"r.example/a:1"});
  f.Beat();
  CHECK(f.batches() == restarted);
}

TEST_CASE("node images: names without a host mean the node's default registry") {
  Reports f;
  Tell(f.agent, {"r.example/a:1", "s.example/b:1"}, "r.example");
  CHECK(f.images() == Ids({"r.example/a:1", "a:1", "s.example/b:1"}));
}

TEST_CASE("node images: a store of an older format holds none until it is finalized") {
  Reports f;
  f.world.store_format = 9;
  Tell(f.agent, {"r.example/a:1"});
  f.Beat();
  CHECK(f.images().empty());
  f.world.store_format = 10;
  f.Beat();
  CHECK(f.images() == Ids({"r.example/a:1"}));
}

TEST_CASE("node images: no more than the bound, the latest used first") {
  Reports f;
  std::vector<std::string> names;
  for (int i = 0; i < 256; ++i) names.push_back(absl::StrCat("docker.io/library/a:", i));
  Tell(f.agent, names, "docker.io");
  CHECK(f.images().size() == kMaxNodeImages / 3 * 3);
  CHECK(HoldsImage(f.world.node("n1"), ImageIdOf("a:0")));
  CHECK_FALSE(HoldsImage(f.world.node("n1"), ImageIdOf("a:255")));
  names.push_back("one too many");
  Tell(f.agent, names);
  CHECK(f.agent.link->closed);
}

TEST_CASE("node images: a task goes where its image is") {
  World world;
  Agent first{&world, "n1"}, second{&world, "n2"};
  first.Connect();
  second.Connect();
  Tell(second, {"r.example/a:1"});
  const JobId without = world.Submit("without");
  const JobId with = world.Submit("with", {.image = "r.example/a:1"});
  world.Run();
  const auto node_of = [&](JobId job) {
    return world.state().nodes().At(world.task(job).node).spec.name;
  };
  CHECK(node_of(without) == "n1");
  CHECK(node_of(with) == "n2");  // although n1 is the tighter one now
}

}  // namespace
}  // namespace berth
