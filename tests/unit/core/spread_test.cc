// Greatest skew over places: which places count, and how many tasks they hold.
#include "core/engine/search/spread.h"

#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth::testing {
namespace {

JobSpec SpreadJob(TestCluster& cluster, int replicas, int32_t max_skew) {
  const QueueId queue = cluster.AddQueue("default");
  JobSpec spec =
      MakeJob("j", queue, {.groups = {{.name = "w", .replicas = replicas, .cpu = 1, .gpus = 1}}});
  spec.groups[0].spread = {.tier = 0, .max_skew = max_skew};
  return spec;
}

int64_t GpusOf(const TestCluster& cluster, NodeId node) {
  return static_cast<int64_t>(cluster.state().nodes().At(node).spec.devices.size());
}

}  // namespace

TEST_CASE("places that cannot hold tasks or do not accept them do not count") {
  TestCluster cluster;
  cluster.AddNode("big", {.gpus = 8});
  cluster.AddNode("small", {.gpus = 1});
  cluster.AddNode("none", {.gpus = 0});
  const NodeId closed = cluster.AddNode("closed", {.gpus = 8});
  cluster.Must(NodeSteered{.id = closed, .cordoned = true});
  const SpreadPlaces places(cluster.state(), nullptr, 0,
                            [&](NodeId node) { return GpusOf(cluster, node); });
  CHECK(places.size() == 2);
  CHECK(places.PlaceOf(cluster.node_id("big")) != SpreadPlaces::kNone);
  CHECK(places.PlaceOf(cluster.node_id("none")) == SpreadPlaces::kNone);
  CHECK(places.PlaceOf(closed) == SpreadPlaces::kNone);
  CHECK(places.Most(1) == 3);   // 1 + 2
  CHECK(places.Most(3) == 5);   // 1 + 4
  CHECK(places.Most(99) == 9);  // all
}

TEST_CASE("without a tree there are no HyperNodes to spread over") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 8});
  const SpreadPlaces places(cluster.state(), nullptr, 1, [](NodeId) { return int64_t{8}; });
  CHECK(places.size() == 0);
  CHECK(places.Most(1) == 0);
}

// Whatever the order of nodes, a gang gets exactly as many tasks as the rule allows.
TEST_CASE("a gang is placed if and only if the places hold it with that skew") {
  for (const int32_t skew : {1, 2, 3}) {
    for (const int first : {1, 4, 7}) {
      TestCluster cluster;
      for (const int gpus : {first, 2, 5, 3}) {
        cluster.AddNode(absl::StrCat("n", cluster.state().nodes().size()), {.gpus = gpus});
      }
      const SpreadPlaces places(cluster.state(), nullptr, 0,
                                [&](NodeId node) { return GpusOf(cluster, node); });
      const auto most = static_cast<int>(places.Most(skew));
      const JobSpec fits = SpreadJob(cluster, most, skew);
      JobSpec over = fits;
      over.name = "over";
      over.groups[0].replicas = over.groups[0].min_available = over.min_available = most + 1;
      cluster.Must(JobSubmitted{.id = cluster.state().next_job_id(), .spec = over});
      cluster.Settle();
      const JobId never = cluster.state().FindJob("over")->id;
      INFO("skew " << skew << ", first " << first << ", most " << most);
      CHECK(cluster.StateOf(never) == "Pending");
      REQUIRE(!cluster.Why(never).empty());
      CHECK(cluster.Why(never).front().code == WaitCode::kNeverFits);
      cluster.Must(JobSubmitted{.id = cluster.state().next_job_id(), .spec = fits});
      cluster.Settle();
      CHECK(cluster.StateOf(cluster.state().FindJob("j")->id) == "Binding");
    }
  }
}

}  // namespace berth::testing
