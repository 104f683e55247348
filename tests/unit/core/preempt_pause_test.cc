// Victims that are frozen instead of stopped: JobSpec::preempt_mode.
#include <catch2/catch.hpp>

#include "core/engine/explain/dry_run.h"
#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

constexpr int64_t kGib = int64_t{1} << 30;

JobShape Low(int tasks, int64_t memory_gib = 100) {
  return {.groups = {{.replicas = tasks, .cpu = 40, .memory_gib = memory_gib}},
          .preemptible = true,
          .preempt_mode = PreemptMode::kPause};
}
JobShape High(int tasks, int64_t memory_gib = 100) {
  return {.priority = 5, .groups = {{.replicas = tasks, .cpu = 40, .memory_gib = memory_gib}}};
}

// Nodes of 64 cores and 512 GiB, and a victim that runs on all of them.
struct Contest : TestCluster {
  explicit Contest(int nodes = 1, JobShape victim = Low(1), bool freezes = true)
      : TestCluster(testing::PoliciesWith({"allocate", "reclaim", "preempt"})) {
    AddNodes("n", nodes, {.freezes = freezes});
    low = Submit("low", victim);
    RunAll(low);
    REQUIRE(StateOf(low) == "Running");
    Advance(absl::Minutes(1));
  }
  JobId Urgent(const JobShape& shape = High(1), const std::string& name = "urgent") {
    const JobId id = Submit(name, shape);
    Settle();
    return id;
  }
  void ReportFrozen(JobId id) {
    for (uint32_t i = 0; i < job(id).tasks.size(); ++i) {
      if (job(id).tasks[i].pause == PauseState::kPausing) Report(id, i, ReportState::kPaused);
    }
    Settle();
  }
  // One letter a task: Running, being Frozen, frozen (#), waiting for its CPU (~).
  std::string Pauses(JobId id) const {
    std::string letters;
    for (const Task& task : job(id).tasks) letters += "RF#~"[static_cast<size_t>(task.pause)];
    return letters;
  }
  void Check() const {
    const absl::Status status = CheckConsistency(state());
    INFO(status.ToString());
    CHECK(status.ok());
    state().nodes().ForEach(
        [](NodeId, const Node& node) { CHECK(node.allocated.FitsIn(node.capacity)); });
  }
  JobId low;
};

TEST_CASE("a victim that asks for it is frozen, and goes on once its place is free") {
  Contest c(2, Low(2));
  const JobId urgent = c.Urgent();
  CHECK(c.Pauses(c.low) == "FF");  // both or none
  CHECK(c.Tasks(c.low) == "RR");
  CHECK(c.StateOf(urgent) == "Pending");
  CHECK(c.status(c.low).evictions == 0);
  CHECK(c.status(c.low).pause.beneficiary == urgent);
  CHECK(c.status(c.low).pause.detail == "its priority 0 is below 5");
  c.Report(c.low, 0, ReportState::kPaused);
  c.Report(c.low, 1, ReportState::kPaused);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  CHECK(c.Pauses(c.low) == "~~");  // the place of one is the other's
  const std::vector<WaitReason> why = c.Why(c.low);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kPauseEnds);
  CHECK(why[0].job == urgent);
  CHECK(why[0].needed == 40'000);
  CHECK(why[0].detail ==
        "node " + c.Where(urgent) + "; paused for job urgent: its priority 0 is below 5");
  c.Check();
  c.Advance(absl::Minutes(10));
  CHECK(RunTime(c.status(c.low), c.now()) == absl::Minutes(1));
  c.Exit(urgent, 0);
  CHECK(c.Pauses(c.low) == "RR");
  CHECK(c.status(c.low).starts == 1);
  CHECK(c.status(c.low).pause.beneficiary == JobId{});
  c.Advance(absl::Minutes(2));
  CHECK(RunTime(c.status(c.low), c.now()) == absl::Minutes(3));
  c.Check();
}

TEST_CASE("a victim is stopped where a pause does not suffice") {
  SECTION("its memory is needed") {
    Contest c(1, Low(1, 300));
    const JobId urgent = c.Urgent(High(1, 300));
    CHECK(c.Tasks(c.low) == "L");
    CHECK(c.status(c.low).eviction.beneficiary == urgent);
  }
  SECTION("its devices are needed") {
    JobShape with_gpu = Low(1);
    with_gpu.groups[0].gpus = 1;
    TestCluster c(testing::PoliciesWith({"allocate", "preempt"}));
    c.AddNodes("n", 1, {.gpus = 1});
    const JobId low = c.Submit("low", with_gpu);
    c.RunAll(low);
    JobShape other = High(1);
    other.groups[0].gpus = 1;
    c.Submit("urgent", other);
    c.Settle();
    CHECK(c.Tasks(low) == "L");
  }
  SECTION("its node cannot freeze tasks") {
    Contest c(1, Low(1), /*freezes=*/false);
    c.Urgent();
    CHECK(c.Tasks(c.low) == "L");
  }
  SECTION("it does not ask for it") {
    JobShape plain = Low(1);
    plain.preempt_mode = PreemptMode::kRequeue;
    Contest c(1, plain);
    c.Urgent();
    CHECK(c.Tasks(c.low) == "L");
  }
  SECTION("its queue may not hold both") {
    TestCluster c(testing::PoliciesWith({"allocate", "preempt"}));
    c.AddNodes("n", 1);
    c.AddQueue("q", {.limit = {{"cpu", 60'000}}});
    JobShape low = Low(1), high = High(1);
    low.queue = high.queue = "q";
    const JobId victim = c.Submit("low", low);
    c.RunAll(victim);
    c.Submit("urgent", high);
    c.Settle();
    CHECK(c.Tasks(victim) == "L");
  }
  SECTION("its queue may run only one job") {
    TestCluster c(testing::PoliciesWith({"allocate", "preempt"}));
    c.AddNodes("n", 1);
    c.AddQueue("q", {.max_running_jobs = 1});
    JobShape low = Low(1), high = High(1);
    low.queue = high.queue = "q";
    const JobId victim = c.Submit("low", low);
    c.RunAll(victim);
    c.Submit("urgent", high);
    c.Settle();
    CHECK(c.Tasks(victim) == "R");
    CHECK_FALSE(IsPaused(c.status(victim)));
  }
  SECTION("another queue is entitled to the room") {
    TestCluster c(testing::PoliciesWith({"allocate", "reclaim", "preempt"}));
    c.AddNodes("n", 1);
    c.AddQueue("a");
    c.AddQueue("b");
    JobShape low = Low(1), other = High(1);
    low.queue = "a";
    low.groups[0].cpu = 60;
    other.queue = "b";
    other.groups[0].cpu = 30;
    const JobId victim = c.Submit("low", low);
    c.RunAll(victim);
    c.Submit("entitled", other);
    c.Settle();
    CHECK(c.Tasks(victim) == "L");
    CHECK(c.status(victim).eviction.reason == ReleaseReason::kReclaimed);
  }
}

TEST_CASE("of several victims those are frozen beside which the gang fits") {
  Contest c(2, Low(1, 500));  // takes one node, and all its memory
  const JobId small = c.Submit("small", Low(1, 10));
  c.RunAll(small);
  REQUIRE(c.StateOf(small) == "Running");
  c.Advance(absl::Minutes(1));
  const JobId urgent = c.Urgent(High(2, 100));
  CHECK(c.Tasks(c.low) == "L");
  CHECK(c.Pauses(small) == "F");
  c.GoneAll(c.low);
  c.ReportFrozen(small);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  c.Check();
}

TEST_CASE("surplus tasks are stopped, and the rest of the job is frozen only as a whole") {
  JobShape elastic = Low(2);
  elastic.groups[0].min_available = 1;
  Contest c(2, elastic);
  REQUIRE(c.Tasks(c.low) == "RR");
  c.Urgent();
  CHECK(c.Tasks(c.low) == "RL");
  CHECK(c.Pauses(c.low) == "RR");
  c.Check();
}

TEST_CASE("nobody resumes over the head of the job for which it was paused") {
  Contest c;
  const JobId urgent = c.Urgent();
  SECTION("while that one waits for its place") {
    c.Must(NodeSteered{.id = c.node_id("n1"), .cordoned = true});  // it loses the place
    c.Settle();
    CHECK(c.StateOf(urgent) == "Pending");
    CHECK(c.Pauses(c.low) == "R");
    c.Check();
  }
  SECTION("when that one is cancelled before the tasks are frozen") {
    c.Must(JobCancelled{urgent, "not needed"});
    c.Settle();
    CHECK(c.Pauses(c.low) == "R");
    CHECK(c.Tasks(c.low) == "R");
    c.Check();
  }
  SECTION("when that one is cancelled afterwards") {
    c.ReportFrozen(c.low);
    c.RunAll(urgent);
    REQUIRE(c.StateOf(urgent) == "Running");
    c.Must(JobCancelled{urgent, "not needed"});
    c.Settle();
    CHECK(c.Pauses(c.low) == "~");
    c.GoneAll(urgent);
    CHECK(c.Pauses(c.low) == "R");
    c.Check();
  }
  SECTION("while its user holds it too") {
    c.ReportFrozen(c.low);
    c.RunAll(urgent);
    c.Must(JobSuspended{.id = c.low, .suspended = true, .freeze = true});
    c.Settle();
    CHECK(c.Pauses(c.low) == "#");
    c.Exit(urgent, 0);
    CHECK(c.Pauses(c.low) == "#");
    c.Must(JobSuspended{.id = c.low, .suspended = false});
    c.Settle();
    CHECK(c.Pauses(c.low) == "R");
    c.Check();
  }
}

TEST_CASE("a job that restarts in its places keeps those who were paused for it away") {
  PolicyConfig config;
  config.actions = {"allocate", "preempt"};
  config.lifecycle.restart_hold = absl::Minutes(5);
  TestCluster c(*Policies::Create(config));
  c.AddNodes("n", 1);
  const JobId low = c.Submit("low", Low(1));
  c.RunAll(low);
  JobShape shape = High(1);
  shape.max_retries = 3;
  shape.policies = {{.event = PolicyEvent::kTaskFailed, .action = PolicyAction::kRestartJob}};
  const JobId urgent = c.Submit("urgent", shape);
  c.Settle();
  c.Report(low, 0, ReportState::kPaused);
  c.RunAll(urgent);
  REQUIRE(c.StateOf(urgent) == "Running");
  c.Exit(urgent, 0, 1);
  if (AwaitsPlaces(c.job(urgent))) {
    CHECK(c.job(low).tasks[0].pause == PauseState::kPaused);
  }
  c.Advance(absl::Seconds(2));
  if (BeingFrozen(c.job(low).tasks[0])) c.Report(low, 0, ReportState::kPaused);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  CHECK(c.Tasks(low) == "R");
  CHECK(Frozen(c.job(low).tasks[0]));
  CHECK(CheckConsistency(c.state()).ok());
}

TEST_CASE("a pause for another job that lasts too long becomes a requeue") {
  Contest c;
  const JobId urgent = c.Urgent();
  c.ReportFrozen(c.low);
  c.RunAll(urgent);
  c.Advance(absl::Hours(1) - absl::Seconds(1));
  CHECK(c.Pauses(c.low) == "~");
  c.Advance(absl::Seconds(1));
  CHECK(c.Tasks(c.low) == "L");
  CHECK(c.status(c.low).eviction.beneficiary == urgent);
  CHECK(c.status(c.low).message == "evicted for job urgent: it was paused for it for 1h");
  c.GoneAll(c.low);
  CHECK(c.StateOf(c.low) == "Pending");
  c.Exit(urgent, 0);
  c.RunAll(c.low);
  CHECK(c.StateOf(c.low) == "Running");
  CHECK(c.status(c.low).starts == 2);
  c.Check();
}

TEST_CASE("a victim that is not frozen in time is stopped") {
  Contest c;
  const JobId urgent = c.Urgent();
  c.Advance(absl::Seconds(30));
  CHECK(c.Tasks(c.low) == "L");
  CHECK(c.status(c.low).message ==
        "evicted for job urgent: it was not paused: w-0 on n1 was not frozen within 30s");
  c.GoneAll(c.low);
  c.RunAll(urgent);
  CHECK(c.StateOf(urgent) == "Running");
  c.Check();
}

TEST_CASE("one after the other: the beneficiary is paused for a third job") {
  Contest c;
  JobShape middle = High(1);
  middle.preemptible = true;
  middle.preempt_mode = PreemptMode::kPause;
  const JobId second = c.Urgent(middle, "second");
  c.ReportFrozen(c.low);
  c.RunAll(second);
  c.Advance(absl::Minutes(1));
  JobShape highest = High(1);
  highest.priority = 9;
  const JobId third = c.Urgent(highest, "third");
  CHECK(c.Pauses(second) == "F");
  CHECK(c.Pauses(c.low) == "#");  // it does not wait for the CPU while the third one does
  c.ReportFrozen(second);
  c.RunAll(third);
  CHECK(c.StateOf(third) == "Running");
  c.Check();
  c.Exit(third, 0);
  CHECK(c.Pauses(second) == "R");  // in the order of the queue
  CHECK(c.Pauses(c.low) == "~");
  c.Check();
  c.Exit(second, 0);
  CHECK(c.Pauses(c.low) == "R");
  c.Check();
}

TEST_CASE("what a frozen job keeps is taken by stopping it") {
  Contest c(1, Low(1, 300));
  const JobId urgent = c.Urgent(High(1, 100));
  c.ReportFrozen(c.low);
  c.RunAll(urgent);
  REQUIRE(c.StateOf(urgent) == "Running");
  JobShape large = High(1, 300);
  large.groups[0].cpu = 10;
  const JobId third = c.Urgent(large, "third");
  CHECK(c.Tasks(c.low) == "L");
  c.GoneAll(c.low);
  c.RunAll(third);
  CHECK(c.StateOf(third) == "Running");
  CHECK(FreeOf(c.node("n1"))[kMemory] == 112 * kGib);
  c.Check();
}

TEST_CASE("a dry run names whom it would pause") {
  Contest c;
  const auto plan = DryRun(c.state(), c.policies(),
                           testing::MakeJob("urgent", c.job(c.low).queue, High(1)), c.now());
  REQUIRE(plan.ok());
  CHECK(plan->evictions.empty());
  REQUIRE(plan->pauses.size() == 1);
  CHECK(plan->pauses[0].job == c.low);
  CHECK(c.Pauses(c.low) == "R");
}

TEST_CASE("pauses for others that do not fit are refused") {
  Contest c;
  CHECK_FALSE(c.Try(TasksPaused{.job = c.low, .tasks = {0}, .beneficiary = c.low}).ok());
}

}  // namespace
}  // namespace berth
