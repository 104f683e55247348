// Which searches need not be made because a smaller request found nothing.
#include "core/engine/search/vain_searches.h"

#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::TestCluster;

constexpr uint64_t kVersion = 7;

// Two fixed parts, and a state for their tests.
struct Tests {
  TestCluster cluster;
  NodeMarks marks;
  const FixedTest& Of(std::vector<std::string> models) {
    TaskShape shape;
    shape.devices = {{.kind = "gpu", .count = 1, .models = std::move(models)}};
    return marks.TestOf(cluster.policies(), shape, cluster.state().interner());
  }
};

VainSearches::Request Asks(const FixedTest& fixed, int64_t cpu, int64_t memory, Time until) {
  VainSearches::Request request{.fixed = &fixed, .least = {}, .window = {.end = until}};
  request.least[kCpu] = cpu;
  request.least[kMemory] = memory;
  return request;
}

TEST_CASE("a search in vain answers for requests of at least as much, for at least as long") {
  Tests tests;
  tests.cluster.AddNode("n", {.gpus = 1});
  const FixedTest& any = tests.Of({});
  const Time ten = absl::FromUnixSeconds(36'000), eleven = ten + absl::Hours(1);
  VainSearches searches;
  searches.Add(kVersion, Asks(any, 4, 8, ten), {{.room = 5, .node = NodeId{1}}});

  const auto* same = searches.Find(kVersion, Asks(any, 4, 8, ten));
  REQUIRE(same != nullptr);
  CHECK(same->at(0).node == NodeId{1});
  CHECK(searches.Find(kVersion, Asks(any, 5, 9, eleven)) != nullptr);
  CHECK(searches.Find(kVersion, Asks(any, 3, 8, ten)) == nullptr);
  CHECK(searches.Find(kVersion, Asks(any, 4, 7, ten)) == nullptr);
  CHECK(searches.Find(kVersion, Asks(any, 4, 8, ten - absl::Seconds(1))) == nullptr);
}

TEST_CASE("a search in vain answers only for the same state, constraints and reservations") {
  Tests tests;
  tests.cluster.AddNode("n", {.gpus = 1});
  const FixedTest& any = tests.Of({});
  const FixedTest& h100 = tests.Of({"H100"});
  REQUIRE(&any != &h100);
  const Time never = absl::InfiniteFuture();
  VainSearches searches;
  searches.Add(kVersion, Asks(any, 4, 8, never), {});

  CHECK(searches.Find(kVersion + 1, Asks(any, 4, 8, never)) == nullptr);
  CHECK(searches.Find(kVersion, Asks(h100, 4, 8, never)) == nullptr);
  VainSearches::Request other = Asks(any, 4, 8, never);
  other.ignore_reservations = true;
  CHECK(searches.Find(kVersion, other) == nullptr);
  other = Asks(any, 4, 8, never);
  other.window.begin = absl::FromUnixSeconds(1);
  CHECK(searches.Find(kVersion, other) == nullptr);
  CHECK(searches.Find(kVersion, Asks(any, 4, 8, never)) != nullptr);
}

TEST_CASE("the last searches in vain are kept, and those that answer stay") {
  Tests tests;
  tests.cluster.AddNode("n", {.gpus = 1});
  const FixedTest& any = tests.Of({});
  const Time never = absl::InfiniteFuture();
  VainSearches searches;
  searches.Add(kVersion, Asks(any, 1'000'000, 1, never), {});
  for (int64_t i = 0; i < 200; ++i) {  // none answers for another
    searches.Add(kVersion, Asks(any, 1'000 - i, 1'000 + i, never), {});
    REQUIRE(searches.Find(kVersion, Asks(any, 1'000'000, 1, never)) != nullptr);
  }
  CHECK(searches.Find(kVersion, Asks(any, 1'000, 1'000, never)) == nullptr);  // forgotten
  CHECK(searches.Find(kVersion, Asks(any, 801, 1'199, never)) != nullptr);
}

TEST_CASE("queues list the running jobs that may give something") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 4});
  const auto gives = [&](const char* queue) {
    return cluster.state().FindQueue(queue)->giving_jobs.size();
  };
  testing::JobShape shape{.groups = {{.gpus = 1}}};
  const JobId firm = cluster.Submit("firm", shape);
  shape.preemptible = true;
  const JobId soft = cluster.Submit("soft", shape);
  CHECK(gives("default") == 0);
  cluster.Settle();
  CHECK(cluster.job(firm).occupying == 1);
  REQUIRE(gives("default") == 1);
  CHECK(cluster.state().FindQueue("default")->giving_jobs.begin()->job == soft);
  cluster.Must(JobCancelled{.id = soft});
  cluster.Settle();
  cluster.Must(TaskReported{.task = {soft, 0},
                            .attempt = cluster.job(soft).tasks[0].attempt,
                            .state = ReportState::kExited});
  cluster.Settle();
  CHECK(gives("default") == 0);
  REQUIRE(CheckConsistency(cluster.state()).ok());
}

}  // namespace
}  // namespace berth
