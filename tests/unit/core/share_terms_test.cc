// What a share uses of a device: by memory, by oversubscription, and when its node changes.
#include <catch2/catch.hpp>

#include "core/devices/share_counter.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/model_world.h"

// Omitted fields are meant to be empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

Device Gpu(int64_t gib, int32_t oversubscription = 100) {
  return {.kind = "gpu",
          .uuid = "GPU-0",
          .model = "H100",
          .memory_bytes = gib * kGib,
          .max_tasks = 8,
          .oversubscription = oversubscription,
          .compute_capability = 900};
}
DeviceRequest ByMemory(int64_t gib) {
  return {
      .kind = "gpu", .count = 1, .share = 1000, .by_memory = true, .min_memory_bytes = gib * kGib};
}
DeviceRequest Share(int32_t share, int64_t gib = 0) {
  return {.kind = "gpu",
          .count = 1,
          .share = share,
          .oversubscribe = true,
          .min_memory_bytes = gib * kGib};
}

TEST_CASE("a share by memory is rounded up, and depends on the device") {
  CHECK(ShareOn(Gpu(80), ByMemory(20)) == 250);
  CHECK(ShareOn(Gpu(40), ByMemory(20)) == 500);
  CHECK(ShareOn(Gpu(20), ByMemory(20)) == 1000);
  CHECK(ShareOn(Gpu(80), ByMemory(1)) == 13);  // 12.5
  CHECK(ShareOn(Gpu(80, 400), ByMemory(20)) == 250);
  CHECK(MatchesMake(Gpu(20), ByMemory(20)));
  CHECK_FALSE(MatchesMake(Gpu(19), ByMemory(20)));
  CHECK_FALSE(MatchesMake(Gpu(0), ByMemory(20)));
  DeviceRequest most = ByMemory(0);
  most.min_memory_bytes = kMaxAmount;
  Device huge = Gpu(0);
  huge.memory_bytes = kMaxAmount;
  CHECK(ShareOn(huge, most) == 1000);
}

TEST_CASE("a share that agrees to oversubscription uses less, but never less than its memory") {
  CHECK(ShareOn(Gpu(80, 200), Share(500)) == 250);
  CHECK(ShareOn(Gpu(80, 300), Share(500)) == 167);
  CHECK(ShareOn(Gpu(80, 1000), Share(1)) == 1);
  CHECK(ShareOn(Gpu(80, 100), Share(500)) == 500);
  CHECK(ShareOn(Gpu(80, 400), Share(500, 40)) == 500);
  CHECK(ShareOn(Gpu(80, 400), Share(500, 20)) == 250);
  DeviceRequest firm = Share(500);
  firm.oversubscribe = false;
  CHECK(ShareOn(Gpu(80, 200), firm) == 500);
  CHECK_FALSE(MatchesMake(Gpu(80, 400), Share(500, 41)));  // the share has 40
}

TEST_CASE("compute capabilities are parsed and printed") {
  CHECK(ComputeCapabilityFrom("9.0") == 900);
  CHECK(ComputeCapabilityFrom("12.1") == 1201);
  CHECK(ComputeCapabilityFrom("8") == 800);
  CHECK(ComputeCapabilityFrom("") == 0);
  for (const char* text : {"x", "9.", ".9", "9.0.1", "-1.0", "100.0", "9,0", " 9.0"}) {
    CHECK_FALSE(ComputeCapabilityFrom(text).has_value());
  }
  CHECK(ComputeCapabilityText(900) == "9.0");
  CHECK(ComputeCapabilityText(1201) == "12.1");
  CHECK(ComputeCapabilityText(0).empty());
  DeviceRequest request{.kind = "gpu", .count = 1, .min_compute_capability = 800};
  CHECK(MatchesMake(Gpu(80), request));
  request.min_compute_capability = 901;
  CHECK_FALSE(MatchesMake(Gpu(80), request));
}

TEST_CASE("memory counts as a share of the smallest matching device") {
  World world;
  NodeSpec small = NodeWith("small", 1), large = NodeWith("large", 1), bare = NodeWith("bare", 1);
  small.devices[0].memory_bytes = 40 * kGib;
  large.devices[0].memory_bytes = 80 * kGib;
  for (NodeSpec* spec : {&small, &large, &bare}) spec->devices[0].max_tasks = 4;
  JobSpec job;
  job.groups = {GroupOfGpus("g", 1, 1)};
  job.groups[0].shape.devices[0] = ByMemory(20);
  const auto counted = [&] {
    ShareCounter(world.state).Count(&job);
    return job.groups[0].shape.devices[0].share;
  };
  CHECK(counted() == 1000);  // no such device is known
  world.AddNode(large);
  world.AddNode(bare);
  CHECK(counted() == 250);
  world.AddNode(small);
  CHECK(counted() == 500);
  job.groups[0].shape.devices[0].min_memory_bytes = 50 * kGib;
  CHECK(counted() == 625);
  job.groups[0].shape.devices[0].by_memory = false;
  job.groups[0].shape.devices[0].share = 123;
  CHECK(counted() == 123);
}

// Running tasks stay where they are; the sums follow the current device.
TEST_CASE("a device may be overcommitted when its oversubscription ends") {
  World world;
  NodeSpec spec = NodeWith("n0", 1);
  spec.devices[0].max_tasks = 4;
  spec.devices[0].oversubscription = 200;
  const NodeId node = world.AddNode(spec);
  JobSpec job = JobOf("j", world.AddQueue("q"), {GroupOfGpus("g", 4, 1)});
  job.groups[0].shape.devices[0].share = 500;
  job.groups[0].shape.devices[0].oversubscribe = true;
  const JobId id = world.Submit(job);
  const DeviceSet gpu = DeviceSet::Of(0);
  REQUIRE(world.Bind(id, {{0, node, gpu}, {1, node, gpu}, {2, node, gpu}, {3, node, gpu}}).ok());
  const auto gpus = [&](const Resources& amounts) {
    return amounts[*world.state.interner().FindKind("gpu")];
  };
  CHECK(gpus(world.state.nodes().At(node).allocated) == 1000);
  spec.devices[0].oversubscription = 100;
  REQUIRE(world.Try(NodeRegistered{node, spec, 2, "agent", "boot", "1.0"}).ok());
  const Node& after = world.state.nodes().At(node);
  CHECK(gpus(after.allocated) == 2000);
  CHECK(after.devices_used.FreeOf(0) == 0);
  CHECK(after.devices_used.SharesOf(0)->tasks == 4);
  CHECK(CheckConsistency(world.state).ok());
  job.name = "next";
  const JobId next = world.Submit(job);
  CHECK_FALSE(world.Bind(next, {{0, node, gpu}}, false).ok());
}

}  // namespace
}  // namespace berth
