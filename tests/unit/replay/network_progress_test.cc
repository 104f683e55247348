// Replays with a network model, compared with schedules that were calculated by hand.
#include "offline/replay/network_progress.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "offline/replay/network_result.h"
#include "offline/replay/outages.h"
#include "offline/replay/replay.h"
#include "offline/sim/scenario_file.h"
#include "support/random.h"
#include "support/yaml_proto.h"

namespace berth::replay {
namespace {

// One job with this many tasks of one GPU each.
TraceJob Job(int number, int submit, int run, int tasks, int requested = 0) {
  TraceJob job;
  job.name = NameOfRecord(number);
  job.submit = absl::Seconds(submit);
  job.run = absl::Seconds(run);
  if (requested > 0) job.requested = absl::Seconds(requested);
  job.tasks = tasks;
  DeviceRequest gpu;
  gpu.kind = "gpu";
  gpu.count = 1;
  job.shape.devices.push_back(gpu);
  return job;
}

sim::v1::Scenario Cluster(const std::string& text) {
  const auto documents = ReadScenarios(text, "cluster.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  return documents->front().scenario;
}

// Two workers compute for 1 s and exchange 1.25 GB: 1 s at 10 Gb/s, 2 s at 5 Gb/s, no time inside a
// node.
Network TwoSeconds(const Workload& workload) {
  sim::v1::NetworkModel model;
  REQUIRE(ReadYaml("{deviceGbps: 1e12, classes: [{name: a, computeSeconds: 1, bytes: 1250000000}]}",
                   "network.yaml", &model)
              .ok());
  const auto network = NetworkFor(model, workload);
  REQUIRE(network.ok());
  return *network;
}

struct Ran {
  ReplayRun run;
  NetworkRun network;
};

Ran Must(const Workload& workload, const std::string& cluster, const JobTemplate& jobs,
         std::vector<Outage> outages = {}) {
  const Network network = TwoSeconds(workload);
  NetworkProgress progress(workload, network);
  const ReplayOptions options{
      .jobs = jobs, .progress = &progress, .outages = std::move(outages), .record = false};
  auto run = Replay(workload, Cluster(cluster), options);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  return {*std::move(run), progress.Take()};
}

// "0-100 100-200": first start and end of each job, to the nearest second.
std::string Schedule(const ReplayRun& run) {
  std::string text;
  for (const Outcome& outcome : run.outcomes) {
    const auto seconds = [](Duration d) {
      return d == absl::InfiniteDuration()
                 ? std::string("never")
                 : absl::StrCat(absl::ToInt64Seconds(d + absl::Milliseconds(500)));
    };
    absl::StrAppend(&text, text.empty() ? "" : " ", seconds(outcome.first_start), "-",
                    seconds(outcome.end));
  }
  return text;
}

JobTemplate With(Strategy strategy) {
  JobTemplate jobs;
  jobs.strategy = strategy;
  return jobs;
}

constexpr const char* kTwoNodes = "nodes: [{name: 'n[0-1]', gpus: 2}]\n";

TEST_CASE("on one node a job runs for its run time, on two nodes twice as long") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2)};
  const Ran together = Must(workload, kTwoNodes, With(Strategy::kBinpack));
  CHECK(Schedule(together.run) == "0-100");
  CHECK(together.network.traffic.empty());
  const Ran apart = Must(workload, kTwoNodes, With(Strategy::kSpread));
  CHECK(Schedule(apart.run) == "0-200");
  REQUIRE(apart.network.slowdowns.size() == 1);
  CHECK(apart.network.slowdowns[0] == Approx(2));
  // 100 iterations of 1.25 GB out of each of two nodes.
  CHECK(apart.network.traffic.at("node") == Approx(100 * 2 * 1.25e9));
  const sim::v1::NetworkFigures figures = FiguresOf(workload, apart.run, apart.network);
  CHECK(figures.useful() == Approx(0.5));
  CHECK(figures.jobs() == 1);
}

TEST_CASE("a job slows down when another one shares its link, and speeds up when that one ends") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2), Job(2, 40, 100, 2)};
  // Until 40 the first does 20 s of its work. Then both continue at a third: the first ends at 40 +
  // 3 * 80. The second has then done 80 s, and does the last 20 s alone, at a half.
  const Ran ran = Must(workload, kTwoNodes, With(Strategy::kSpread));
  CHECK(Schedule(ran.run) == "0-280 40-320");
  CHECK(ran.network.stopped.empty());
}

TEST_CASE("jobs on other links are not affected") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2), Job(2, 40, 100, 2)};
  const std::string cluster = "nodes: [{name: 'n[0-3]', gpus: 1}]\n";
  CHECK(Schedule(Must(workload, cluster, With(Strategy::kSpread)).run) == "0-200 40-240");
}

TEST_CASE("an uplink is shared by jobs that share no node") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2), Job(2, 0, 100, 2)};
  const std::string racks =
      "nodes: [{name: 'a[0-1]', gpus: 1}, {name: 'b[0-1]', gpus: 1}]\n"
      "hyperNodes:\n"
      "- {name: ra, nodes: ['a[0-1]'], bandwidthGbps: 1000000}\n"
      "- {name: rb, nodes: ['b[0-1]'], bandwidthGbps: 1000000}\n"
      "- {name: s, tier: 2, hyperNodes: [ra, rb], bandwidthGbps: 10}\n";
  // Each in a separate rack, if the job requires one.
  JobTemplate near;
  near.topology.mode = TopologyMode::kHard;
  near.topology.highest_tier = 1;
  CHECK(Schedule(Must(workload, racks, near).run) == "0-100 0-100");
  // Three tasks cross the uplink: 2 * 2/3 * 1.25 GB over 10 Gb/s take 1.333 s, so the job runs for
  // 233 s. The fourth node is for the other job. It has one worker and ends after its run time.
  workload.jobs = {Job(1, 0, 100, 3), Job(2, 0, 100, 1)};
  const Ran ran = Must(workload, racks, {});
  CHECK(Schedule(ran.run) == "0-233 0-100");
  CHECK(ran.network.traffic.at("tier 1") == Approx(100 * 2 * 1.25e9 * 4 / 3));
}

TEST_CASE("a job with only some of its tasks makes no progress, and waits") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 1), Job(2, 0, 100, 2)};
  JobTemplate one_by_one;
  one_by_one.min_available = 1;
  const Ran ran = Must(workload, "nodes: [{name: n, gpus: 2}]\n", one_by_one);
  CHECK(Schedule(ran.run) == "0-100 100-200");
  const auto gpu = std::find(ran.run.resources.begin(), ran.run.resources.end(), "gpu");
  const auto kind = static_cast<size_t>(gpu - ran.run.resources.begin());
  CHECK(ran.run.total.share.held.amount.at(kind) == Approx(1000 * (100 + 100 + 200)));
}

TEST_CASE("walltimes are enforced: a slow job is stopped with work left") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2, 150)};
  const Ran ran = Must(workload, kTwoNodes, With(Strategy::kSpread));
  CHECK(Schedule(ran.run) == "0-150");
  REQUIRE(ran.network.stopped.count(0) == 1);
  CHECK(absl::ToDoubleSeconds(ran.network.stopped.at(0)) == Approx(25));
  CHECK(ran.network.slowdowns.empty());
  CHECK(FiguresOf(workload, ran.run, ran.network).useful() == Approx(0.5));
  // 75 iterations were done.
  CHECK(ran.network.traffic.at("node") == Approx(75 * 2 * 1.25e9));
}

TEST_CASE("a job that ends at its walltime at full speed does not count as stopped") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 1, 100)};
  const Ran ran = Must(workload, kTwoNodes, {});
  CHECK(Schedule(ran.run) == "0-100");
  CHECK(ran.network.stopped.empty());
}

TEST_CASE("an evicted job repeats all of its work, at the rate of the new place") {
  Workload workload;
  workload.jobs = {Job(1, 0, 10000, 2), Job(2, 4000, 1000, 4)};
  workload.jobs[0].queue = "borrower";
  workload.jobs[0].preemptible = true;
  workload.jobs[1].queue = "owner";
  const std::string queues = "queues: [{name: borrower}, {name: owner, deserved: {gpu: 4}}]\n";
  // The owner's four workers on two nodes: 2 * 3/4 * 1.25 GB at 10 Gb/s take 1.5 s, so 2,500 s in
  // all. Then the other job's 10,000 s at a half.
  const Ran ran = Must(workload, kTwoNodes + queues, With(Strategy::kSpread));
  CHECK(Schedule(ran.run) == "0-26500 4000-6500");
  CHECK(ran.run.outcomes[0].evicted_tasks == 2);
}

TEST_CASE("a node fails: its job repeats all of its work, and a job that shared a link speeds up") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 2)};
  // On two nodes it runs at half speed, until a node fails at 150. Then it starts over.
  const Ran one = Must(workload, kTwoNodes, With(Strategy::kSpread),
                       {{.node = "n1", .down = absl::Seconds(150), .up = absl::Seconds(170)}});
  CHECK(one.run.outcomes[0].failures == 1);
  CHECK(Schedule(one.run) == "0-250");  // on the one free node: 100 s from 150 on
  // Two jobs that share both nodes' links run at a third. If one is stopped for good, the other
  // continues at a half.
  workload.jobs.push_back(Job(2, 0, 100, 2));
  const Ran both = Must(workload, "nodes: [{name: 'n[0-2]', gpus: 2}]\n", With(Strategy::kSpread),
                        {{.node = "n2", .down = absl::Seconds(60), .up = absl::Seconds(1000)}});
  CHECK(both.run.outcomes[0].failures + both.run.outcomes[1].failures >= 1);
  CHECK(both.run.outcomes[0].end < absl::Seconds(1000));
  CHECK(both.run.outcomes[1].end < absl::Seconds(1000));
}

TEST_CASE("if the network is no bottleneck, the schedule is the same as without it") {
  for (const uint64_t seed : {1, 2}) {
    Random random(seed);
    Workload workload;
    for (int i = 0; i < 40; ++i) {
      const auto run = static_cast<int>(1 + random.Below(500));
      workload.jobs.push_back(Job(i + 1, i * 100, run, 1 + static_cast<int>(random.Below(4)),
                                  run + static_cast<int>(random.Below(300))));
    }
    sim::v1::NetworkModel model;
    REQUIRE(
        ReadYaml("{classes: [{name: a, queues: [none], computeSeconds: 1, bytes: 1}]}", "n", &model)
            .ok());
    const auto network = NetworkFor(model, workload);
    REQUIRE(network.ok());
    NetworkProgress progress(workload, *network);
    const auto with = Replay(workload, Cluster(kTwoNodes), {.jobs = {}, .progress = &progress});
    const auto without = Replay(workload, Cluster(kTwoNodes));
    REQUIRE(with.ok());
    REQUIRE(without.ok());
    for (size_t i = 0; i < workload.jobs.size(); ++i) {
      INFO("job " << i + 1 << ", seed " << seed);
      CHECK(with->outcomes[i].first_start == without->outcomes[i].first_start);
      CHECK(with->outcomes[i].end == without->outcomes[i].end);
    }
    CHECK(progress.Take().stopped.empty());
  }
}

TEST_CASE("a template sets how jobs are submitted, but no field of the workload") {
  const auto of = [](const std::string& text) { return ToJobTemplate(Cluster(text)); };
  const auto jobs =
      of("jobs: [{name: any, strategy: SPREAD, minAvailable: 1, topology: {mode: SOFT, "
         "highestTier: 1, "
         "patience: 10m}}]");
  REQUIRE(jobs.ok());
  CHECK(jobs->strategy == Strategy::kSpread);
  CHECK(jobs->min_available == 1);
  CHECK(jobs->topology.mode == TopologyMode::kSoft);
  CHECK(jobs->topology.patience == absl::Minutes(10));
  CHECK(of("jobs: [{name: any, gpus: 1}]").status().message() ==
        "jobs[0].gpus: is set by the workload; strategy, topology, min_available, preemptible and "
        "checkpoint_interval are allowed");
  CHECK_FALSE(of("jobs: [{name: a}, {name: b}]").ok());
  CHECK(of("config: {}")->min_available == 0);
}

}  // namespace
}  // namespace berth::replay
