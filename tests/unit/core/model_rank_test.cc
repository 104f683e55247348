// Ranks are assigned when attempts are bound, and are unique among tasks that occupy a node.
#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

// Two elastic groups of four, at least two of each; n has room for all. a has tasks 0-3, b 4-7.
struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 8);
  JobId id = Submit(Elastic());

  JobSpec Elastic() const {
    JobSpec spec = JobOf("j", q, {GroupOfGpus("a", 4, 0), GroupOfGpus("b", 4, 0)});
    for (GroupSpec& group : spec.groups) group.min_available = 2;
    spec.min_available = 4;
    return spec;
  }
  void Place(std::vector<uint32_t> tasks, bool gang) {
    std::vector<Placement> placements;
    for (uint32_t task : tasks) placements.push_back({task, n, {}});
    REQUIRE(Bind(id, placements, gang).ok());
  }
  void StartGang() { Place({0, 1, 4, 5}, true); }
  // The task is to stop and run again; it occupies its node until it is gone.
  void Release(uint32_t task) {
    REQUIRE(Try(TasksReleased{id, {task}, true, ReleaseReason::kRestart}).ok());
  }
  void Gone(uint32_t task) {
    REQUIRE(Report(id, task, ReportState::kExited, 143, ExitCause::kKilled).ok());
  }
  std::vector<int> RanksOf(std::vector<uint32_t> tasks) const {
    std::vector<int> ranks;
    for (uint32_t index : tasks) ranks.push_back(task(id, index).rank);
    return ranks;
  }
};
using Ints = std::vector<int>;

TEST_CASE_METHOD(Fixture, "ranks: a gang is numbered from 0", "[model]") {
  StartGang();
  CHECK(RanksOf({0, 1, 4, 5}) == Ints{0, 1, 2, 3});
}

TEST_CASE_METHOD(Fixture, "ranks: a task that joins in the middle changes no other rank",
                 "[model]") {
  StartGang();
  Place({2}, false);  // a-2, which follows a-1 and precedes b-0
  Place({6}, false);
  Place({3}, false);
  CHECK(RanksOf({0, 1, 4, 5}) == Ints{0, 1, 2, 3});
  CHECK(RanksOf({2, 6, 3}) == Ints{4, 5, 6});
}

TEST_CASE_METHOD(Fixture, "ranks: a replaced member gets the free number", "[model]") {
  StartGang();
  Release(4);
  Gone(4);
  Place({4}, false);
  CHECK(RanksOf({0, 1, 4, 5}) == Ints{0, 1, 2, 3});
  Release(0);
  Gone(0);
  Place({2}, false);  // a new task before 0 returns: the gang needs a rank 0
  Place({0}, false);
  CHECK(RanksOf({2, 1, 4, 5, 0}) == Ints{0, 1, 2, 3, 4});
}

TEST_CASE_METHOD(Fixture, "ranks: a number is free once its attempt is gone, not before",
                 "[model]") {
  StartGang();
  Release(1);
  Place({2}, false);
  CHECK(RanksOf({2}) == Ints{4});
  Gone(1);
  Place({3}, false);
  CHECK(RanksOf({3}) == Ints{1});
}

TEST_CASE_METHOD(Fixture, "ranks: a silent member keeps its number", "[model]") {
  StartGang();
  const NodeId other = AddNode("m", 8);
  REQUIRE(Try(NodeSilenced{n}).ok());
  REQUIRE(task(id, 0).state == TaskState::kLost);
  REQUIRE(Bind(id, {{2, other, {}}}, false).ok());
  CHECK(RanksOf({0, 1, 4, 5, 2}) == Ints{0, 1, 2, 3, 4});
}

TEST_CASE_METHOD(Fixture, "ranks: a new gang does not count remaining tasks of the old one",
                 "[model]") {
  StartGang();
  Place({2}, false);
  for (uint32_t task : {0u, 1u, 2u, 4u, 5u}) Release(task);
  for (uint32_t task : {2u, 4u, 5u}) Gone(task);  // a-0 and a-1 remain
  REQUIRE(SetState(id, JobState::kRestarting).ok());
  REQUIRE(SetState(id, JobState::kPending).ok());
  Place({2, 3, 4, 5}, true);
  CHECK(RanksOf({2, 3, 4, 5}) == Ints{0, 1, 2, 3});
  Gone(0);
  Place({0}, false);
  CHECK(RanksOf({0}) == Ints{4});
}

TEST_CASE_METHOD(Fixture, "ranks: kept during an attempt and across a restart of the server",
                 "[model]") {
  StartGang();
  Place({2}, false);
  REQUIRE(Report(id, 2, ReportState::kPrepared).ok());
  REQUIRE(Try(TasksStarted{id, {2}}).ok());
  REQUIRE(Report(id, 2, ReportState::kRunning).ok());
  CHECK(task(id, 2).rank == 4);
  const ClusterState loaded = Reload(state);
  CHECK(loaded.jobs().At(id).tasks[2].rank == 4);
  REQUIRE(Report(id, 2, ReportState::kExited).ok());
  CHECK(task(id, 2).rank == 4);  // for history
}

}  // namespace
}  // namespace berth
