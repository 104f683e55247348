// Epochs, world sizes and ranks as facts of a bind.
#include <catch2/catch.hpp>

#include "core/model/apply.h"
#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

GroupSpec Workers(int replicas, const std::string& name = "w") {
  GroupSpec group;
  group.name = name;
  group.replicas = group.min_available = replicas;
  group.shape.cpu_millis = 1000;
  return group;
}

// Nodes of one task each, and a bound gang.
struct GangWorld : World {
  explicit GangWorld(std::vector<GroupSpec> groups, int nodes = 10) {
    for (int i = 0; i < nodes; ++i) {
      NodeSpec spec;
      spec.name = absl::StrCat("n", i);
      spec.cpu_millis = 1000;
      spec.memory_bytes = int64_t{1} << 30;
      nodes_.push_back(AddNode(spec));
    }
    const QueueId queue = AddQueue("q");
    JobSpec spec;
    spec.name = "gang";
    spec.queue = queue;
    spec.groups = std::move(groups);
    for (const GroupSpec& group : spec.groups) spec.min_available += group.min_available;
    job_id = Submit(spec);
  }
  absl::Status BindOn(const std::vector<std::pair<uint32_t, int>>& places, bool gang = true) {
    TasksBound bound{.job = job_id, .gang = gang, .placements = {}};
    for (const auto& [task, node] : places) {
      bound.placements.push_back({task, nodes_[static_cast<size_t>(node)], {}});
    }
    bound.epoch = job(job_id).status.epoch + 1;
    return Try(bound);
  }
  // All end and are pending again.
  void StopAll() {
    for (uint32_t i = 0; i < job(job_id).tasks.size(); ++i) {
      if (!Occupies(task(job_id, i).state)) continue;
      REQUIRE(Try(TasksReleased{job_id, {i}, true, ReleaseReason::kRestart}).ok());
      REQUIRE(Report(job_id, i, ReportState::kExited, 0, ExitCause::kKilled).ok());
    }
    REQUIRE(SetState(job_id, JobState::kPending).ok());
  }
  std::vector<int> Ranks() const {
    std::vector<int> ranks;
    for (const Task& task : job(job_id).tasks) ranks.push_back(task.rank);
    return ranks;
  }
  std::vector<NodeId> nodes_;
  JobId job_id;
};

TEST_CASE("a bind opens the next epoch, and its tasks keep epoch and world size") {
  GangWorld world({Workers(2, "a"), Workers(2, "b")});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}}).ok());
  CHECK(world.job(world.job_id).status.epoch == 1);
  CHECK(world.task(world.job_id, 1).epoch == 1);
  CHECK(world.task(world.job_id, 1).world == 2);
  REQUIRE(world.BindOn({{2, 2}, {3, 3}}, /*gang=*/false).ok());
  CHECK(world.job(world.job_id).status.epoch == 2);
  CHECK(world.task(world.job_id, 0).epoch == 1);
  CHECK(world.task(world.job_id, 0).world == 2);
  CHECK(world.task(world.job_id, 3).epoch == 2);
  CHECK(world.task(world.job_id, 3).world == 4);
}

TEST_CASE("no task of a rigid gang is bound beside one of another epoch, and no epoch is skipped") {
  GangWorld world({Workers(2)});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}}).ok());
  REQUIRE(world.Try(TasksReleased{world.job_id, {1}, true, ReleaseReason::kRestart}).ok());
  REQUIRE(world.Report(world.job_id, 1, ReportState::kExited, 0, ExitCause::kKilled).ok());
  const absl::Status status = world.BindOn({{1, 2}}, /*gang=*/false);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message() ==
        "task w-0 of job gang (1) runs in epoch 1 of a rigid gang: no task joins it in epoch 2");
  CHECK(absl::IsFailedPrecondition(
      world.Try(TasksBound{world.job_id, false, {{1, world.nodes_[2], {}}}, 3})));
}

TEST_CASE("a gang that starts again keeps its ranks, and a new node takes the hole") {
  GangWorld world({Workers(6)});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}).ok());
  REQUIRE(world.Ranks() == std::vector<int>{0, 1, 2, 3, 4, 5});
  world.StopAll();
  SECTION("half or more of the nodes are the same") {
    // Node 1 is gone; 9 sorts last. The tasks change places, which does not matter.
    REQUIRE(world.BindOn({{5, 0}, {0, 9}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}).ok());
    CHECK(world.Ranks() == std::vector<int>{1, 2, 3, 4, 5, 0});
  }
  SECTION("fewer: all are laid out anew") {
    REQUIRE(world.BindOn({{0, 9}, {1, 8}, {2, 7}, {3, 6}, {4, 1}, {5, 5}}).ok());
    CHECK(world.Ranks() == std::vector<int>{5, 4, 3, 2, 0, 1});
  }
}

TEST_CASE("ranks stay within their group") {
  GangWorld world({Workers(1, "master"), Workers(3, "worker")});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}, {2, 2}, {3, 3}}).ok());
  world.StopAll();
  REQUIRE(world.BindOn({{0, 1}, {1, 0}, {2, 2}, {3, 3}}).ok());  // master and worker swap nodes
  CHECK(world.Ranks() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a coordinator has no rank and is not counted") {
  GroupSpec rdzv = Workers(1, "rdzv");
  rdzv.coordinator = true;
  GangWorld world({rdzv, Workers(2)});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}, {2, 2}}).ok());
  CHECK(world.Ranks() == std::vector<int>{kNoRank, 0, 1});
  CHECK(world.task(world.job_id, 0).world == 2);
  CHECK(world.task(world.job_id, 1).world == 2);
}

TEST_CASE("a member that fails before the order to stop reaches it counts as failed by itself") {
  GangWorld world({Workers(2)});
  REQUIRE(world.BindOn({{0, 0}, {1, 1}}).ok());
  REQUIRE(world.Try(TasksReleased{world.job_id, {0, 1}, true, ReleaseReason::kDrain}).ok());
  CHECK(world.task(world.job_id, 0).released == ReleaseReason::kDrain);
  REQUIRE(world.Report(world.job_id, 0, ReportState::kExited, 1).ok());
  REQUIRE(world.Report(world.job_id, 1, ReportState::kExited, 1, ExitCause::kKilled).ok());
  CHECK(world.task(world.job_id, 0).end_cause == EndCause::kExit);
  CHECK(world.task(world.job_id, 1).end_cause == EndCause::kStopped);
  CHECK(world.task(world.job_id, 0).state == TaskState::kPending);
}

}  // namespace
}  // namespace berth
