// Defaults for omitted fields of jobs, and limits on tasks, over real gRPC.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Queues = v1::QueueService::Stub;

v1::SubmitJobsRequest RequestOf(const v1::Job& job) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = job;
  return request;
}

// A job with the fewest possible fields.
v1::Job BareJob(const std::string& name) {
  v1::Job job;
  job.set_name(name);
  v1::TaskGroup* group = job.mutable_spec()->add_groups();
  group->set_name("w");
  group->add_command("true");
  return job;
}

absl::Status Update(ServiceWorld& world, const std::string& name, const std::string& field,
                    const v1::QueueSpec& spec, v1::Queue* queue) {
  v1::UpdateQueueRequest update;
  update.mutable_queue()->set_name(name);
  *update.mutable_queue()->mutable_spec() = spec;
  update.mutable_update_mask()->add_paths("spec." + field);
  return Call(*world.queues, &Queues::UpdateQueue, update, queue);
}

}  // namespace

TEST_CASE("service: a new store has the queue default, and a job without a queue goes there") {
  ServiceWorld world;
  v1::SubmitJobsResponse response;
  REQUIRE(world.Submit(RequestOf(BareJob("a")), &response).ok());
  CHECK(world.MustGetJob("a").spec().queue() == "default");
  CHECK(world.MustGetJob("a").spec().groups(0).replicas() == 1);
}

TEST_CASE("service: the queue default can be deleted and does not come back") {
  ServiceWorld world;
  v1::DeleteQueueRequest remove;
  remove.set_name("default");
  v1::DeleteQueueResponse removed;
  REQUIRE(Call(*world.queues, &Queues::DeleteQueue, remove, &removed).ok());
  v1::SubmitJobsResponse response;
  absl::Status status = world.Submit(RequestOf(BareJob("a")), &response);
  CHECK(absl::IsNotFound(status));
  CHECK(status.message() ==
        "jobs[0].spec.queue: none is set, and there is no queue \"default\"; there are no "
        "queues: create one with `berth queue create NAME`");
  world.CreateQueue("research");
  world.CreateQueue("vision");
  world.CreateQueue("llm", "research");
  world.Restart();
  status = world.Submit(RequestOf(BareJob("a")), &response);
  CHECK(status.message() ==
        "jobs[0].spec.queue: none is set, and there is no queue \"default\"; queues that accept "
        "jobs: vision, llm");
}

TEST_CASE("service: explicit replicas of 0 are refused") {
  ServiceWorld world;
  v1::Job job = BareJob("a");
  job.mutable_spec()->mutable_groups(0)->set_replicas(0);
  v1::SubmitJobsResponse response;
  const absl::Status status = world.Submit(RequestOf(job), &response);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message() == "jobs[0].spec.groups[0].replicas: must be 1..10000, is 0");
}

TEST_CASE("service: a queue's defaults fill in omitted fields of its jobs, also down the tree") {
  ServiceWorld world([](config::v1::Server& config) {
    config.mutable_job_defaults()->set_cpu_millis(250);
    config.mutable_job_defaults()->mutable_walltime()->set_seconds(7200);
  });
  world.CreateQueue("org");
  world.CreateQueue("q", "org");
  v1::QueueSpec spec;
  v1::Queue queue;
  spec.mutable_defaults()->set_memory_bytes(int64_t{2} << 30);
  REQUIRE(Update(world, "org", "defaults", spec, &queue).ok());
  CHECK(queue.spec().defaults().memory_bytes() == int64_t{2} << 30);
  spec.clear_defaults();
  spec.mutable_defaults()->set_cpu_millis(500);
  REQUIRE(Update(world, "q", "defaults", spec, &queue).ok());
  world.Restart();  // read from the store

  v1::Job job = BareJob("bare");
  job.mutable_spec()->set_queue("q");
  v1::SubmitJobsResponse response;
  REQUIRE(world.Submit(RequestOf(job), &response).ok());
  const v1::Job bare = world.MustGetJob("bare");
  CHECK(bare.spec().groups(0).resources().cpu_millis() == 500);                 // from its queue
  CHECK(bare.spec().groups(0).resources().memory_bytes() == int64_t{2} << 30);  // from the parent
  CHECK(bare.spec().walltime().seconds() == 7200);                              // from the server
  job.set_name("says");
  job.mutable_spec()->mutable_groups(0)->mutable_resources()->set_cpu_millis(3000);
  job.mutable_spec()->mutable_walltime()->set_seconds(60);
  REQUIRE(world.Submit(RequestOf(job), &response).ok());
  const v1::Job says = world.MustGetJob("says");
  CHECK(says.spec().groups(0).resources().cpu_millis() == 3000);
  CHECK(says.spec().groups(0).resources().memory_bytes() == int64_t{2} << 30);
  CHECK(says.spec().walltime().seconds() == 60);
}

TEST_CASE("service: defaults are checked") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::QueueSpec spec;
  v1::Queue queue;
  spec.mutable_defaults()->set_cpu_millis(-1);
  CHECK(absl::IsInvalidArgument(Update(world, "q", "defaults", spec, &queue)));
  spec.mutable_defaults()->set_cpu_millis(0);
  spec.mutable_defaults()->mutable_walltime()->set_seconds(0);
  CHECK(absl::IsInvalidArgument(Update(world, "q", "defaults", spec, &queue)));
  spec.mutable_defaults()->clear_walltime();
  spec.mutable_limit()->set_cpu_millis(4000);
  REQUIRE(Update(world, "q", "limit", spec, &queue).ok());
  spec.mutable_defaults()->set_cpu_millis(5000);
  const absl::Status status = Update(world, "q", "defaults", spec, &queue);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message().find("is more than the limit of 4000") != absl::string_view::npos);
}

TEST_CASE("service: limits.active_tasks and max_tasks bound the tasks that have not ended") {
  ServiceWorld world(
      [](config::v1::Server& config) { config.mutable_limits()->set_active_tasks(25'000); });
  world.CreateQueue("q");
  v1::QueueSpec spec;
  spec.set_max_tasks(12'000);
  v1::Queue queue;
  REQUIRE(Update(world, "q", "max_tasks", spec, &queue).ok());
  const auto submit = [&](const std::string& name, const std::string& to, int32_t tasks) {
    v1::Job job = BareJob(name);
    job.mutable_spec()->set_queue(to);
    job.mutable_spec()->mutable_groups(0)->set_replicas(tasks);
    v1::SubmitJobsResponse response;
    return world.Submit(RequestOf(job), &response);
  };
  REQUIRE(submit("a", "q", 10'000).ok());
  absl::Status status = submit("b", "q", 2'001);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(status.message() ==
        "queue \"q\" accepts at most 12000 tasks of jobs that have not ended (max_tasks), has "
        "10000, and this call adds 2001");
  CHECK(RetryDelayOf(status) > absl::ZeroDuration());
  REQUIRE(submit("b", "q", 2'000).ok());
  REQUIRE(submit("c", "default", 10'000).ok());
  status = submit("d", "default", 3'001);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(status.message() ==
        "the cluster accepts at most 25000 tasks of jobs that have not ended "
        "(limits.active_tasks), has 22000, and this call adds 3001");
  CHECK(RetryDelayOf(status) > absl::ZeroDuration());
  world.Restart();
  CHECK(absl::IsResourceExhausted(submit("d", "default", 3'001)));
  v1::CancelJobRequest cancel;
  cancel.set_name("c");
  v1::Job cancelled;
  REQUIRE(Call(*world.jobs, &v1::JobService::Stub::CancelJob, cancel, &cancelled).ok());
  CHECK(submit("d", "default", 3'001).ok());
  v1::GetQueueRequest get;
  get.set_name("default");
  REQUIRE(Call(*world.queues, &Queues::GetQueue, get, &queue).ok());
  CHECK(queue.status().active_tasks() == 3'001);
}

TEST_CASE("service: a job beyond the limit of its queue is accepted, and reported to never start") {
  ServiceWorld world;
  world.CreateQueue("org");
  world.CreateQueue("q", "org");
  v1::QueueSpec spec;
  spec.mutable_limit()->set_cpu_millis(8000);
  v1::Queue queue;
  REQUIRE(Update(world, "org", "limit", spec, &queue).ok());
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob("fits");
  *request.add_jobs() = SmallJob("never");
  request.mutable_jobs(1)->mutable_spec()->mutable_groups(0)->set_replicas(9);
  v1::SubmitJobsResponse response;
  REQUIRE(world.Submit(request, &response).ok());
  CHECK_FALSE(response.jobs(0).has_never());
  const v1::WaitReason& why = response.jobs(1).never();
  CHECK(why.code() == v1::WaitReason::QUEUE_LIMIT);
  CHECK(why.never());
  CHECK(why.queue() == "org");
  CHECK(why.resource() == "cpu");
  CHECK(why.needed() == 9000);
  CHECK(why.limit() == 8000);
  const v1::Job job = world.MustGetJob("never");
  REQUIRE(job.status().reasons_size() == 1);
  CHECK(job.status().reasons(0).never());
  CHECK(job.status().reasons(0).queue() == "org");
}

TEST_CASE("service: a dry run reports for each job, like its submit, whether it never starts") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::QueueSpec spec;
  spec.mutable_limit()->set_cpu_millis(8000);
  (*spec.mutable_limit()->mutable_counts())["gpu"] = 2;
  v1::Queue queue;
  REQUIRE(Update(world, "q", "limit", spec, &queue).ok());
  v1::SubmitJobsRequest request;
  const auto add = [&](const std::string& name, int32_t replicas) {
    v1::Job& job = *request.add_jobs();
    job = SmallJob(name);
    job.mutable_spec()->mutable_groups(0)->set_replicas(replicas);
    return job.mutable_spec();
  };
  add("fits", 8);
  add("never", 9);
  add("elastic", 9)->mutable_groups(0)->set_min_available(8);
  add("held", 9)->set_suspended(true);
  add("gpus", 1)->mutable_groups(0)->mutable_resources()->add_devices()->set_kind("gpu");
  request.mutable_jobs(4)
      ->mutable_spec()
      ->mutable_groups(0)
      ->mutable_resources()
      ->mutable_devices(0)
      ->set_count(3);
  v1::JobSpec* later = add("later", 1);  // the second group does not count at first
  v1::TaskGroup& second = *later->add_groups();
  second = later->groups(0);
  second.set_name("second");
  second.set_replicas(9);
  v1::GroupDependency& after = *second.add_depends_on();
  after.set_group(later->groups(0).name());
  after.set_condition(v1::GroupDependency::COMPLETED);
  request.set_dry_run(true);
  v1::SubmitJobsResponse trial, real;
  REQUIRE(world.Submit(request, &trial).ok());
  request.set_dry_run(false);
  REQUIRE(world.Submit(request, &real).ok());
  REQUIRE(trial.jobs_size() == real.jobs_size());
  for (int i = 0; i < trial.jobs_size(); ++i) {
    INFO(real.jobs(i).name());
    CHECK(trial.jobs(i).name() == real.jobs(i).name());
    CHECK(trial.jobs(i).uid() == 0);
    CHECK(trial.jobs(i).never().SerializeAsString() == real.jobs(i).never().SerializeAsString());
    const bool never = i == 1 || i == 4;
    CHECK(trial.jobs(i).has_never() == never);
  }
  CHECK(trial.jobs(4).never().resource() == "gpu");
}

}  // namespace berth::testing
