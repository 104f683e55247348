// Replays compared with schedules that were calculated by hand.
#include "offline/replay/replay.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "offline/replay/replay_result.h"
#include "offline/replay/swf.h"
#include "offline/sim/scenario_file.h"

namespace berth::replay {
namespace {

// One job: submit, run and requested seconds, processors.
TraceJob Job(int number, int submit, int run, int requested, int processors) {
  TraceJob job;
  job.name = NameOfRecord(number);
  job.submit = absl::Seconds(submit);
  job.run = absl::Seconds(run);
  job.requested = absl::Seconds(requested);
  job.shape.cpu_millis = processors * 1000;
  return job;
}

// "0-100 100-200": first start and end of each job.
std::string Schedule(const ReplayRun& run) {
  std::string text;
  for (const Outcome& outcome : run.outcomes) {
    const auto seconds = [](Duration d) {
      return d == absl::InfiniteDuration() ? std::string("never")
                                           : absl::StrCat(absl::ToInt64Seconds(d));
    };
    absl::StrAppend(&text, text.empty() ? "" : " ", seconds(outcome.first_start), "-",
                    seconds(outcome.end));
  }
  return text;
}

ReplayRun Must(const Workload& workload, const sim::v1::Scenario& cluster) {
  absl::StatusOr<ReplayRun> run = Replay(workload, cluster);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  return *std::move(run);
}

sim::v1::Scenario Cluster(const std::string& text) {
  const auto documents = ReadScenarios(text, "cluster.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  return documents->front().scenario;
}

TEST_CASE(
    "EASY: a job is backfilled if it ends before the first blocked job starts or leaves it room") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 100, 6), Job(2, 10, 100, 100, 6), Job(3, 20, 50, 50, 4),
                   Job(4, 30, 500, 500, 4), Job(5, 40, 500, 500, 1)};
  // 2 starts when 1 ends. 3 ends before that. 4 uses the cores of 3, because 10 - 6 remain next to
  // 2. If 5 started, it would delay 2 at 100, so it waits until 2 ends.
  const ReplayRun run = Must(workload, OneMachine(10));
  CHECK(Schedule(run) == "0-100 100-200 20-70 70-570 200-700");
  CHECK(run.capacity[kCpu] == 10'000);
  CHECK(run.total.share.held.amount[kCpu.value] == 1000.0 * (600 + 600 + 200 + 2000 + 500));
}

TEST_CASE("a job that ends early frees its resources at once") {
  Workload workload;
  workload.jobs = {Job(1, 0, 30, 100, 10), Job(2, 10, 20, 20, 10)};
  CHECK(Schedule(Must(workload, OneMachine(10))) == "0-30 30-50");
}

TEST_CASE("a job that never fits never starts, and does not end the replay") {
  Workload workload;
  workload.jobs = {Job(1, 0, 30, 30, 11), Job(2, 10, 20, 20, 10)};
  const ReplayRun run = Must(workload, OneMachine(10));
  CHECK(Schedule(run) == "never-never 10-30");
  const sim::v1::PolicyResult figures = Figures(workload, run, "default");
  CHECK(figures.never() == 1);
  CHECK(figures.finished() == 1);
}

TEST_CASE("a job that waits for a time is started then, although nothing else happens") {
  Workload workload;
  workload.jobs = {Job(1, 0, 30, 30, 10), Job(2, 0, 20, 20, 10)};
  auto spec = std::make_shared<JobSpec>();
  spec->groups.push_back({.name = "main", .replicas = 1, .min_available = 1});
  spec->groups[0].shape = workload.jobs[1].shape;
  spec->min_available = 1;
  spec->start_after = absl::UnixEpoch() + absl::Seconds(5000);
  workload.jobs[1].spec = spec;
  CHECK(Schedule(Must(workload, OneMachine(10))) == "0-30 5000-5020");
}

TEST_CASE("the higher priority goes first, but evicts only preemptible jobs") {
  Workload workload;
  workload.jobs = {Job(1, 0, 100, 100, 10), Job(2, 10, 100, 100, 10), Job(3, 20, 100, 100, 10)};
  CHECK(Schedule(Must(workload, OneMachine(10))) == "0-100 100-200 200-300");
  workload.jobs[2].priority = 5;
  CHECK(Schedule(Must(workload, OneMachine(10))) == "0-100 200-300 100-200");
  workload.jobs[0].preemptible = true;  // starts over
  CHECK(Schedule(Must(workload, OneMachine(10))) == "0-220 220-320 20-120");
}

TEST_CASE("names in a log may repeat, and may be any text") {
  Workload workload;
  workload.jobs = {Job(1, 0, 10, 10, 4), Job(1, 0, 10, 10, 4)};
  workload.jobs[0].name = workload.jobs[1].name = "An odd, name";
  const ReplayRun run = Must(workload, OneMachine(10));
  CHECK(Schedule(run) == "0-10 0-10");
  CHECK(JobsCsv(workload, run) ==
        "name,submit,wait,run,end,slowdown,queue,user,tasks,tier,preemptions,failures,last_start,"
        "nodes,"
        "devices\n"
        "\"An odd, name\",0,0,10,10,1,,,1,,0,0,,,\n\"An odd, name\",0,0,10,10,1,,,1,,0,0,,,\n");
}

TEST_CASE("queues: those of the cluster, if it has any") {
  Workload workload;
  workload.jobs = {Job(1, 0, 10, 10, 4), Job(2, 0, 10, 10, 4)};
  const sim::v1::Scenario cluster = Cluster(
      "nodes: [{name: n, cpu: 10}]\n"
      "queues: [{name: a, limit: {cpu: 4}}, {name: b}]\n");
  workload.jobs[0].queue = workload.jobs[1].queue = "a";
  CHECK(Schedule(Must(workload, cluster)) == "0-10 10-20");
  workload.jobs[1].queue = "b";
  CHECK(Schedule(Must(workload, cluster)) == "0-10 0-10");
  workload.jobs[1].queue = "c";
  const auto refused = Replay(workload, cluster);
  CHECK(refused.status().message() == "the cluster has no queue \"c\", which job-2 names");
}

TEST_CASE("an evicted job runs from its start again, and its earlier run is lost") {
  Workload workload;
  workload.jobs = {Job(1, 0, 10000, 10000, 10), Job(2, 4000, 1000, 1000, 10)};
  workload.jobs[0].queue = "borrower";
  workload.jobs[0].preemptible = true;
  workload.jobs[1].queue = "owner";
  const sim::v1::Scenario cluster = Cluster(
      "nodes: [{name: n, cpu: 10}]\n"
      "queues: [{name: borrower}, {name: owner, deserved: {cpu: 10}}]\n");
  const ReplayRun run = Must(workload, cluster);
  CHECK(Schedule(run) == "0-15000 4000-5000");
  CHECK(run.outcomes[0].preemptions == 1);
  CHECK(run.outcomes[0].evicted_tasks == 1);
  CHECK(run.total.lost.amount[kCpu.value] == 10'000.0 * 4000);
  CHECK(run.total.lost_to_failures.amount[kCpu.value] == 0);
}

TEST_CASE("distributions, slowdown and the table of jobs") {
  const auto d = DistributionOf({4, 1, 3, 2});
  CHECK(d.mean() == 2.5);
  CHECK(d.median() == 2);
  CHECK(d.p95() == 4);
  CHECK(d.max() == 4);
  std::vector<double> many;
  for (int i = 1; i <= 200; ++i) many.push_back(i);
  const auto ranks = DistributionOf(many);
  CHECK(ranks.median() == 100);
  CHECK(ranks.p95() == 190);
  CHECK(ranks.p99() == 198);
  CHECK(ranks.max() == 200);
  Workload workload;
  workload.jobs = {Job(1, 5, 100, 100, 10), Job(2, 5, 1, 100, 10)};
  const ReplayRun run = Must(workload, OneMachine(10));
  CHECK(Schedule(run) == "5-105 105-106");
  const sim::v1::PolicyResult figures = Figures(workload, run, "default");
  CHECK(figures.wait().mean() == 50);
  CHECK(figures.completion().max() == 101);
  CHECK(figures.bounded_slowdown().max() == 10.1);  // (100 + 1) / 10: 1 s counts as 10
  CHECK(figures.makespan() == 101);
  CHECK(figures.utilisation().at("cpu") == 1);
  CHECK(JobsCsv(workload, run) ==
        "name,submit,wait,run,end,slowdown,queue,user,tasks,tier,preemptions,failures,last_start,"
        "nodes,"
        "devices\n"
        "job-1,5,0,100,105,1,,,1,,0,0,,,\n"
        "job-2,5,100,1,106,10.1,,,1,,0,0,,,\n");
}

}  // namespace
}  // namespace berth::replay
