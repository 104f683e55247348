// Tasks that were never bound take no memory, and failed planning leaves none behind.
#include "core/model/job_tasks.h"

#include <catch2/catch.hpp>

#include "core/engine/search/verdict.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::TestCluster;

Task Running() {
  Task task;
  task.state = TaskState::kRunning;
  task.attempt = 1;
  return task;
}

TEST_CASE("tasks of a job: tasks in their initial state are not stored", "[model]") {
  JobTasks tasks;
  tasks.Reset(10'000);
  CHECK(tasks.size() == 10'000);
  CHECK(tasks.stored() == 0);
  CHECK(tasks[9'999] == Task{});
  CHECK(tasks.Set(40, Running()) == Task{});
  CHECK(tasks.stored() == JobTasks::kBlock);
  CHECK(tasks[40] == Running());
  CHECK(tasks[41] == Task{});
  tasks.Set(41, Running());
  CHECK(tasks.Set(40, Task{}) == Running());
  CHECK(tasks.stored() == JobTasks::kBlock);
  tasks.Set(41, Task{});
  CHECK(tasks.stored() == 0);
}

TEST_CASE("tasks of a job: one task, a partly filled block, and copies", "[model]") {
  JobTasks tasks;
  CHECK(tasks.size() == 1);
  tasks.Reset(1);
  tasks.Set(0, Running());
  CHECK(tasks[0] == Running());
  tasks.Reset(70);
  CHECK(tasks[0] == Task{});
  tasks.Set(69, Running());
  CHECK(tasks.stored() == 6);
  tasks.Changed(69).rank = 5;
  const JobTasks copy = tasks;
  tasks.Set(69, Task{});
  CHECK(copy.size() == 70);
  CHECK(copy[69].rank == 5);
  int running = 0;
  for (const Task& task : copy) running += task.state == TaskState::kRunning ? 1 : 0;
  CHECK(running == 1);
}

TEST_CASE("a pending job stores no tasks, even after planning tried it", "[model]") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 8});
  const JobId small = cluster.Submit("small", {.groups = {{.replicas = 2, .gpus = 8}}});
  const JobId gang = cluster.Submit("gang", {.groups = {{.replicas = 3, .gpus = 8}}});
  const JobId elastic =
      cluster.Submit("elastic", {.groups = {{.replicas = 9'000, .min_available = 1, .gpus = 8}}});
  cluster.Settle();
  CHECK(cluster.StateOf(small) == "Binding");
  CHECK(cluster.StateOf(gang) == "Pending");
  CHECK(cluster.job(gang).tasks.stored() == 0);
  CHECK(cluster.job(elastic).tasks.stored() == JobTasks::kBlock);  // one is bound
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("queues count the tasks of jobs that have not ended, and limit them", "[model]") {
  TestCluster cluster;
  cluster.AddQueue("org", {.max_tasks = 10});
  cluster.AddQueue("a", {.parent = "org"});
  cluster.AddQueue("b", {.parent = "org"});
  const JobId job = cluster.Submit("j", {.queue = "a", .groups = {{.replicas = 7}}});
  const auto tasks = [&](const char* name) {
    return cluster.state().FindQueue(name)->active_tasks;
  };
  CHECK(tasks("a") == 7);
  CHECK(tasks("b") == 0);
  CHECK(tasks("org") == 7);
  JobSpec more =
      testing::MakeJob("k", cluster.state().FindQueue("b")->id, {.groups = {{.replicas = 4}}});
  const JobId next = cluster.state().next_job_id();
  CHECK(cluster.Try(JobSubmitted{.id = next, .spec = more}).message() ==
        "queue org (1) has 7 tasks; at most 10, and job k has 4");
  cluster.Must(JobCancelled{job, "enough"});
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Cancelled");
  CHECK(tasks("org") == 0);
  cluster.Must(JobSubmitted{.id = next, .spec = more});
  CHECK(tasks("org") == 4);
  CHECK(CheckConsistency(cluster.state()).ok());
}

TEST_CASE("a job beyond a limit above its queue is reported as never able to start", "[model]") {
  TestCluster cluster;
  cluster.AddQueue("org", {.limit = {{"gpu", 16}}});
  cluster.AddQueue("a", {.parent = "org", .limit = {{"gpu", 32}}});
  cluster.AddNodes("n", 8, {.gpus = 8});
  const JobId holder = cluster.Submit("holder", {.queue = "a", .groups = {{.gpus = 8}}});
  cluster.Settle();
  const JobId never =
      cluster.Submit("never", {.queue = "a", .groups = {{.replicas = 5, .gpus = 8}}});
  const JobId beyond_org =
      cluster.Submit("beyond-org", {.queue = "a", .groups = {{.replicas = 3, .gpus = 8}}});
  const JobId waits =
      cluster.Submit("waits", {.queue = "a", .groups = {{.replicas = 2, .gpus = 8}}});
  cluster.Settle();
  CHECK(cluster.StateOf(holder) == "Binding");
  const WaitReason own = cluster.Why(never).at(0);
  CHECK(own.code == WaitCode::kQueueLimit);
  CHECK(cluster.state().queues().At(own.queue).spec.name == "a");
  CHECK(own.needed == 40 * kWhole);
  CHECK(own.limit == 32 * kWhole);
  CHECK(CanNeverStart(own));
  const WaitReason above = cluster.Why(beyond_org).at(0);
  CHECK(cluster.state().queues().At(above.queue).spec.name == "org");
  CHECK(above.limit == 16 * kWhole);
  CHECK(CanNeverStart(above));
  CHECK(cluster.Why(waits).at(0).code == WaitCode::kQueueLimit);
  CHECK_FALSE(CanNeverStart(cluster.Why(waits).at(0)));
}

}  // namespace
}  // namespace berth
