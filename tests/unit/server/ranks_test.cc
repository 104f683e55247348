// Ranks in the launch data for agents.
#include "server/controllers/ranks.h"

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

TEST_CASE("ranks: only members have one, and nodes are ordered by their lowest rank") {
  Job job;
  job.tasks.Reset(7);
  const auto put = [&](size_t i, TaskState state, uint32_t node, uint16_t rank) {
    Task task;
    task.state = state;
    task.node = NodeId{node};
    task.rank = rank;
    job.tasks.Set(i, task);
  };
  put(0, TaskState::kBound, 7, 3);  // replaced
  put(1, TaskState::kPending, 9, 0);
  put(2, TaskState::kRunning, 3, 1);
  put(3, TaskState::kLost, 7, 2);
  put(4, TaskState::kSucceeded, 3, 0);
  put(5, TaskState::kReleasing, 3, 4);
  put(6, TaskState::kStarting, 3, 0);
  const Ranks ranks = ComputeRanks(job, 0);
  CHECK(ranks.world_size == 4);
  CHECK(ranks.master == 6);
  CHECK(ranks.nodes == std::vector<NodeId>{NodeId{3}, NodeId{7}});
  CHECK(ranks.node_members == std::vector<int32_t>{2, 2});
  for (size_t absent : {1u, 4u, 5u}) CHECK(ranks.tasks[absent].rank == -1);
  const auto check = [&](size_t task, int32_t rank, int32_t node_rank, int32_t local_rank) {
    CHECK(ranks.tasks[task].rank == rank);
    CHECK(ranks.tasks[task].node_rank == node_rank);
    CHECK(ranks.tasks[task].local_rank == local_rank);
  };
  check(6, 0, 0, 0);
  check(2, 1, 0, 1);
  check(3, 2, 1, 0);
  check(0, 3, 1, 1);
}

TEST_CASE("ranks: a job without members, and one whose rank 0 is between two attempts") {
  Job job;
  job.tasks.Reset(2);
  CHECK(ComputeRanks(job, 0).world_size == 0);
  Task second;
  second.state = TaskState::kRunning;
  second.rank = 1;
  job.tasks.Set(1, second);
  const Ranks ranks = ComputeRanks(job, 0);
  CHECK(ranks.world_size == 1);
  CHECK(ranks.master == 1);
}

TEST_CASE("ranks: those of an epoch stay the same when members end, or others are bound later") {
  Job job;
  job.tasks.Reset(4);
  const auto put = [&](size_t i, TaskState state, uint32_t node, uint16_t rank, uint32_t epoch) {
    Task task;
    task.state = state;
    task.node = NodeId{node};
    task.rank = rank;
    task.epoch = epoch;
    job.tasks.Set(i, task);
  };
  put(0, TaskState::kFailed, 5, 0, 2);  // rank 0 has ended
  put(1, TaskState::kRunning, 6, 1, 2);
  put(2, TaskState::kRunning, 7, 2, 3);  // joined later
  put(3, TaskState::kReleasing, 8, 3, 1);
  const Ranks second = ComputeRanks(job, 2);
  CHECK(second.world_size == 2);
  CHECK(second.master == 0);
  CHECK(second.nodes == std::vector<NodeId>{NodeId{5}, NodeId{6}});
  const Ranks third = ComputeRanks(job, 3);
  CHECK(third.world_size == 2);  // of the second epoch only who still runs
  CHECK(third.nodes == std::vector<NodeId>{NodeId{6}, NodeId{7}});
}

TEST_CASE("ranks: a group that joined another meets at its rank 0, even if that has ended since") {
  Job job;
  job.tasks.Reset(4);
  const auto put = [&](size_t i, TaskState state, uint32_t node, uint16_t rank, uint32_t epoch,
                       int64_t since) {
    Task task;
    task.state = state;
    task.node = NodeId{node};
    task.rank = rank;
    task.epoch = epoch;
    task.attempt = 1;
    task.world = epoch == 2 ? 3 : 2;
    task.since = absl::FromUnixSeconds(since);
    job.tasks.Set(i, task);
  };
  put(0, TaskState::kPending, 5, 0, 1, 90);  // ended after the bind, and is to run again
  put(1, TaskState::kFailed, 6, 1, 1, 10);   // had ended before: its rank went to task 2
  put(2, TaskState::kStarting, 7, 1, 2, 60);
  put(3, TaskState::kStarting, 8, 2, 2, 60);
  const Ranks ranks = ComputeRanks(job, 2);
  CHECK(ranks.world_size == 3);
  CHECK(ranks.master == 0);
  CHECK(ranks.nodes == std::vector<NodeId>{NodeId{5}, NodeId{7}, NodeId{8}});
}

TEST_CASE("ranks: a rigid group beside an independent one meets at its own lowest rank") {
  const std::vector<Group> groups = [] {
    std::vector<Group> list(2);
    list[0].name = "loader";
    list[0].replicas = 2;
    list[0].min_available = 0;
    list[1].name = "worker";
    list[1].replicas = 2;
    list[1].min_available = 2;
    list[1].first_task = 2;
    return list;
  }();
  Job job;
  job.groups = groups;
  job.tasks.Reset(4);
  const auto put = [&](size_t i, TaskState state, uint32_t node, uint32_t epoch) {
    Task task;
    task.state = state;
    task.node = NodeId{node};
    task.rank = static_cast<uint16_t>(i);
    task.epoch = epoch;
    task.attempt = 1;
    task.world = 4;
    job.tasks.Set(i, task);
  };
  for (uint32_t i = 0; i < 4; ++i) put(i, TaskState::kStarting, i + 1, 1);
  CHECK(ComputeRanks(job, 1).master == 2);
  CHECK(ComputeRanks(job, 0).master == 0);  // for its loaders
  put(0, TaskState::kBound, 9, 2);          // replaced
  CHECK(ComputeRanks(job, 1).master == 2);
  put(2, TaskState::kSucceeded, 3, 1);
  CHECK(ComputeRanks(job, 1).master == 2);
  SECTION("but at rank 0 if the job restarts when that is lost") {
    std::vector<Group> declared = groups;
    declared[0].membership = GangMembership::kRendezvous;
    job.groups = declared;
    put(0, TaskState::kRunning, 1, 1);
    CHECK(ComputeRanks(job, 1).master == 0);
  }
}

TEST_CASE("ranks: a coordinator has none, and all meet there") {
  const std::vector<Group> groups = [] {
    std::vector<Group> list(2);
    list[0].name = "worker";
    list[0].replicas = 2;
    list[1].name = "rdzv";
    list[1].replicas = 1;
    list[1].coordinator = true;
    list[1].first_task = 2;
    return list;
  }();
  Job job;
  job.groups = groups;
  job.tasks.Reset(3);
  for (uint32_t i = 0; i < 3; ++i) {
    Task task;
    task.state = TaskState::kPrepared;
    task.node = NodeId{i + 1};
    task.rank = i == 2 ? kNoRank : static_cast<uint16_t>(i);
    task.epoch = 1;
    job.tasks.Set(i, task);
  }
  const Ranks ranks = ComputeRanks(job, 1);
  CHECK(ranks.world_size == 2);
  CHECK(ranks.master == 2);
  CHECK(ranks.tasks[2].rank == -1);
  CHECK(ranks.nodes == std::vector<NodeId>{NodeId{1}, NodeId{2}});
}

// The launches that an agent holds, by task.
std::map<uint32_t, v1::TaskLaunch> Launches(const Agent& agent) {
  std::map<uint32_t, v1::TaskLaunch> launches;
  for (const auto& [key, prepare] : agent.prepared) {
    launches[std::get<1>(key)] = prepare.launch();
  }
  return launches;
}

TEST_CASE("ranks: an elastic job grows, loses a member and restarts, and no rank is used twice") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory.set_cpu_millis(4000);  // room for four tasks
  agent.Connect();
  const JobId job = world.Submit("elastic", {.tasks = 6, .min_available = 2, .max_retries = 3});
  agent.Work();
  std::map<uint32_t, v1::TaskLaunch> launches = Launches(agent);
  REQUIRE(launches.size() == 4);
  std::set<int> ranks;
  for (const auto& [task, launch] : launches) {
    ranks.insert(launch.rank());
    CHECK(world.task(job, task).rank == launch.rank());
  }
  CHECK(ranks == std::set<int>{0, 1, 2, 3});

  // After a restart of the server an agent gets the same ranks.
  world.Restart();
  agent.Connect();
  for (const auto& [task, launch] : launches) CHECK(world.task(job, task).rank == launch.rank());

  agent.Exit(job, 1, 0);  // succeeded: its devices and its rank go to the fifth
  agent.Work();
  REQUIRE(world.task(job, 4).state == TaskState::kRunning);
  CHECK(Launches(agent).at(4).rank() == 1);
  CHECK(Launches(agent).at(4).world_size() == 4);
}

}  // namespace
}  // namespace berth
