// What can never fit is told so, and keeps nobody waiting.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::TestCluster;

TEST_CASE("a gang whose groups fit alone, but never together") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.cpu = 64, .gpus = 8});
  const JobId job =
      cluster.Submit("j", {.groups = {{.name = "a", .replicas = 1, .cpu = 1, .gpus = 8},
                                      {.name = "b", .replicas = 3, .cpu = 2, .gpus = 4}}});
  const JobId fits =
      cluster.Submit("k", {.groups = {{.name = "a", .replicas = 1, .cpu = 1, .gpus = 8},
                                      {.name = "b", .replicas = 2, .cpu = 2, .gpus = 4}}});
  cluster.Settle();
  const WaitReason why = cluster.Why(job).at(0);
  CHECK(why.code == WaitCode::kNeverFits);
  CHECK(why.resource == "gpu");
  CHECK(why.needed == 20 * kWhole);
  CHECK(why.free == 16 * kWhole);
  CHECK(cluster.StateOf(fits) == "Binding");
}

TEST_CASE("in a strict queue, a job that can never fit keeps nobody waiting") {
  TestCluster cluster;
  cluster.AddQueue("q", {.order = QueueOrder::kFifoStrict});
  cluster.AddNodes("n", 1, {.gpus = 8});
  const JobId never =
      cluster.Submit("never", {.queue = "q", .groups = {{.replicas = 2, .gpus = 8}}});
  const JobId first = cluster.Submit("first", {.queue = "q", .groups = {{.gpus = 8}}});
  const JobId second = cluster.Submit("second", {.queue = "q", .groups = {{.gpus = 8}}});
  const JobId third = cluster.Submit("third", {.queue = "q", .groups = {{.gpus = 1}}});
  cluster.Settle();
  CHECK(cluster.Why(never).at(0).code == WaitCode::kNeverFits);
  CHECK(cluster.StateOf(first) == "Binding");
  CHECK(cluster.Why(second).at(0).code == WaitCode::kInsufficientResources);
  CHECK(cluster.Why(third).at(0).code == WaitCode::kBehindHead);
  CHECK(cluster.Why(third).at(0).job == second);
}

}  // namespace
}  // namespace berth
