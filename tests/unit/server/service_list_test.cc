// Lists over a loop with agents, without gRPC.
#include <catch2/catch.hpp>

#include "server/reads/read_view.h"
#include "server/services/job_list.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

TEST_CASE("lists: jobs and tasks of a node") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId first = world.Submit("first", {.cpu_millis = 4000});
  const JobId second = world.Submit("second", {.cpu_millis = 4000});
  a.Work();
  ReadView view(*world.loop);
  Rights rights(std::make_shared<const Caller>());
  v1::ListJobsRequest jobs;
  jobs.mutable_filter()->set_node("n1");
  v1::ListJobsResponse found;
  REQUIRE(ListJobs(view, rights, world.clock.Now(), jobs, found).ok());
  REQUIRE(found.jobs_size() == static_cast<int>(world.node("n1").tasks.size()));
  REQUIRE(found.jobs_size() > 0);
  CHECK(found.jobs(0).uid() == first.value);
  v1::ListTasksRequest tasks;
  tasks.set_node("n1");
  tasks.set_page_size(1);
  v1::ListTasksResponse page;
  REQUIRE(ListTasks(view, rights, tasks, page).ok());
  REQUIRE(page.tasks_size() == 1);
  CHECK(page.tasks(0).job() == "first");
  CHECK(page.tasks(0).node() == "n1");
  CHECK(page.tasks(0).state() == v1::TASK_RUNNING);
  CHECK(page.tasks(0).has_state_time());
  if (world.task(second).state == TaskState::kRunning) {
    REQUIRE_FALSE(page.next_page_token().empty());
    tasks.set_page_token(page.next_page_token());
    v1::ListTasksResponse next;
    REQUIRE(ListTasks(view, rights, tasks, next).ok());
    REQUIRE(next.tasks_size() == 1);
    CHECK(next.tasks(0).job() == "second");
    CHECK(next.next_page_token().empty());
  }
  tasks.clear_page_token();
  tasks.set_job("second");
  v1::ListTasksResponse of_both;
  REQUIRE(ListTasks(view, rights, tasks, of_both).ok());
  for (const v1::Task& task : of_both.tasks()) CHECK(task.job() == "second");
  tasks.set_node("n9");
  CHECK(absl::IsNotFound(ListTasks(view, rights, tasks, of_both)));
  CHECK(absl::IsInvalidArgument(ListTasks(view, rights, v1::ListTasksRequest(), of_both)));
}

}  // namespace
}  // namespace berth
