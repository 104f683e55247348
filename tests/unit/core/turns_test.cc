// Jobs of a queue with a slice take turns on the same places (core/actions/turns.h).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

constexpr Duration kSlice = absl::Minutes(5);

JobShape Sharer(int tasks = 1, int64_t memory_gib = 100) {
  return {.queue = "q",
          .groups = {{.replicas = tasks, .cpu = 40, .memory_gib = memory_gib}},
          .preemptible = true,
          .preempt_mode = PreemptMode::kPause};
}

struct Sliced : TestCluster {
  explicit Sliced(int nodes = 1, Duration slice = kSlice)
      : TestCluster(testing::PoliciesWith({"allocate", "reclaim", "preempt"})) {
    AddNodes("n", nodes);
    AddQueue("q", {.slice = slice});
  }
  // What agents do at once: freeze, prepare, start.
  void Work() {
    for (int round = 0; round < 6; ++round) {
      Settle();
      for (JobId id{1}; id < state().next_job_id(); ++id.value) {
        const Job* found = state().jobs().Find(id);
        for (uint32_t i = 0; found != nullptr && i < found->tasks.size(); ++i) {
          const Task& task = found->tasks[i];
          if (BeingFrozen(task)) Report(id, i, ReportState::kPaused);
          if (task.state == TaskState::kBound) Report(id, i, ReportState::kPrepared);
          if (task.state == TaskState::kStarting) Report(id, i, ReportState::kRunning);
        }
      }
    }
    Settle();
    CheckSums();
  }
  void Pass(Duration time) {
    PassTo(now() + time);
    Work();
  }
  bool Runs(JobId id) const {
    const Job& one = job(id);
    return one.status.state == JobState::kRunning && !IsPaused(one.status);
  }
  // The names of those that run.
  std::string Running() const {
    std::string names;
    state().jobs().ForEach([&](JobId id, const Job& one) {
      if (Runs(id)) names += one.name;
    });
    return names;
  }
  void CheckSums() const {
    const absl::Status status = CheckConsistency(state());
    INFO(status.ToString());
    REQUIRE(status.ok());
    state().nodes().ForEach(
        [](NodeId, const Node& node) { REQUIRE(node.allocated.FitsIn(node.capacity)); });
  }
};

TEST_CASE("two jobs of equal priority take turns, slice by slice") {
  Sliced c;
  const JobId a = c.Submit("a", Sharer());
  c.Work();
  CHECK(c.Running() == "a");
  c.Pass(absl::Minutes(1));
  const JobId b = c.Submit("b", Sharer());
  c.Work();
  CHECK(c.Running() == "a");
  CHECK(c.StateOf(b) == "Pending");
  c.Pass(kSlice - absl::Minutes(1) - absl::Seconds(1));
  CHECK(c.Running() == "a");
  c.Pass(absl::Seconds(1));
  CHECK(c.Running() == "b");
  CHECK(c.status(a).pause.beneficiary == b);
  CHECK(c.status(a).pause.detail == "its turn of 5m is over");
  for (const char* whose : {"a", "b", "a", "b"}) {
    c.Pass(kSlice - absl::Seconds(1));
    CHECK(c.Running() != whose);
    c.Pass(absl::Seconds(1));
    CHECK(c.Running() == whose);
  }
  CHECK(c.status(a).starts == 1);
  CHECK(c.status(b).starts == 1);
  CHECK(c.status(a).evictions + c.status(b).evictions == 0);
  CHECK(RunTime(c.status(a), c.now()) == 3 * kSlice);
  c.Exit(b, 0);
  c.Work();
  CHECK(c.Running() == "a");
  c.Pass(absl::Hours(2));
  CHECK(c.Running() == "a");
}

TEST_CASE("planning wakes up when a turn ends") {
  Sliced c;
  const JobId a = c.Submit("a", Sharer());
  c.Work();
  c.Pass(absl::Minutes(1));
  c.Submit("b", Sharer());
  c.Work();
  const Plan plan = c.Cycle();
  CHECK(plan.decisions.empty());
  CHECK(plan.wake_at == c.status(a).start + kSlice);  // b may enter
  c.PassTo(plan.wake_at);
  c.Work();
  CHECK(c.Running() == "b");
  const Time began = c.now();
  for (int i = 0; i < 5 && c.Running() == "b"; ++i) {
    c.PassTo(c.Cycle().wake_at);
    c.Work();
  }
  CHECK(c.Running() == "a");
  CHECK(c.now() == began + kSlice);
}

TEST_CASE("nobody starves: each of several jobs runs as often as the others") {
  Sliced c;
  std::vector<JobId> jobs;
  for (const char* name : {"a", "b", "c", "d"}) {
    jobs.push_back(c.Submit(name, Sharer()));
    c.Work();
    c.Pass(absl::Seconds(7));
  }
  std::map<char, int> turns;
  std::string order;
  for (int slice = 0; slice < 40; ++slice) {
    const std::string running = c.Running();
    REQUIRE(running.size() == 1);
    ++turns[running[0]];
    order += running;
    c.Pass(kSlice);
  }
  INFO(order);
  CHECK(turns.size() == 4);
  for (const auto& [name, count] : turns) CHECK(std::abs(count - 10) <= 3);
  for (size_t i = 8; i + 4 <= order.size(); ++i) {  // strictly in turn, once all have entered
    CHECK(std::set<char>(order.begin() + static_cast<ptrdiff_t>(i),
                         order.begin() + static_cast<ptrdiff_t>(i) + 4)
              .size() == 4);
  }
}

TEST_CASE("a gang takes its turn on all its nodes at once") {
  Sliced c(2);
  const JobId gang = c.Submit("g", Sharer(2));
  c.Work();
  const JobId x = c.Submit("x", Sharer());
  const JobId y = c.Submit("y", Sharer());
  c.Work();
  CHECK(c.Running() == "g");
  c.Pass(kSlice);
  CHECK(c.Running() == "xy");
  CHECK(IsPaused(c.status(gang)));
  c.Pass(kSlice);
  CHECK(c.Running() == "g");
  c.Pass(kSlice);
  CHECK(c.Running() == "xy");
  c.Exit(x, 0);
  c.Work();
  CHECK(c.Running() == "y");
  c.Pass(kSlice);
  CHECK(c.Running() == "g");
  CHECK(IsPaused(c.status(y)));
}

TEST_CASE("no turns where they are not asked for, or where memory does not suffice") {
  JobShape first = Sharer(), second = Sharer();
  Duration slice = kSlice;
  SECTION("the queue has no slice") { slice = absl::ZeroDuration(); }
  SECTION("the one that runs is not to be paused") { first.preempt_mode = PreemptMode::kRequeue; }
  SECTION("the one that waits is not to be paused") { second.preempt_mode = PreemptMode::kRequeue; }
  SECTION("memory of both does not fit") { second.groups[0].memory_gib = 450; }
  SECTION("the one that runs could shrink") {
    first.groups.push_back({.name = "more", .min_available = 0, .cpu = 1});
  }
  SECTION("the one that runs is more important") { first.priority = 1; }
  Sliced c(1, slice);
  const JobId a = c.Submit("a", first);
  c.Work();
  const JobId b = c.Submit("b", second);
  c.Work();
  c.Pass(kSlice);
  c.Pass(kSlice);
  CHECK(c.Running() == "a");
  CHECK(c.StateOf(b) == "Pending");
  CHECK(c.status(a).evictions == 0);
}

TEST_CASE("a job of higher priority goes before all turns, and they go on after it") {
  Sliced c;
  const JobId a = c.Submit("a", Sharer());
  c.Work();
  const JobId b = c.Submit("b", Sharer());
  c.Work();
  c.Pass(kSlice);
  REQUIRE(c.Running() == "b");
  JobShape urgent = Sharer();
  urgent.priority = 5;
  const JobId u = c.Submit("u", urgent);
  c.Work();
  CHECK(c.Running() == "u");
  c.Pass(2 * kSlice);
  CHECK(c.Running() == "u");
  c.Exit(u, 0);
  c.Work();
  const std::string next = c.Running();
  CHECK((next == "a" || next == "b"));
  c.Pass(kSlice);
  CHECK(c.Running() == (next == "a" ? "b" : "a"));
  CHECK(c.status(a).starts + c.status(b).starts == 2);
}

TEST_CASE("its user's hold takes a job out of the turns") {
  Sliced c;
  const JobId a = c.Submit("a", Sharer());
  c.Work();
  c.Submit("b", Sharer());
  c.Work();
  c.Pass(kSlice);
  REQUIRE(c.Running() == "b");
  c.Must(JobSuspended{.id = a, .suspended = true, .freeze = true});
  c.Work();
  c.Pass(kSlice);
  c.Pass(kSlice);
  CHECK(c.Running() == "b");
  c.Must(JobSuspended{.id = a, .suspended = false});
  c.Work();
  CHECK(c.Running() == "a");  // the other one has had more than its slice
  c.Pass(kSlice);
  CHECK(c.Running() == "b");
}

}  // namespace
}  // namespace berth
