// Whether and when a node divides a GPU, and what it registers.
#include <catch2/catch.hpp>
#include <set>

#include "clients/agent/agent_config.h"
#include "clients/agent/gpu_division.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

constexpr char kGpu[] = "GPU-1";

v1::DivideGpu Wish(const std::string& gpu = kGpu) {
  v1::DivideGpu wish;
  wish.set_gpu(gpu);
  for (const int start : {0, 4}) {
    v1::GpuPart& part = *wish.add_parts();
    part.set_profile("3g.40gb");
    part.set_start(start);
  }
  return wish;
}

// A node with one GPU that it may divide, and the GPU's two instances.
struct TestNode {
  TestNode() {
    for (const char* uuid : {kGpu, "MIG-a", "MIG-b"}) {
      v1::Device& device = *sent.add_devices();
      device.set_kind("mig");
      device.set_uuid(uuid);
      device.set_unhealthy(uuid == std::string(kGpu));
    }
    instances = {{"MIG-a", {kGpu, 1, 0}}, {"MIG-b", {kGpu, 2, 0}}};
  }
  absl::StatusOr<GpuDivision::Step> On(const v1::DivideGpu& wish) {
    const auto in_use = [this](const std::string& uuid) { return used.contains(uuid); };
    return division.On(wish, {sent, instances, in_use}, now);
  }
  void Register() {  // what AgentLoop::ApplyDevices registers
    for (v1::Device& device : *sent.mutable_devices()) {
      if (instances.contains(device.uuid())) device.set_unhealthy(division.Holds(kGpu));
    }
  }
  std::string Refusal(const v1::DivideGpu& wish) {
    const auto step = On(wish);
    return step.ok() ? "" : std::string(step.status().message());
  }

  v1::NodeInventory sent;
  std::map<std::string, MigPlace> instances;
  std::set<std::string> used;
  absl::Duration now = absl::Hours(1);
  GpuDivision division;
};

TEST_CASE("a GPU is held first, and divided once the server knows") {
  TestNode node;
  CHECK_FALSE(node.division.Holds(kGpu));
  REQUIRE(*node.On(Wish()) == GpuDivision::Step::kHold);
  CHECK(node.division.Holds(kGpu));
  CHECK_FALSE(node.division.Holds("GPU-2"));
  // The same wish again, before the node registered: still only held.
  REQUIRE(*node.On(Wish()) == GpuDivision::Step::kHold);
  node.Register();
  REQUIRE(*node.On(Wish()) == GpuDivision::Step::kDivide);
  CHECK(node.division.dividing());
  CHECK_THAT(node.Refusal(Wish()), Contains("is being divided"));
  node.now += absl::Hours(1);
  CHECK_FALSE(node.division.Expired(node.now));  // no matter how long the driver takes
  node.division.Looked();                        // a look that started before
  CHECK(node.division.Holds(kGpu));
  node.division.Ended();
  CHECK(node.division.Holds(kGpu));  // until a look found the new instances
  node.division.Looked();
  CHECK_FALSE(node.division.Holds(kGpu));
}

TEST_CASE("a GPU that was held in vain is offered again") {
  TestNode node;
  REQUIRE(node.On(Wish()).ok());
  CHECK(node.division.NextWake() == node.now + kHoldGpu);
  CHECK_FALSE(node.division.Expired(node.now));
  node.now += kHoldGpu;
  CHECK(node.division.Expired(node.now));
  CHECK_FALSE(node.division.Expired(node.now));
  CHECK_FALSE(node.division.Holds(kGpu));
  CHECK(node.division.NextWake() == absl::InfiniteDuration());
}

TEST_CASE("a GPU without instances is divided at once") {
  TestNode node;
  node.sent.mutable_devices()->DeleteSubrange(1, 2);
  node.instances.clear();
  CHECK(*node.On(Wish()) == GpuDivision::Step::kDivide);
}

TEST_CASE("a GPU is not divided if it is in use, unknown, or not divisible by this node") {
  TestNode node;
  node.used = {"MIG-b"};
  CHECK_THAT(node.Refusal(Wish()), Contains("instance MIG-b of GPU GPU-1 is in use"));
  node.used.clear();
  CHECK_THAT(node.Refusal(Wish("GPU-2")),
             Contains("GPU GPU-2 is not a GPU that this node may divide"));
  CHECK_THAT(node.Refusal(Wish("MIG-a")), Contains("not a GPU that this node may divide"));
  node.sent.mutable_devices(0)->set_kind("gpu");  // unhealthy, or the policy is off
  CHECK_THAT(node.Refusal(Wish()), Contains("not a GPU that this node may divide"));
  node.sent.mutable_devices(0)->set_kind("mig");
  v1::DivideGpu wrong = Wish();
  wrong.clear_parts();
  CHECK_THAT(node.Refusal(wrong), Contains("1 to 16 parts"));
  wrong.add_parts()->set_start(1);
  CHECK_THAT(node.Refusal(wrong), Contains("has no profile"));
  CHECK_FALSE(node.division.Holds(kGpu));
}

TEST_CASE("GPUs are divided only if the agent discovers devices") {
  config::v1::Agent config;
  SetAgentDefaults(&config);
  config.set_state_directory("/tmp/berth-test");
  config.mutable_mig()->set_reconfigure(true);
  CHECK(CheckAgentConfig(config, 1).ok());
  CHECK(MakeInventory(config).divides_gpus());
  config.mutable_discovery()->set_disabled(true);
  CHECK_THAT(std::string(CheckAgentConfig(config, 1).message()),
             Contains("mig.reconfigure: requires"));
}

}  // namespace
}  // namespace berth
