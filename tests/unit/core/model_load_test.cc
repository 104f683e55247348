#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 4);
  JobId id = Submit(JobOf("j", q, {GroupOfGpus("w", 1, 1)}));
};

TEST_CASE_METHOD(Fixture, "loading gives the same state as folding", "[model]") {
  REQUIRE(Bind(id, {{0, n, Devices({2})}}).ok());
  JobSpec spec = JobOf("later", q, {GroupOfGpus("w", 2, 1)});
  spec.start_after = now + absl::Seconds(100);
  const JobId later = Submit(spec);
  const ClusterState loaded = Reload(state);
  CHECK(Fingerprint(loaded) == Fingerprint(state));
  CHECK(CheckConsistency(loaded).ok());
  CHECK(loaded.unsettled().contains(id));
  CHECK(loaded.unsettled().contains(later));
  CHECK(loaded.timers().size() == state.timers().size());
  ClusterState again = Reload(state);
  CHECK(again.TakeDirty().empty());
}

TEST_CASE_METHOD(Fixture, "an untouched pending job needs no lifecycle step after loading",
                 "[model]") {
  CHECK(Reload(state).unsettled().empty());
}

TEST_CASE("records that contradict each other are rejected", "[model]") {
  ClusterState state;
  StateEditor editor(state);
  QueueSpec team;
  team.name = "team";
  const QueueId q{1};
  const JobSpec job = JobOf("j", q, {GroupOfGpus("w", 2, 1)});
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };

  CHECK(message(editor.LoadJob(JobId{1}, job, At(1), 1)) == "job 1: no queue 1");
  REQUIRE(editor.LoadQueue(q, team, true, 1).ok());
  CHECK(message(editor.LoadQueue(QueueId{2}, team, true, 1)) ==
        "queue 2 (team): its id or name already exists");
  team.name = "child";
  team.parent = QueueId{9};
  CHECK(message(editor.LoadQueue(QueueId{2}, team, true, 1)) == "queue 2: no parent queue 9");
  CHECK(message(editor.LoadQueue(kRootQueue, team, true, 1)) == "queue 0 is the root, not child");

  REQUIRE(editor.LoadNode(NodeId{1}, NodeWith("n", 2), {}, 1).ok());
  CHECK(message(editor.LoadNode(NodeId{2}, NodeWith("n", 2), {}, 1)) ==
        "node 2 (n): its id or name already exists");
  CHECK(message(editor.LoadNode(NodeId{2}, NodeWith("m", 129), {}, 1)) ==
        "node 2: too many devices");
  const std::string disordered = "node 1: its images are too many, or out of order";
  CHECK(message(editor.LoadNodeImages(NodeId{1}, {ImageId{2}, ImageId{1}})) == disordered);
  CHECK(message(editor.LoadNodeImages(NodeId{1}, {ImageId{2}, ImageId{2}})) == disordered);

  REQUIRE(editor.LoadJob(JobId{1}, job, At(1), 1).ok());
  CHECK(message(editor.LoadJob(JobId{2}, job, At(1), 1)) ==
        "job 2 (j): its id or name already exists");
  CHECK(message(editor.LoadJobStatus(JobId{7}, {}, 0, {}, 1)) == "job status 7: no such job");

  Task task;
  task.state = TaskState::kRunning;
  task.node = NodeId{1};
  task.devices = Devices({1});
  REQUIRE(editor.LoadTask({JobId{1}, 0}, task, "").ok());
  CHECK(message(editor.LoadTask({JobId{1}, 1}, task, "")) ==
        "task 1 of job 1: another task has one of its devices");
  task.devices = Devices({2});
  CHECK(message(editor.LoadTask({JobId{1}, 1}, task, "")) ==
        "task 1 of job 1: node has no device 2");
  task.node = NodeId{5};
  CHECK(message(editor.LoadTask({JobId{1}, 1}, task, "")) == "task 1 of job 1: no node 5");
  CHECK(message(editor.LoadTask({JobId{1}, 2}, task, "")) == "task 2 of job 1: no such task");
  Task moving;
  moving.state = TaskState::kNominated;
  moving.node = NodeId{5};
  moving.moves = true;
  moving.next_node = NodeId{1};
  moving.next_devices = Devices({1});
  CHECK(message(editor.LoadTask({JobId{1}, 1}, moving, "")) ==
        "task 1 of job 1: it moves but is not released to run again");
  moving.moves = false;
  CHECK(message(editor.LoadTask({JobId{1}, 1}, moving, "")) == "task 1 of job 1: no node 5");
  Task lost;
  lost.state = TaskState::kLost;
  lost.node = NodeId{1};
  CHECK(message(editor.LoadTask({JobId{1}, 1}, lost, "")) ==
        "task 1 of job 1: it is lost but was not on a node before");
  CHECK(message(editor.LoadNextIds(JobId{1}, NodeId{5}, QueueId{5}, HyperNodeId{1})) ==
        "an id is larger than the last one given out");
  REQUIRE(editor.LoadNextIds(JobId{10}, NodeId{5}, QueueId{5}, HyperNodeId{1}).ok());
  editor.FinishLoad();
  CHECK(state.next_job_id() == JobId{10});
  CHECK(CheckConsistency(state).ok());
}

}  // namespace
}  // namespace berth
