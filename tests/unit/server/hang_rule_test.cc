// The hang rule, and slow nodes, on what tasks told.
#include "server/controllers/hang_rule.h"

#include <catch2/catch.hpp>
#include <map>

#include "server/controllers/stragglers.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::JobShape;
using testing::Running;

struct Told {
  std::map<uint32_t, ToldProgress> tasks;
  std::optional<TaskHung> Judge(const Running& run) const {
    return JudgeHang(run.cluster.job(run.job), [this](uint32_t task) -> const ToldProgress* {
      const auto found = tasks.find(task);
      return found == tasks.end() ? nullptr : &found->second;
    });
  }
};

ToldProgress Still(int64_t step) {
  return {.hung = true, .still = absl::Minutes(10), .step = step};
}
ToldProgress Moving(int64_t step) { return {.hung = false, .step = step}; }

JobShape Watched(int tasks) {
  JobShape shape = Gang(tasks);
  shape.watchdog = absl::Minutes(10);
  return shape;
}

TEST_CASE("a gang hangs when all of its tasks do, and the one that has come least far is named") {
  Running run(Watched(3));
  Told told{{{0, Still(7)}, {1, Still(5)}}};
  CHECK_FALSE(told.Judge(run).has_value());  // nothing is known of the third
  told.tasks[2] = Moving(6);
  CHECK_FALSE(told.Judge(run).has_value());
  told.tasks[2] = Still(-1);  // it reports no steps
  const auto hung = told.Judge(run);
  REQUIRE(hung.has_value());
  CHECK(hung->task == TaskKey{run.job, 1});
  CHECK(hung->attempt == 1);
  CHECK(hung->step == 5);
  CHECK(hung->still == absl::Minutes(10));
  run.cluster.Must(*hung);
  CHECK_FALSE(told.Judge(run).has_value());  // once
  told.tasks[0] = Moving(8);
  const auto over = told.Judge(run);
  REQUIRE(over.has_value());
  CHECK(over->over);
  run.cluster.Must(*over);
  CHECK_FALSE(told.Judge(run).has_value());
}

TEST_CASE("a gang with a member that does not run is not judged") {
  Running run(Watched(2));
  const Told told{{{0, Still(7)}, {1, Still(7)}}};
  REQUIRE(told.Judge(run).has_value());
  run.cluster.Must(NodeSilenced{.id = run.cluster.node_id("n2")});
  CHECK_FALSE(told.Judge(run).has_value());
}

TEST_CASE("members that have succeeded, and the coordinator, do not count") {
  JobShape shape = Watched(2);
  shape.groups[0].membership = GangMembership::kRendezvous;
  shape.groups.push_back({.name = "rdzv", .coordinator = true});
  Running run(shape);
  Told told{{{0, Still(7)}, {1, Still(7)}}};
  CHECK(told.Judge(run).has_value());
  told.tasks.erase(1);
  CHECK_FALSE(told.Judge(run).has_value());
  run.cluster.Exit(run.job, 1, 0);
  CHECK(told.Judge(run).has_value());
}

TEST_CASE("tasks of a group that waits for one that hangs do not hide the hang") {
  JobShape shape = Watched(1);
  shape.groups.push_back({.name = "after", .depends_on = {{0, GroupCondition::kCompleted}}});
  Running run(shape);
  Told told{{{0, Still(7)}}};
  const auto hung = told.Judge(run);
  REQUIRE(hung.has_value());
  CHECK(hung->task == TaskKey{run.job, 0});
  run.cluster.Exit(run.job, 0, 0);  // now the other group's task is on its way
  CHECK_FALSE(told.Judge(run).has_value());
}

TEST_CASE("tasks that run alone are judged one by one, and without a watchdog nobody is") {
  JobShape shape = Watched(2);
  shape.groups[0].membership = GangMembership::kIndependent;
  const Told told{{{0, Moving(7)}, {1, Still(7)}}};
  CHECK(told.Judge(Running(shape))->task.task == 1);
  shape.watchdog = absl::InfiniteDuration();
  CHECK_FALSE(told.Judge(Running(shape)).has_value());
}

// One round: each node told one time.
void Round(Stragglers& stragglers, Time& now, std::vector<int64_t> times) {
  for (uint32_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0) stragglers.Note(0, NodeId{i + 1}, times[i], now);
  }
  now += Stragglers::kRound;
}

TEST_CASE("a node that is slow in four of five rounds is slow") {
  Stragglers stragglers;
  Time now = absl::FromUnixSeconds(0);
  for (int i = 0; i < 4; ++i) Round(stragglers, now, {100, 110, 100, 160});
  CHECK(stragglers.Slow().empty());  // the fourth round is not over
  Round(stragglers, now, {100, 110, 100, 100});
  CHECK(stragglers.Slow() == std::vector<NodeId>{NodeId{4}});
  Round(stragglers, now, {100, 110, 100, 100});
  CHECK(stragglers.Slow() == std::vector<NodeId>{NodeId{4}});  // 4 of 5
  Round(stragglers, now, {100, 110, 100, 100});
  CHECK(stragglers.Slow().empty());
}

TEST_CASE("1.3 times the median is not slow yet, two nodes are too few, and nodes drop out") {
  Stragglers stragglers;
  Time now = absl::FromUnixSeconds(0);
  SECTION("not slower than the limit") {
    for (int i = 0; i < 9; ++i) Round(stragglers, now, {100, 100, 130});
    CHECK(stragglers.Slow().empty());
  }
  SECTION("two nodes") {
    for (int i = 0; i < 9; ++i) Round(stragglers, now, {100, 900});
    CHECK(stragglers.Slow().empty());
  }
  SECTION("one that tells nothing any more") {
    for (int i = 0; i < 9; ++i) Round(stragglers, now, {100, 100, 100, 900});
    CHECK(stragglers.Slow().size() == 1);
    for (int i = 0; i < 2; ++i) Round(stragglers, now, {100, 100, 100, 0});
    CHECK(stragglers.Slow().empty());
  }
}

}  // namespace
}  // namespace berth
