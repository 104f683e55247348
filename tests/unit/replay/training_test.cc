// Replays of jobs that save their work, with outages and random faults, compared with schedules
// that were calculated by hand.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "offline/replay/csv_workload.h"
#include "offline/replay/fault_file.h"
#include "offline/replay/replay.h"
#include "offline/replay/training_progress.h"
#include "offline/replay/training_result.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"
#include "support/yaml_proto.h"

namespace berth::replay {
namespace {

// One job with this many tasks of one GPU each.
TraceJob GpuJob(int number, Duration run, int tasks) {
  TraceJob job;
  job.name = NameOfRecord(number);
  job.run = run;
  job.tasks = tasks;
  DeviceRequest gpu;
  gpu.kind = "gpu";
  gpu.count = 1;
  job.shape.devices.push_back(gpu);
  return job;
}

TrainingCosts Costs(int interval, int checkpoint, int restart) {
  return {.interval = absl::Seconds(interval),
          .checkpoint = absl::Seconds(checkpoint),
          .restart = absl::Seconds(restart)};
}

FaultModel Model(const std::string& text) {
  sim::v1::Faults faults;
  REQUIRE(ReadYaml(text, "faults.yaml", &faults).ok());
  const auto model = ToFaultModel(faults);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  return *model;
}

struct Trained {
  ReplayRun run;
  TrainingRun training;
};

// Nodes of one GPU each.
Trained Train(const Workload& workload, const std::string& nodes, const TrainingCosts& costs,
              ReplayOptions options) {
  const auto documents =
      ReadScenarios(absl::StrCat("nodes: [{name: '", nodes, "', gpus: 1}]\n"), "cluster.yaml");
  REQUIRE(documents.ok());
  TrainingProgress progress(workload, std::vector<TrainingCosts>(workload.jobs.size(), costs));
  options.progress = &progress;
  auto run = Replay(workload, documents->front().scenario, options);
  INFO(run.status().ToString());
  REQUIRE(run.ok());
  return {*std::move(run), progress.Take()};
}

// "useful 2000, lost 100, ..." in seconds, without what is 0.
std::string PartsOf(const TimeSpent& spent) {
  std::string text;
  const auto add = [&](const char* name, Duration time) {
    if (time == absl::ZeroDuration()) return;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", absl::FormatDuration(time));
  };
  add("useful", spent.useful);
  add("lost", spent.lost);
  add("checkpoints", spent.checkpoints);
  add("restarts", spent.restarts);
  add("undetected", spent.undetected);
  add("waiting", spent.waiting);
  return text;
}

constexpr Duration kSecond = absl::Seconds(1);

TEST_CASE("the time since a start consists of restart, work and checkpoints") {
  const TrainingCosts costs = Costs(600, 60, 300);
  const TrainingTime time = TrainingTimeOf(costs, true, absl::Minutes(30));
  CHECK(time.restart == absl::Minutes(5));
  CHECK(time.checkpoints == absl::Minutes(2));
  CHECK(time.saved == absl::Minutes(20));
  CHECK(time.unsaved == absl::Minutes(3));
  // In the middle of a checkpoint nothing of that interval is saved yet.
  const TrainingTime saving = TrainingTimeOf(costs, false, absl::Seconds(630));
  CHECK(saving.saved == absl::ZeroDuration());
  CHECK(saving.unsaved == absl::Minutes(10));
  CHECK(saving.checkpoints == absl::Seconds(30));
  CHECK(TimeToTrain(costs, false, absl::Minutes(20)) == absl::Minutes(21));
  CHECK(TimeToTrain(costs, true, absl::Seconds(1201)) == absl::Seconds(300 + 1201 + 120));
  CHECK(TrainingTimeOf({}, true, absl::Hours(1)).unsaved == absl::Hours(1));
}

TEST_CASE("a job that loses a node continues from its last checkpoint, after its restart") {
  Workload workload;
  workload.jobs = {GpuJob(1, 2000 * kSecond, 2)};
  ReplayOptions options;
  options.outages = {{.node = "n1", .down = 1000 * kSecond}};
  // Saved: 3 * 300. Then 100 s of restart and 1,100 of work on n0 and n2.
  const Trained ran = Train(workload, "n[0-2]", Costs(300, 0, 100), options);
  CHECK(ran.run.outcomes[0].end == 2200 * kSecond);
  CHECK(PartsOf(ran.training.spent.at(0)) == "useful 33m20s, lost 1m40s, restarts 1m40s");
  CHECK(ran.training.spent.at(0).Sum() == 2200 * kSecond);
  // 100 s on two GPUs.
  const auto& lost = ran.run.total.lost_to_failures.amount;
  double gpu_seconds = 0;
  for (size_t i = 0; i < ran.run.resources.size(); ++i) {
    if (ran.run.resources[i] == "gpu") gpu_seconds = lost[i] / kWhole;
  }
  CHECK(gpu_seconds == Approx(200));
  const sim::v1::TrainingFigures figures = FiguresOf(workload, ran.run, ran.training);
  CHECK(figures.jobs() == 1);
  CHECK(figures.ettr() == Approx(2000.0 / 2200));
  CHECK(figures.lost() == Approx(100.0 / 2200));
}

TEST_CASE("without a spare node the job waits until the node is back") {
  Workload workload;
  workload.jobs = {GpuJob(1, 2000 * kSecond, 2)};
  ReplayOptions options;
  options.outages = {{.node = "n1", .down = 1000 * kSecond, .up = 5000 * kSecond}};
  const Trained ran = Train(workload, "n[0-1]", Costs(300, 10, 100), options);
  // 1,000 s: three checkpoints are made at 310, 620 and 930; 70 s are lost. 1,100 s are left, with
  // three more.
  CHECK(ran.run.outcomes[0].end == (5000 + 100 + 1100 + 30) * kSecond);
  CHECK(PartsOf(ran.training.spent.at(0)) ==
        "useful 33m20s, lost 1m10s, checkpoints 1m, restarts 1m40s, waiting 1h6m40s");
}

TEST_CASE("a job that makes room for another one continues from its last checkpoint") {
  Workload workload;
  workload.jobs = {GpuJob(1, 1000 * kSecond, 1), GpuJob(2, 100 * kSecond, 1)};
  workload.jobs[0].preemptible = true;
  workload.jobs[1].submit = 350 * kSecond;
  workload.jobs[1].priority = 10;
  const Trained ran = Train(workload, "n0", Costs(100, 0, 10), {});
  CHECK(ran.run.outcomes[1].end == 450 * kSecond);
  CHECK(ran.run.outcomes[0].preemptions == 1);
  CHECK(ran.run.outcomes[0].end == (450 + 10 + 700) * kSecond);
  CHECK(PartsOf(ran.training.spent.at(0)) ==
        "useful 16m40s, lost 50s, restarts 10s, waiting 1m40s");
  CHECK(PartsOf(ran.training.spent.at(1)) == "useful 1m40s");
}

TEST_CASE("a job stops at its walltime with work left") {
  Workload workload;
  workload.jobs = {GpuJob(1, 2000 * kSecond, 1)};
  workload.jobs[0].requested = 2100 * kSecond;
  const Trained ran = Train(workload, "n0", Costs(100, 20, 0), {});
  CHECK(ran.run.outcomes[0].end == 2100 * kSecond);
  CHECK(ran.training.stopped.count(0) == 1);
  // 17 whole intervals of 120 s, and 60 s of the next.
  CHECK(PartsOf(ran.training.spent.at(0)) == "useful 28m20s, lost 1m, checkpoints 5m40s");
}

// The job ends before the second fault of this sequence.
struct OneFault {
  FaultModel model;
  Duration strike, run;
};
OneFault FaultOf(const std::string& cause) {
  OneFault fault;
  fault.model =
      Model(absl::StrCat("{nodes: 1, period: 1000h, causes: [{name: x, count: 10, ", cause, "}]}"));
  StrikeSequence strikes(fault.model, 1, 1);
  fault.strike = strikes.next().time;
  strikes.Pop();
  const Duration second = strikes.next().time;
  fault.run = fault.strike + absl::Minutes(20);
  REQUIRE(second > fault.run + absl::Hours(3));
  return fault;
}

TEST_CASE("a node that fails stands still until it is detected, and returns after its repair") {
  OneFault fault = FaultOf("kind: NODE, detection: 10m, repair: 1h");
  Workload workload;
  workload.jobs = {GpuJob(1, fault.run, 1)};
  ReplayOptions options;
  options.faults = &fault.model;
  const Trained ran = Train(workload, "n0", Costs(60, 0, 30), options);
  const TimeSpent& spent = ran.training.spent.at(0);
  CHECK(spent.useful == fault.run);
  CHECK(spent.undetected == absl::Minutes(10));
  CHECK(spent.waiting == absl::Hours(1));
  CHECK(spent.restarts == absl::Seconds(30));
  CHECK(spent.lost == fault.strike - absl::Floor(fault.strike, absl::Minutes(1)));
  CHECK(ran.run.outcomes[0].end == spent.Sum());
  CHECK(ran.run.outcomes[0].failures == 1);
  CHECK(ran.run.strikes == 1);
  CHECK(ran.run.interruptions.at("x") == 1);
}

TEST_CASE("a task that fails or hangs restarts its job in place") {
  for (const char* cause : {"kind: TASK, detection: 10m", "kind: HANG, detection: 10m"}) {
    INFO(cause);
    OneFault fault = FaultOf(cause);
    Workload workload;
    workload.jobs = {GpuJob(1, fault.run, 1)};
    ReplayOptions options;
    options.faults = &fault.model;
    const Trained ran = Train(workload, "n0", Costs(60, 0, 30), options);
    const TimeSpent& spent = ran.training.spent.at(0);
    CHECK(spent.useful == fault.run);
    CHECK(spent.undetected == absl::Minutes(10));
    CHECK(spent.waiting == absl::Seconds(1));  // the job's back-off
    CHECK(spent.restarts == absl::Seconds(30));
    CHECK(ran.run.outcomes[0].end == spent.Sum());
    CHECK(ran.run.outcomes[0].failures == 1);
    CHECK(ran.run.interruptions.at("x") == 1);
  }
}

constexpr const char* kManyFaults = R"(
nodes: 10
period: 24h
causes:
- {name: node, count: 6, kind: NODE, detection: 1m, repair: 2h}
- {name: bug, count: 3, kind: TASK, detection: 10s}
- {name: hang, count: 3, kind: HANG, detection: 10m}
)";

TEST_CASE(
    "under many faults the parts of each job's time add up, and the same seed gives the same") {
  const FaultModel model = Model(kManyFaults);
  Workload workload;
  for (int i = 0; i < 6; ++i) workload.jobs.push_back(GpuJob(i + 1, absl::Hours(40 + i), 3));
  int64_t interruptions = 0;
  std::vector<Duration> ends;
  for (const uint64_t seed : {1, 2, 3, 1}) {
    ReplayOptions options;
    options.faults = &model;
    options.fault_seed = seed;
    const Trained ran = Train(workload, "n[0-9]", Costs(600, 5, 60), options);
    int64_t failures = 0, by_cause = 0;
    for (size_t i = 0; i < workload.jobs.size(); ++i) {
      const Outcome& outcome = ran.run.outcomes[i];
      CHECK(ran.training.spent.at(i).useful == workload.jobs[i].run);
      CHECK(ran.training.spent.at(i).Sum() == outcome.end - outcome.first_start);
      failures += outcome.failures;
    }
    for (const auto& [cause, count] : ran.run.interruptions) by_cause += count;
    CHECK(failures == by_cause);  // each node has one task
    CHECK(failures > 20);
    CHECK(by_cause <= ran.run.strikes);
    if (ends.empty()) interruptions = by_cause;
    ends.push_back(ran.run.outcomes[0].end);
    if (ends.size() == 4) CHECK(by_cause == interruptions);
  }
  CHECK(ends[0] == ends[3]);
  CHECK(ends[0] != ends[1]);
}

TEST_CASE("strikes have their rates, whatever the size of the cluster") {
  const FaultModel model = Model(kManyFaults);
  StrikeSequence strikes(model, 1000, 7);
  std::vector<int64_t> count(3);
  while (strikes.next().time < absl::Hours(240)) {
    CHECK(strikes.next().node < 1000);
    ++count[strikes.next().cause];
    strikes.Pop();
  }
  // 6, 3 and 3 a day for 10 nodes, 10 days, 100 times as many nodes.
  CHECK(static_cast<double>(count[0]) == Approx(6000).margin(400));
  CHECK(static_cast<double>(count[1]) == Approx(3000).margin(300));
  CHECK(static_cast<double>(count[2]) == Approx(3000).margin(300));
}

TEST_CASE("faults with values that make no sense are refused, with their path") {
  const std::pair<const char*, const char*> cases[] = {
      {"{period: 1h, causes: [{name: a, count: 1, kind: TASK}]}", "nodes: must be above 0"},
      {"{nodes: 1, causes: [{name: a, count: 1, kind: TASK}]}", "period: must be above 0"},
      {"{nodes: 1, period: 1h}", "causes: must not be empty"},
      {"{nodes: 1, period: 1h, causes: [{count: 1, kind: TASK}]}", "causes[0].name: must be given"},
      {"{nodes: 1, period: 1h, causes: [{name: a, kind: TASK}]}",
       "causes[0].count: must be above 0, and at most 1e9"},
      {"{nodes: 1, period: 1h, causes: [{name: a, count: 1}]}",
       "causes[0].kind: must be NODE, TASK or HANG"},
      {"{nodes: 1, period: 1h, causes: [{name: a, count: 1, kind: NODE}]}",
       "causes[0].repair: must be above 0 for NODE"},
      {"{nodes: 1, period: 1h, causes: [{name: a, count: 1, kind: HANG, repair: 1h}]}",
       "causes[0].repair: is for NODE only"},
      {"{nodes: 1, period: 1h, causes: [{name: a, count: 1, kind: TASK}, {name: a, count: 1, kind: "
       "TASK}]}",
       "causes[1].name: is repeated"}};
  for (const auto& [text, error] : cases) {
    sim::v1::Faults faults;
    INFO(text);
    REQUIRE(ReadYaml(text, "faults.yaml", &faults).ok());
    CHECK(ToFaultModel(faults).status().message() == error);
  }
  const FaultModel often =
      Model("{nodes: 1, period: 1s, causes: [{name: a, count: 1, kind: TASK}]}");
  Workload workload;
  workload.jobs = {GpuJob(1, kSecond, 1)};
  const auto documents = ReadScenarios("nodes: [{name: 'n[0-1]', gpus: 1}]\n", "cluster.yaml");
  TrainingProgress progress(workload, {TrainingCosts()});
  ReplayOptions options;
  options.progress = &progress;
  options.faults = &often;
  CHECK(Replay(workload, documents->front().scenario, options).status().message() ==
        "faults: more than one a second on 2 nodes");
}

Workload FromCsv(const std::string& text) {
  const auto columns = ParseColumns(
      "submit=submit,run=run,class=class,checkpoint_interval=every,checkpoint_cost=cost,"
      "restart_cost=restart",
      /*timed=*/true);
  REQUIRE(columns.ok());
  const auto workload = ReadCsv(text, "jobs.csv", *columns);
  INFO(workload.status().ToString());
  REQUIRE(workload.ok());
  return *workload;
}

TEST_CASE("costs come from the job, from its class, or from the entry for all others") {
  const Workload workload = FromCsv(
      "submit,run,class,every,cost,restart\n0,10,big,,,\n1,10,big,60,1,2\n2,10,,,,\n3,10,odd,,,"
      "7\n");
  sim::v1::Scenario scenario;
  REQUIRE(ReadYaml("training: [{checkpointInterval: 10m, restartCost: 3m}, {name: big, "
                   "checkpointInterval: 30s, checkpointCost: 1s}]",
                   "config.yaml", &scenario)
              .ok());
  REQUIRE(CheckTraining(scenario.training()).ok());
  const auto costs = CostsOf(scenario.training(), absl::InfiniteDuration(), workload);
  REQUIRE(costs.ok());
  const auto text = [&](size_t i) {
    const TrainingCosts& one = (*costs)[i];
    return absl::StrCat(absl::FormatDuration(one.interval), " ",
                        absl::FormatDuration(one.checkpoint), " ",
                        absl::FormatDuration(one.restart));
  };
  CHECK(text(0) == "30s 1s 0");
  CHECK(text(1) == "1m 1s 2s");
  CHECK(text(2) == "10m 0 3m");
  CHECK(text(3) == "10m 0 7s");
  scenario.mutable_training()->DeleteSubrange(0, 1);
  CHECK(CostsOf(scenario.training(), absl::InfiniteDuration(), workload).status().message() ==
        "job-4: training has no entry for the class \"odd\"; known: big");
  const auto none = CostsOf({}, absl::Minutes(1), workload);
  REQUIRE(none.ok());
  CHECK((*none)[0].interval == absl::Minutes(1));
}

TEST_CASE("costs out of range are refused, and scenarios do not take any") {
  const std::pair<const char*, const char*> cases[] = {
      {"training: [{checkpointInterval: 0.5s}]", "training[0].checkpoint_interval: below 1s"},
      {"training: [{name: a}, {name: a}]", "training[1].name: is repeated"}};
  for (const auto& [text, error] : cases) {
    sim::v1::Scenario scenario;
    INFO(text);
    REQUIRE(ReadYaml(text, "config.yaml", &scenario).ok());
    CHECK(CheckTraining(scenario.training()).message() == error);
    CHECK(RunScenario(scenario, {}).status().message() ==
          "training: is for berth-sim replay, in a --config");
  }
  const auto columns = ParseColumns("submit=submit,run=run,restart_cost=restart", true);
  CHECK(ReadCsv("submit,run,restart\n0,10,x\n", "jobs.csv", *columns).status().message() ==
        "jobs.csv:2: restart: \"x\" is not a number of seconds, 0 to 1000000000");
  const auto interval = ParseColumns("submit=submit,run=run,checkpoint_interval=every", true);
  CHECK(ReadCsv("submit,run,every\n0,10,0.5\n", "jobs.csv", *interval).status().message() ==
        "jobs.csv:2: a checkpoint interval below 1 s");
}

}  // namespace
}  // namespace berth::replay
