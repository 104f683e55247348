// Filling a cluster with jobs that never end.
#include "offline/replay/fill.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "offline/replay/replay.h"
#include "support/random.h"

namespace berth::replay {
namespace {

TraceJob Asks(int gpus, int share, int64_t cpu_millis = 0) {
  TraceJob job;
  job.name = "job";
  job.shape.cpu_millis = cpu_millis;
  if (gpus + share == 0) return job;
  DeviceRequest& request = job.shape.devices.emplace_back();
  request.kind = "gpu";
  request.count = share > 0 ? 1 : gpus;
  request.share = share;
  return job;
}

sim::v1::Scenario Nodes(int count, int gpus, sim::v1::SharingParameters::Policy policy) {
  sim::v1::Scenario scenario;
  sim::v1::Node& node = *scenario.add_nodes();
  node.set_name(absl::StrCat("n[1-", count, "]"));
  node.set_cpu_millis(64'000);
  node.set_gpus(gpus);
  node.set_tasks_per_gpu(100);
  scenario.mutable_config()->mutable_sharing()->set_policy(policy);
  return scenario;
}

TEST_CASE("jobs arrive until the demand is reached, and stay") {
  Workload workload;
  workload.jobs = {Asks(1, 0)};
  const auto run =
      Fill(workload, Nodes(2, 4, sim::v1::SharingParameters::BINPACK), {.demand = 1.5, .seed = 1});
  REQUIRE(run.ok());
  CHECK(run->arrived == 12);  // drawn with repetition
  CHECK(run->dropped == 4);
  CHECK(run->at_capacity == 1);
  CHECK(run->at_end == 1);
  CHECK(run->mixes == 0);
}

TEST_CASE("only as many jobs of a longer list arrive as the demand needs") {
  Workload workload;
  for (int i = 0; i < 50; ++i) workload.jobs.push_back(Asks(0, 500));
  const auto run =
      Fill(workload, Nodes(1, 4, sim::v1::SharingParameters::BINPACK), {.demand = 1, .seed = 1});
  REQUIRE(run.ok());
  CHECK(run->arrived == 8);
  CHECK(run->at_end == 1);
}

TEST_CASE("a replay learns the mix as well, if the policy uses it") {
  Workload workload;
  Random random(1);
  for (int64_t i = 0; i < 400; ++i) {
    const bool whole = random.Below(3) == 0;
    TraceJob job = whole ? Asks(1 + static_cast<int32_t>(random.Below(2)), 0, 1000)
                         : Asks(0, random.Below(2) == 0 ? 700 : 300, 1000);
    job.submit = absl::Seconds(i);
    job.run = absl::Seconds(30);
    workload.jobs.push_back(job);
  }
  const auto waits = [&](sim::v1::SharingParameters::Policy policy, bool learns) {
    const auto run = Replay(workload, Nodes(3, 8, policy), {});
    REQUIRE(run.ok());
    CHECK((run->mixes >= 2) == learns);
    std::vector<Duration> starts;
    for (const Outcome& outcome : run->outcomes) starts.push_back(outcome.first_start);
    return starts;
  };
  const auto binpack = waits(sim::v1::SharingParameters::BINPACK, false);
  CHECK(waits(sim::v1::SharingParameters::FRAGMENTATION, true) != binpack);
  CHECK(waits(sim::v1::SharingParameters::BID_PRICE, true) != binpack);
}

// Shares of 0.7 leave 0.3, which no job requests. A policy that knows the mix places whole GPUs
// elsewhere.
TEST_CASE("the mix is learned on the way, or known before") {
  Workload workload;
  workload.jobs = {Asks(0, 700, 1000), Asks(0, 300, 1000), Asks(2, 0, 1000), Asks(1, 0, 1000)};
  const auto cluster = Nodes(30, 8, sim::v1::SharingParameters::BID_PRICE);
  const auto cold = Fill(workload, cluster, {.demand = 1.3, .seed = 3});
  REQUIRE(cold.ok());
  CHECK(cold->mixes >= 2);
  const auto warm = Fill(workload, cluster, {.demand = 1.3, .seed = 3, .known = 100});
  REQUIRE(warm.ok());
  CHECK(warm->mixes >= 2);
  CHECK(warm->at_end > 0.97);
  CHECK(cold->arrived == warm->arrived);
}

TEST_CASE("equal seeds give equal results, another seed gives another result") {
  Workload workload;
  workload.jobs = {Asks(0, 700), Asks(0, 400), Asks(3, 0)};
  const auto cluster = Nodes(3, 4, sim::v1::SharingParameters::FRAGMENTATION);
  const auto a = Fill(workload, cluster, {.seed = 1}), b = Fill(workload, cluster, {.seed = 1});
  const auto c = Fill(workload, cluster, {.seed = 2});
  REQUIRE((a.ok() && b.ok() && c.ok()));
  CHECK(a->at_end == b->at_end);
  CHECK(a->arrived == b->arrived);
  CHECK((a->at_end != c->at_end || a->arrived != c->arrived));
}

TEST_CASE("a workload or cluster that cannot be filled is an error") {
  Workload none, workload;
  none.jobs = {Asks(0, 0, 1000)};
  workload.jobs = {Asks(1, 0)};
  const auto cluster = Nodes(1, 4, sim::v1::SharingParameters::BINPACK);
  CHECK(absl::IsInvalidArgument(Fill(none, cluster, {}).status()));
  CHECK(absl::IsInvalidArgument(
      Fill(workload, Nodes(1, 0, sim::v1::SharingParameters::BINPACK), {}).status()));
  workload.jobs[0].tasks = 2;
  CHECK(absl::IsInvalidArgument(Fill(workload, cluster, {}).status()));
}

}  // namespace
}  // namespace berth::replay
