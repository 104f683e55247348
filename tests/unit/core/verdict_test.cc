// Jobs that can never fit are reported as such, and block no other job.
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

// Counted as half a GPU each, shares that agree to oversubscription use a quarter.
TEST_CASE("shares that take less than they count are not reported as never fitting together") {
  TestCluster cluster;
  cluster.AddQueue("default");
  NodeSpec node = testing::MakeNode("n1", {.gpus = 1});
  node.devices[0].max_tasks = 8;
  node.devices[0].oversubscription = 200;
  cluster.Must(NodeRegistered{cluster.state().next_node_id(), node, 1, "agent", "boot", "1.0"});
  const auto submit = [&](const std::string& name, bool oversubscribe) {
    JobSpec spec = testing::MakeJob(name, cluster.state().FindQueue("default")->id,
                                    {.groups = {{.name = "a", .replicas = 2, .cpu = 1},
                                                {.name = "b", .replicas = 2, .cpu = 2}}});
    for (GroupSpec& group : spec.groups) {
      group.shape.devices = {
          {.kind = "gpu", .count = 1, .share = 500, .oversubscribe = oversubscribe}};
    }
    const JobId id = cluster.state().next_job_id();
    cluster.Must(JobSubmitted{.id = id, .spec = std::move(spec)});
    cluster.Settle();
    return id;
  };
  const JobId first = submit("first", true);
  CHECK(cluster.StateOf(first) == "Binding");
  const JobId second = submit("second", true);
  CHECK(cluster.Why(second).at(0).code == WaitCode::kInsufficientResources);
  CHECK(cluster.Why(submit("never", false)).at(0).code == WaitCode::kNeverFits);
  cluster.RunAll(first);
  for (uint32_t task = 0; task < 4; ++task) cluster.Exit(first, task);
  CHECK(cluster.StateOf(second) == "Binding");
}

TEST_CASE("in a strict queue, a job that can never fit blocks no other job") {
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
