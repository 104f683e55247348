// Figures of a replay, compared with figures that were calculated by hand.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "offline/replay/jitter.h"
#include "offline/replay/outages.h"
#include "offline/replay/replay.h"
#include "offline/replay/replay_result.h"
#include "offline/replay/share_meter.h"
#include "offline/sim/scenario_file.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::replay {
namespace {

TraceJob GpuJob(int number, int submit, int run, int tasks, int gpus) {
  TraceJob job;
  job.name = NameOfRecord(number);
  job.submit = absl::Seconds(submit);
  job.run = absl::Seconds(run);
  job.tasks = tasks;
  job.shape.cpu_millis = 1000;
  job.shape.devices = {{.kind = "gpu", .count = gpus}};
  return job;
}

sim::v1::Scenario Cluster(const std::string& text) {
  const auto documents = ReadScenarios(text, "cluster.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  return documents->front().scenario;
}

struct Measured {
  ReplayRun run;
  sim::v1::PolicyResult figures;
};
Measured Measure(const Workload& workload, const std::string& cluster,
                 const ReplayOptions& options = {}) {
  absl::StatusOr<ReplayRun> run = Replay(workload, Cluster(cluster), options);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  sim::v1::PolicyResult figures = Figures(workload, *run, "p");
  return {*std::move(run), std::move(figures)};
}

Resources Cpu(int64_t millis) {
  Resources amounts;
  amounts[kCpu] = millis;
  return amounts;
}

TEST_CASE("Jain's index: over owners that have jobs, while a job is pending") {
  ShareMeter meter({1, 1, 1}, Cpu(1000));
  meter.Demand(0, 1, 1);
  meter.Pass(5);  // one owner
  meter.Demand(1, 1, 1);
  meter.Hold(0, Cpu(300), 1);
  meter.Demand(0, 0, -1);
  meter.Hold(1, Cpu(100), 1);
  meter.Pass(10);  // 0.4^2 / (2 (0.09 + 0.01)) = 0.8
  CHECK(meter.Fairness() == Approx(0.8));
  meter.Hold(1, Cpu(100), 2);
  meter.Pass(30);  // equal shares
  CHECK(meter.Fairness() == Approx((0.8 * 10 + 30) / 40));
  meter.Demand(1, 0, -1);
  meter.Pass(1000);  // no job is pending
  CHECK(meter.Fairness() == Approx((0.8 * 10 + 30) / 40));
  CHECK(meter.Sums()[0].share_seconds == Approx(0.3 * 1040));
  CHECK(meter.Sums()[1].share_seconds == Approx(0.1 * 10 + 0.3 * 1030));
  CHECK(meter.Sums()[1].max == Approx(0.3));
  CHECK(meter.Sums()[2].share_seconds == 0);
}

TEST_CASE("Jain's index: shares are weighted, and of the dominant resource") {
  Resources capacity = Cpu(1000);
  capacity[kMemory] = 100;
  ShareMeter meter({3, 1}, capacity);
  Resources held = Cpu(10);
  held[kMemory] = 60;
  meter.Demand(0, 1, 0);
  meter.Demand(1, 1, 1);
  meter.Hold(0, held, 1);
  meter.Hold(1, Cpu(200), 1);
  meter.Pass(1);
  CHECK(meter.ShareOf(0) == Approx(0.6));
  CHECK(meter.Fairness() == Approx(1));  // 0.6 / 3 and 0.2 / 1
}

TEST_CASE("fragmentation: the part of the free GPUs that no task of the mix can use") {
  // Two nodes of 4 GPUs. The first job takes 3 GPUs on each. 2 GPUs remain free, and only a task of
  // 1 GPU can use them.
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 100, 2, 3), GpuJob(2, 0, 100, 1, 1), GpuJob(3, 0, 100, 1, 1)};
  workload.jobs[1].submit = workload.jobs[2].submit = absl::Seconds(50);
  const Measured m = Measure(workload, "nodes: [{name: 'n[0-1]', cpu: 64, gpus: 4}]\n");
  // The mix: 2 tasks of 3 GPUs and 2 tasks of 1 GPU, equal halves. 0-50: one GPU is free on each
  // node, and one half of the mix cannot use it: 2 free, 1 unusable. 50-100: none free. 100-150: 3
  // free on each node, all usable.
  REQUIRE(m.figures.has_fragmentation());
  const double free = 2.0 * 50 + 6 * 50;
  CHECK(m.figures.fragmentation() == Approx(1.0 * 50 / free));
  CHECK(m.figures.utilisation().at("gpu") == Approx((6.0 * 100 + 2 * 100) / (8 * 150)));
}

TEST_CASE("no fragmentation without GPUs, no fairness without pending jobs") {
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 100, 1, 1)};
  workload.jobs[0].shape.devices.clear();
  const Measured m = Measure(workload, "nodes: [{name: n, cpu: 4}]\n");
  CHECK_FALSE(m.figures.has_fragmentation());
  CHECK_FALSE(m.figures.has_queue_fairness());
}

constexpr char kRacks[] =
    "nodes: [{name: 'n[0-3]', cpu: 64, gpus: 2}]\n"
    "hyper_nodes:\n"
    "- {name: r0, tier: 1, tier_name: rack, nodes: ['n[0-1]']}\n"
    "- {name: r1, tier: 1, tier_name: rack, nodes: ['n[2-3]']}\n"
    "- {name: s, tier: 2, hyper_nodes: [r0, r1]}\n";

TEST_CASE("the network tier of a gang is that of the lowest HyperNode that holds all of it") {
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 10, 2, 1), GpuJob(2, 100, 10, 2, 2), GpuJob(3, 200, 10, 4, 2),
                   GpuJob(4, 300, 10, 1, 2)};
  const Measured m = Measure(workload, kRacks);
  CHECK(m.run.outcomes[0].tier == 0);
  CHECK(m.run.outcomes[1].tier == 1);
  CHECK(m.run.outcomes[2].tier == 2);
  CHECK(m.run.outcomes[3].tier == kNoTier);
  REQUIRE(m.figures.tiers_size() == 3);
  CHECK(m.figures.tiers(0).name() == "node");
  CHECK(m.figures.tiers(1).name() == "rack");
  CHECK(m.figures.tiers(1).gpu_seconds() == 4 * 10);
  CHECK(m.figures.tiers(2).name() == "tier 2");
  const Measured flat = Measure(workload, "nodes: [{name: 'n[0-3]', cpu: 64, gpus: 2}]\n");
  CHECK(flat.figures.tiers(1).name() == "above");
  CHECK(flat.figures.tiers(1).jobs() == 2);
}

TEST_CASE("figures by queue and by user: each owner's, and their sum") {
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 10000, 2, 1), GpuJob(2, 4000, 1000, 2, 1)};
  workload.jobs[0].queue = "borrower";
  workload.jobs[0].user = "ann";
  workload.jobs[0].preemptible = true;
  workload.jobs[1].queue = "owner";
  workload.jobs[1].user = "bob";
  const Measured m = Measure(workload,
                             "nodes: [{name: n, cpu: 64, gpus: 2}]\n"
                             "queues: [{name: borrower}, {name: owner, deserved: {gpu: 2}}]\n");
  // ann 0-4000 (lost), bob 4000-5000, ann 5000-15000.
  CHECK(m.figures.makespan() == 15000);
  CHECK(m.figures.utilisation().at("gpu") == Approx(1));
  CHECK(m.figures.goodput().at("gpu") == Approx(11.0 / 15));
  CHECK(m.figures.preemptions() == 1);
  CHECK(m.figures.evictions() == 2);
  CHECK(m.figures.lost().at("gpu") == 2 * 4000);
  REQUIRE(m.figures.queues_size() == 2);
  const sim::v1::OwnerResult &borrower = m.figures.queues(0), &owner = m.figures.queues(1);
  CHECK(borrower.name() == "borrower");
  CHECK(borrower.preemptions() == 1);
  CHECK(borrower.lost().at("gpu") == 2 * 4000);
  CHECK(borrower.goodput().at("gpu") == Approx(10.0 / 15));
  CHECK(borrower.share() == Approx(14.0 / 15));
  CHECK(borrower.max_share() == 1);
  CHECK(borrower.completion().max() == 15000);
  CHECK(owner.share() == Approx(1.0 / 15));
  CHECK(owner.lost_size() == 0);
  CHECK(owner.wait().max() == 0);
  CHECK(m.figures.users(0).name() == "ann");
  CHECK(m.figures.users(1).jobs() == 1);
  // While one of the two is pending, the other has everything: 1/2.
  CHECK(m.figures.queue_fairness() == Approx(0.5));
  CHECK(m.figures.user_fairness() == Approx(0.5));
}

TEST_CASE("means over copies: a missing value counts as 0, and counts are means too") {
  std::vector<sim::v1::PolicyResult> runs(2);
  runs[0].set_finished(10);
  runs[1].set_finished(13);
  runs[0].mutable_wait()->set_mean(4);
  runs[0].mutable_wait()->set_max(9);
  runs[1].mutable_wait()->set_max(20);
  sim::v1::Tier& tier = *runs[1].add_tiers();
  tier.set_tier(2);
  tier.set_name("rack");
  tier.set_jobs(6);
  tier.set_gpu_seconds(100);
  (*runs[0].mutable_lost())["gpu"] = 8;
  const sim::v1::PolicyResult mean = MeanOf(runs);
  CHECK(mean.finished() == 12);  // 11.5
  CHECK(mean.wait().mean() == 2);
  CHECK(mean.wait().max() == 20);
  REQUIRE(mean.tiers_size() == 1);
  CHECK(mean.tiers(0).tier() == 2);
  CHECK(mean.tiers(0).jobs() == 3);
  CHECK(mean.tiers(0).gpu_seconds() == 50);
  CHECK(mean.lost().at("gpu") == 4);
  CHECK_FALSE(mean.has_network());
  CHECK_FALSE(mean.has_fragmentation());
}

Outage DownFrom(const std::string& node, absl::Duration down) {
  Outage outage;
  outage.node = node;
  outage.down = down;
  return outage;
}

ReplayOptions With(std::vector<Outage> outages) {
  ReplayOptions options;
  options.outages = std::move(outages);
  return options;
}

TEST_CASE("a node that fails stops its gangs, which run again from their start") {
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 100, 2, 2)};
  const auto outages = ReadOutages("node,down,up\nn1,40,70\n", "o.csv");
  REQUIRE(outages.ok());
  const Measured m =
      Measure(workload, "nodes: [{name: 'n[0-1]', cpu: 64, gpus: 2}]\n", With(*outages));
  const Outcome& outcome = m.run.outcomes[0];
  CHECK(outcome.first_start == absl::ZeroDuration());
  CHECK(outcome.failures == 1);
  CHECK(outcome.preemptions == 0);
  CHECK(outcome.end == absl::Seconds(170));
  CHECK(m.figures.failures() == 1);
  CHECK(m.figures.lost_size() == 0);
  CHECK(m.figures.lost_to_failures().at("gpu") == 4 * 40);
  CHECK(m.figures.goodput().at("gpu") == Approx(100.0 / 170));
}

TEST_CASE("a node that stays down: jobs that need it stay pending forever") {
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 100, 2, 2), GpuJob(2, 50, 10, 1, 2)};
  const Measured m = Measure(workload, "nodes: [{name: 'n[0-1]', cpu: 64, gpus: 2}]\n",
                             With({DownFrom("n0", absl::Seconds(40))}));
  CHECK(m.run.outcomes[0].end == absl::InfiniteDuration());
  // The first one keeps its other place for five minutes from the loss.
  CHECK(m.run.outcomes[1].end == absl::Seconds(40 + 300 + 10));
  CHECK(m.figures.finished() == 1);
}

TEST_CASE("outages: errors have a line number, and an unknown node is an error") {
  const auto message = [](const std::string& rows) {
    return std::string(ReadOutages(rows, "o.csv").status().message());
  };
  CHECK(message("node;down;up\n") == "o.csv:1: the first line must be node,down,up");
  CHECK(message("node,down,up\nn,9,5\n") == "o.csv:2: up is not after down");
  CHECK(message("node,down,up\nn,soon,\n") == "o.csv:2: \"soon\" is not a time");
  CHECK(message("node,down,up\nn,1,5\nn,4,6\n") == "o.csv:3: n is already down");
  CHECK(message("node,down,up\nn,1,5\nn,5,6\nm,4,\n").empty());
  Workload workload;
  workload.jobs = {GpuJob(1, 0, 1, 1, 1)};
  const auto run = Replay(workload, Cluster("nodes: [{name: n, cpu: 4, gpus: 1}]\n"),
                          With({DownFrom("x", absl::Seconds(4))}));
  CHECK(run.status().message() == "the cluster has no node \"x\", which has an outage");
}

}  // namespace
}  // namespace berth::replay
