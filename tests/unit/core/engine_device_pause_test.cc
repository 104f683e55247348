// Paused jobs that lend their devices (JobSpec::checkpoints_devices).
#include <catch2/catch.hpp>

#include "core/model/state_editor.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

JobShape Lender(int gpus, int cpu = 10) {
  return {.groups = {{.name = "worker", .cpu = cpu, .gpus = gpus}}, .checkpoints_devices = true};
}

JobShape Keeper(int gpus) { return {.groups = {{.name = "worker", .cpu = 10, .gpus = gpus}}}; }

struct Lending {
  explicit Lending(int gpus = 2) {
    cluster.AddNode("n1", {.cpu = 64, .gpus = gpus});
    job = Run("lender", Lender(gpus));
  }
  JobId Run(const std::string& name, const JobShape& shape) {
    const JobId id = cluster.Submit(name, shape);
    cluster.RunAll(id);
    return id;
  }
  void AskPause(JobId id) {
    cluster.Must(JobSuspended{.id = id, .suspended = true, .freeze = true});
    cluster.Settle();
  }
  void Pause(JobId id, bool lends = true, const std::string& message = "") {
    AskPause(id);
    cluster.Must(TaskReported{.task = {id, 0},
                              .attempt = cluster.job(id).tasks[0].attempt,
                              .state = ReportState::kPaused,
                              .message = message,
                              .devices_lent = lends});
    cluster.Settle();
  }
  void Resume(JobId id) {
    cluster.Must(JobSuspended{.id = id, .suspended = false});
    cluster.Settle();
  }
  const Task& TaskOf(JobId id) const { return cluster.job(id).tasks[0]; }
  PauseState PauseOf(JobId id) const { return TaskOf(id).pause; }
  const Node& node() const { return cluster.node("n1"); }
  int64_t FreeGpus() const {
    return FreeOf(node())[*cluster.state().interner().FindKind("gpu")] / kWhole;
  }
  void CheckSums() const {
    const absl::Status status = CheckConsistency(cluster.state());
    INFO(status.ToString());
    CHECK(status.ok());
  }

  TestCluster cluster;
  JobId job;
};

TEST_CASE("a paused job that lends its devices: others run on them, and it waits for them") {
  Lending run;
  CHECK(run.FreeGpus() == 0);
  run.AskPause(run.job);
  CHECK(run.FreeGpus() == 0);  // until they are known to be free
  run.cluster.Settle();
  run.Pause(run.job);
  CHECK(run.FreeGpus() == 2);
  CHECK(run.node().devices_used.InUse().Empty());
  CHECK(run.node().lent.Count() == 2);
  CHECK(run.TaskOf(run.job).devices.Count() == 2);  // its place
  run.CheckSums();
  const JobId urgent = run.Run("urgent", Keeper(2));
  CHECK(run.cluster.StateOf(urgent) == "Running");
  CHECK(run.FreeGpus() == 0);
  run.Resume(run.job);
  CHECK(run.PauseOf(run.job) == PauseState::kResuming);
  REQUIRE(run.cluster.Why(run.job).size() == 1);
  const WaitReason why = run.cluster.Why(run.job)[0];
  CHECK(why.code == WaitCode::kPauseEnds);
  CHECK(why.resource == "gpu");
  CHECK(why.needed == 2 * kWhole);
  CHECK(why.free == 0);
  CHECK(why.detail == "node n1, n1-gpu-0");
  run.CheckSums();
  // Nobody who comes later gets them.
  const JobId late = run.cluster.Submit("late", Keeper(1));
  run.cluster.Settle();
  run.cluster.Exit(urgent, 0);
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  CHECK_FALSE(run.TaskOf(run.job).devices_lent);
  CHECK(run.cluster.StateOf(late) == "Pending");
  CHECK(run.FreeGpus() == 0);
  CHECK(run.node().lent.Empty());
  run.CheckSums();
}

TEST_CASE("a resumed job keeps others from some of the devices that it waits for") {
  Lending run;
  run.Pause(run.job);
  const JobId half = run.Run("half", Keeper(1));
  run.Resume(run.job);
  CHECK(run.PauseOf(run.job) == PauseState::kResuming);
  CHECK(run.FreeGpus() == 0);  // one is used, one awaited
  CHECK(run.node().awaited.Count() == 2);
  const JobId late = run.cluster.Submit("late", Keeper(1));
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(late) == "Pending");
  run.CheckSums();
  SECTION("it is paused again: others get them") {
    run.AskPause(run.job);
    CHECK(run.PauseOf(run.job) == PauseState::kPaused);
    CHECK(run.cluster.StateOf(late) == "Binding");
  }
  SECTION("it is cancelled: the devices that it lent are not freed twice") {
    run.cluster.Must(JobCancelled{run.job, "enough"});
    run.cluster.Settle();
    CHECK(run.cluster.Tasks(run.job) == "L");
    CHECK(run.cluster.StateOf(late) == "Binding");  // it does not wait for its end
    run.CheckSums();
    run.cluster.GoneAll(run.job);
    CHECK(run.cluster.StateOf(run.job) == "Cancelled");
    CHECK(run.node().devices_used.InUse().Count() == 2);
  }
  run.CheckSums();
  run.cluster.Exit(half, 0);
  run.CheckSums();
}

TEST_CASE("two jobs that lend the same devices take turns") {
  Lending run;
  run.Pause(run.job);
  JobShape shape = Lender(2);
  shape.priority = 5;
  const JobId second = run.Run("second", shape);
  run.Pause(second);
  CHECK(run.FreeGpus() == 2);
  CHECK(run.node().lent.Count() == 2);
  run.CheckSums();
  run.Resume(run.job);
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  run.CheckSums();
  run.Resume(second);
  CHECK(run.PauseOf(second) == PauseState::kResuming);
  run.Pause(run.job);  // in turns: the other goes on
  CHECK(run.PauseOf(second) == PauseState::kRuns);
  CHECK(run.PauseOf(run.job) == PauseState::kPaused);
  run.CheckSums();
  SECTION("of two that wait, the more important one goes first") {
    run.Pause(second);
    const JobId third = run.Run("third", Keeper(2));
    run.Resume(run.job);
    run.Resume(second);
    run.CheckSums();
    run.cluster.Exit(third, 0);
    CHECK(run.PauseOf(second) == PauseState::kRuns);
    CHECK(run.PauseOf(run.job) == PauseState::kResuming);
    run.cluster.Exit(second, 0);
    CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  }
  run.CheckSums();
}

TEST_CASE("a job waits for its CPU and for its devices") {
  Lending run(1);
  run.Pause(run.job);
  const JobId other = run.Run("other", {.groups = {{.cpu = 60}}});
  run.Resume(run.job);
  CHECK(run.PauseOf(run.job) == PauseState::kResuming);
  CHECK(run.cluster.Why(run.job)[0].resource == "cpu");
  CHECK(run.FreeGpus() == 0);
  run.cluster.Exit(other, 0);
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  run.CheckSums();
}

TEST_CASE("a task that could not be saved keeps its devices, and says why") {
  Lending run;
  run.Pause(run.job, false, "2 of its processes have GPUs open");
  CHECK(run.PauseOf(run.job) == PauseState::kPaused);
  CHECK(run.FreeGpus() == 0);
  CHECK(run.cluster.state().TaskMessage({run.job, 0}) == "2 of its processes have GPUs open");
  CHECK(FreeOf(run.node())[kCpu] == 64'000);
  run.CheckSums();
  run.Resume(run.job);
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  CHECK(run.cluster.state().TaskMessage({run.job, 0}).empty());
}

TEST_CASE("saving may take longer than freezing") {
  Lending run;
  run.AskPause(run.job);
  run.cluster.Advance(absl::Minutes(10) - absl::Seconds(1));
  CHECK(run.PauseOf(run.job) == PauseState::kPausing);
  run.cluster.Advance(absl::Seconds(1));
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  CHECK(run.cluster.status(run.job).message ==
        "it was not paused: worker-0 on n1 was not frozen within 10m");
}

TEST_CASE("a node with a lent device that fails: its task leaves, whoever uses it") {
  Lending run;
  run.Pause(run.job);
  const JobId urgent = run.Run("urgent", Keeper(1));
  NodeSpec spec = run.node().spec;
  spec.devices[1].unhealthy = true;
  run.cluster.Must(
      NodeRegistered{.id = run.cluster.node_id("n1"), .spec = spec, .epoch = 2, .agent_id = "n1"});
  run.cluster.Settle();
  CHECK(run.cluster.Tasks(run.job) == "L");
  CHECK(run.cluster.Tasks(urgent) == "R");
  run.CheckSums();
  run.cluster.GoneAll(run.job);
  INFO(run.cluster.Tasks(run.job) << " " << run.cluster.status(run.job).message);
  CHECK(run.cluster.StateOf(run.job) == "Suspended");
  run.CheckSums();
}

TEST_CASE("a lent device that is missing at a registration stays known, at its new position") {
  Lending run;
  run.Pause(run.job);
  NodeSpec spec = run.node().spec;
  spec.devices.erase(spec.devices.begin());
  const NodeSpec kept = WithUsedDevices(run.node(), spec);
  CHECK(kept.devices.size() == 2);
  CHECK(kept.devices[0].unhealthy);
  run.cluster.Must(
      NodeRegistered{.id = run.cluster.node_id("n1"), .spec = kept, .epoch = 2, .agent_id = "n1"});
  run.CheckSums();
}

TEST_CASE("a lost node with a task that lends its devices") {
  Lending run;
  run.Pause(run.job);
  const JobId urgent = run.Run("urgent", Keeper(2));
  run.cluster.Must(NodeSilenced{run.cluster.node_id("n1")});
  run.cluster.Settle();
  run.CheckSums();
  run.cluster.Must(NodeFenced{run.cluster.node_id("n1")});
  run.cluster.Settle();
  CHECK(run.cluster.StateOf(run.job) == "Suspended");
  CHECK(run.cluster.Tasks(urgent) == ".");
  CHECK(run.node().lent.Empty());
  run.CheckSums();
}

TEST_CASE("a pause that lasts too long, with devices lent") {
  Lending run;
  run.Pause(run.job);
  const JobId urgent = run.Run("urgent", Keeper(2));
  run.cluster.Advance(absl::Hours(1));
  CHECK(run.cluster.Tasks(run.job) == "L");
  CHECK(run.TaskOf(run.job).devices_lent);  // its end frees nothing
  run.cluster.GoneAll(run.job);
  CHECK(run.FreeGpus() == 0);
  run.CheckSums();
  run.Resume(run.job);  // from the queue
  CHECK(run.cluster.StateOf(run.job) == "Pending");
  run.cluster.Exit(urgent, 0);
  run.cluster.RunAll(run.job);
  CHECK(run.cluster.StateOf(run.job) == "Running");
  run.CheckSums();
}

TEST_CASE("devices are lent only whole, and by jobs that allow it") {
  TestCluster cluster;
  cluster.AddNode("n1", {.cpu = 64, .gpus = 2, .tasks_per_gpu = 4});
  const auto lends = [&](const std::string& name, JobShape shape) {
    const JobId id = cluster.Submit(name, shape);
    cluster.RunAll(id);
    cluster.Must(JobSuspended{.id = id, .suspended = true, .freeze = true});
    cluster.Settle();
    return cluster
        .Try(TaskReported{
            .task = {id, 0}, .attempt = 1, .state = ReportState::kPaused, .devices_lent = true})
        .ok();
  };
  CHECK_FALSE(lends("keeps", Keeper(1)));
  CHECK_FALSE(lends("none", {.groups = {{.cpu = 1}}, .checkpoints_devices = true}));
  CHECK_FALSE(lends("share", {.groups = {{.cpu = 1, .share = 500}}, .checkpoints_devices = true}));
  const JobId id = cluster.Submit("runs", Lender(1, 1));
  cluster.RunAll(id);
  CHECK_FALSE(
      cluster
          .Try(TaskReported{
              .task = {id, 0}, .attempt = 1, .state = ReportState::kPaused, .devices_lent = true})
          .ok());  // it was not told to pause
}

TEST_CASE("a job is nominated nowhere that a resumed one waits for") {
  Lending run;
  run.Pause(run.job);
  const JobId urgent = run.Run("urgent", Keeper(2));
  run.cluster.Must(JobCancelled{urgent, "enough"});
  run.cluster.Settle();
  const JobId next = run.cluster.Submit("next", Keeper(2));
  run.cluster.Settle();
  CHECK(run.TaskOf(next).state == TaskState::kNominated);  // for what urgent leaves
  run.Resume(run.job);
  CHECK(run.TaskOf(next).state == TaskState::kPending);
  run.CheckSums();
  run.cluster.GoneAll(urgent);
  CHECK(run.PauseOf(run.job) == PauseState::kRuns);
  CHECK(run.TaskOf(next).state == TaskState::kPending);
  run.CheckSums();
}

// A job that may be paused runs on the only node, and an urgent one needs its GPUs.
struct GpuContest : TestCluster {
  explicit GpuContest(bool checkpoints_devices = true)
      : TestCluster(testing::PoliciesWith({"allocate", "preempt"})) {
    AddNode("n1", {.cpu = 64, .gpus = 2, .checkpoints_devices = checkpoints_devices});
    JobShape shape = Lender(2);
    shape.preemptible = true;
    shape.preempt_mode = PreemptMode::kPause;
    low = Submit("low", shape);
    RunAll(low);
    Advance(absl::Minutes(1));
  }
  JobId Urgent(int gpus = 2) {
    JobShape shape = Keeper(gpus);
    shape.priority = 5;
    const JobId id = Submit("urgent", shape);
    Settle();
    return id;
  }
  void ReportFrozen(bool lends) {
    Must(TaskReported{.task = {low, 0},
                      .attempt = job(low).tasks[0].attempt,
                      .state = ReportState::kPaused,
                      .devices_lent = lends});
    Settle();
  }
  PauseState PauseOfLow() const { return job(low).tasks[0].pause; }
  void CheckSums() const {
    const absl::Status status = CheckConsistency(state());
    INFO(status.ToString());
    CHECK(status.ok());
  }
  JobId low;
};

TEST_CASE("preemption counts on devices that the victim lends") {
  GpuContest c;
  const JobId urgent = c.Urgent();
  CHECK(c.PauseOfLow() == PauseState::kPausing);
  CHECK(c.status(c.low).evictions == 0);
  CHECK(c.StateOf(urgent) == "Pending");
  CHECK(c.node("n1").devices_leaving.whole.Count() == 2);
  c.CheckSums();
  c.ReportFrozen(/*lends=*/true);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  CHECK(c.Where(urgent) == "n1");
  CHECK(c.PauseOfLow() == PauseState::kResuming);
  c.CheckSums();
  c.Advance(absl::Minutes(10));
  c.Exit(urgent, 0);
  CHECK(c.PauseOfLow() == PauseState::kRuns);
  CHECK(c.status(c.low).starts == 1);
  CHECK(c.job(c.low).tasks[0].devices.Count() == 2);
  c.CheckSums();
}

TEST_CASE("a victim whose devices could not be saved is stopped for the other job") {
  GpuContest c;
  const JobId urgent = c.Urgent();
  c.ReportFrozen(/*lends=*/false);
  CHECK(c.Tasks(c.low) == "L");
  CHECK(c.status(c.low).eviction.beneficiary == urgent);
  CHECK(c.status(c.low).eviction.detail == "what it has on its devices could not be saved");
  c.CheckSums();
  c.GoneAll(c.low);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  c.CheckSums();
}

TEST_CASE("a victim that keeps its devices stays frozen if only its CPU is needed") {
  GpuContest c;
  JobShape shape = {.priority = 5, .groups = {{.cpu = 60}}};
  const JobId urgent = c.Submit("urgent", shape);
  c.Settle();
  c.ReportFrozen(/*lends=*/false);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  CHECK(c.status(c.low).evictions == 0);
  c.CheckSums();
}

TEST_CASE("where a node saves no devices, preemption stops the victim at once") {
  GpuContest c(/*checkpoints_devices=*/false);
  c.Urgent();
  CHECK(c.Tasks(c.low) == "L");
}

TEST_CASE("jobs that lend their devices take turns on them") {
  TestCluster c(testing::PoliciesWith({"allocate", "preempt"}));
  c.AddNode("n1", {.cpu = 64, .gpus = 1});
  c.AddQueue("q", testing::QueueShape{.slice = absl::Minutes(5)});
  JobShape shape = Lender(1);
  shape.queue = "q";
  shape.preemptible = true;
  shape.preempt_mode = PreemptMode::kPause;
  const JobId a = c.Submit("a", shape);
  c.RunAll(a);
  const JobId b = c.Submit("b", shape);
  c.Settle();
  std::string turns;
  const auto pause_of = [&](JobId id) { return c.job(id).tasks[0].pause; };
  for (int minute = 0; minute < 40; ++minute) {
    for (const JobId id : {a, b}) {
      if (pause_of(id) != PauseState::kPausing) continue;
      c.Must(TaskReported{.task = {id, 0},
                          .attempt = c.job(id).tasks[0].attempt,
                          .state = ReportState::kPaused,
                          .devices_lent = true});
      c.Settle();
    }
    if (c.Tasks(b) != "R" && c.StateOf(b) == "Binding") c.RunAll(b);
    const bool a_runs = pause_of(a) == PauseState::kRuns;
    const bool b_runs = c.Tasks(b) == "R" && pause_of(b) == PauseState::kRuns;
    CHECK_FALSE((a_runs && b_runs));
    if (minute % 5 == 4) turns += a_runs ? 'a' : b_runs ? 'b' : '-';
    CHECK(CheckConsistency(c.state()).ok());
    c.Advance(absl::Minutes(1));
  }
  INFO(turns);
  CHECK(turns.find("ab") != std::string::npos);
  CHECK(turns.find("ba") != std::string::npos);
  CHECK(turns.find("aaa") == std::string::npos);
  CHECK(turns.find("bbb") == std::string::npos);
  CHECK(c.status(a).starts == 1);
}

}  // namespace
}  // namespace berth
