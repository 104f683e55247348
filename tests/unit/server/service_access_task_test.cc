// How long a task may call: until it ends, its agent registers again, or its node is revoked.
#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "tests/unit/server/service_access_world.h"

namespace berth::testing {
namespace {

absl::Status GetJob(Door& door, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  return Call(*door.jobs, &v1::JobService::Stub::GetJob, request, &job);
}

// The last answer.
absl::Status AwaitRefusal(Door& door, const std::string& job) {
  const absl::Time end = absl::Now() + absl::Seconds(60);
  absl::Status status = GetJob(door, job);
  while (status.ok() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
    status = GetJob(door, job);
  }
  return status;
}

class TaskWorld : public AccessWorld {
 public:
  TaskWorld() : node_(Node("n1")), agent(std::make_unique<RunningAgent>(*node_, "n1")) {
    uid = UidOf("train");
    agent->AwaitTask(uid);
    task = NodeForTask("n1", EncodeTaskCall(agent->CallOf(uid)));
    REQUIRE(GetJob(*task, "train").ok());
  }
  void RevokeNode() {
    v1::ChangeAccessRequest change;
    change.add_refuse()->set_node("n1");
    REQUIRE(Change(root(), change).ok());
  }

 private:
  const std::unique_ptr<Door> node_;

 public:
  std::unique_ptr<RunningAgent> agent;
  uint64_t uid = 0;
  std::unique_ptr<Door> task;

  void RegisterAgain() {
    agent.reset();
    agent = std::make_unique<RunningAgent>(*node_, "n1");
  }
};

TEST_CASE("access of tasks: a revoked node speaks for no task") {
  TaskWorld world;
  world.RevokeNode();
  CHECK(absl::IsPermissionDenied(GetJob(*world.task, "train")));
}

TEST_CASE("access of tasks: an ended task may not call") {
  TaskWorld world;
  v1::CancelJobRequest request;
  request.set_name("train");
  v1::Job job;
  REQUIRE(Call(*world.root().jobs, &v1::JobService::Stub::CancelJob, request, &job).ok());
  const absl::Status ended = AwaitRefusal(*world.task, "train");
  INFO(ended);
  CHECK(absl::IsPermissionDenied(ended));
}

TEST_CASE("access of tasks: a registration that is over speaks for no task") {
  TaskWorld world;
  world.RegisterAgain();
  const absl::Status over = GetJob(*world.task, "train");
  INFO(over);
  CHECK(absl::IsUnavailable(over));
}

TEST_CASE("access of tasks: an open stream ends with the node's certificate") {
  TaskWorld world;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  auto stream = world.task->jobs->Exec(&context);
  v1::ExecRequest open;
  open.mutable_open()->set_job("train");
  open.mutable_open()->add_command(RunningAgent::kLasting);
  stream->Write(open);
  v1::ExecResponse begun;
  REQUIRE(stream->Read(&begun));
  world.RevokeNode();
  while (stream->Read(&begun)) {
  }
  const absl::Status status = FromGrpcStatus(stream->Finish());
  INFO(status);
  CHECK((absl::IsPermissionDenied(status) || absl::IsUnavailable(status)));
}

TEST_CASE("access of tasks: what a task reads of its job is all of it, and not of others") {
  TaskWorld world;
  v1::GetJobRequest request;
  request.set_name("train");
  v1::Job job;
  REQUIRE(Call(*world.task->jobs, &v1::JobService::Stub::GetJob, request, &job).ok());
  CHECK(job.spec().groups(0).command(0) == "secret-command");
  CHECK(job.spec().labels().at("project") == "secret-label");
  v1::ListTasksRequest all;
  all.set_job("train");
  v1::ListTasksResponse tasks;
  REQUIRE(Call(*world.task->jobs, &v1::JobService::Stub::ListTasks, all, &tasks).ok());
  REQUIRE(tasks.tasks_size() == 1);
  CHECK(tasks.tasks(0).job() == "train");
  all.clear_job();
  all.set_node("n1");
  CHECK(absl::IsPermissionDenied(
      Call(*world.task->jobs, &v1::JobService::Stub::ListTasks, all, &tasks)));
}

}  // namespace
}  // namespace berth::testing
