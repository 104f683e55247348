// ExplainService and the shares of queues over real gRPC, with nodes that no agent serves.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "server/convert/values.h"
#include "server/loop/loop.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Explains = v1::ExplainService::Stub;
using Jobs = v1::JobService::Stub;
using Queues = v1::QueueService::Stub;

// Returns when the loop has executed it and the result is durable.
void Do(ServiceWorld& world, const std::function<void(Turn&)>& change) {
  absl::Notification done;
  REQUIRE(world.app()
              .loop()
              .Post([&](Turn& turn) {
                change(turn);
                turn.OnDurable([&done] { done.Notify(); });
              })
              .ok());
  done.WaitForNotification();
}

// Tasks bound there are sent to no agent, and stay bound for a minute.
void AddNode(ServiceWorld& world, const std::string& name, int gpus) {
  Do(world, [&](Turn& turn) {
    NodeRegistered event;
    event.id = turn.state().next_node_id();
    event.epoch = 1;
    event.spec.name = name;
    event.spec.cpu_millis = 64'000;
    event.spec.memory_bytes = int64_t{1} << 40;
    for (int i = 0; i < gpus; ++i) {
      Device device;
      device.kind = "gpu";
      device.uuid = absl::StrCat("GPU-", name, "-", i);
      device.model = "H100";
      event.spec.devices.push_back(device);
    }
    BERTH_CHECK(turn.Emit(std::move(event)).ok());
  });
}

v1::Job GpuJob(const std::string& name, int32_t tasks, int32_t gpus) {
  v1::Job job = SmallJob(name);
  v1::TaskGroup* group = job.mutable_spec()->mutable_groups(0);
  group->set_replicas(tasks);
  v1::DeviceRequest* device = group->mutable_resources()->add_devices();
  device->set_kind("gpu");
  device->set_count(gpus);
  return job;
}

void MustSubmit(ServiceWorld& world, const v1::Job& job) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = job;
  v1::SubmitJobsResponse response;
  const absl::Status status = world.Submit(request, &response);
  INFO(status);
  REQUIRE(status.ok());
}

absl::Status Plan(ServiceWorld& world, const v1::Job& job, v1::PlanJobResponse* plan) {
  v1::PlanJobRequest request;
  *request.mutable_job() = job;
  return Call(*world.explain, &Explains::PlanJob, request, plan);
}

v1::PlanJobResponse MustPlan(ServiceWorld& world, const v1::Job& job) {
  v1::PlanJobResponse plan;
  const absl::Status status = Plan(world, job, &plan);
  INFO(status);
  REQUIRE(status.ok());
  return plan;
}

v1::ExplainJobResponse MustExplain(ServiceWorld& world, const std::string& job) {
  v1::ExplainJobRequest request;
  request.set_job(job);
  v1::ExplainJobResponse response;
  const absl::Status status = Call(*world.explain, &Explains::ExplainJob, request, &response);
  INFO(status);
  REQUIRE(status.ok());
  return response;
}

// Waits until planning has evaluated the job since its last decision.
void AwaitVerdict(ServiceWorld& world, const std::string& job) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (absl::Now() < end) {
    const v1::Job got = world.MustGetJob(job);
    REQUIRE(got.status().reasons_size() > 0);
    if (got.status().reasons(0).code() != v1::WaitReason::NOT_CONSIDERED) return;
    absl::SleepFor(absl::Milliseconds(5));
  }
  FAIL("planning does not come to rest");
}

// By task: its current node, or the planned one.
using Places = std::map<std::string, std::pair<std::string, std::vector<std::string>>>;

template <class PlacedTask, class Uuids>
void AddPlace(const PlacedTask& task, const Uuids& uuids, Places* places) {
  const std::vector<std::string> devices(uuids.begin(), uuids.end());
  (*places)[absl::StrCat(task.group(), "-", task.index())] = std::make_pair(task.node(), devices);
}

Places PlacesOf(const v1::PlanJobResponse& plan) {
  Places places;
  for (const v1::PlannedTask& task : plan.placements()) {
    AddPlace(task, task.device_uuids(), &places);
  }
  return places;
}

Places PlacesOf(ServiceWorld& world, const std::string& job) {
  v1::ListTasksRequest request;
  request.set_job(job);
  v1::ListTasksResponse tasks;
  REQUIRE(Call(*world.jobs, &Jobs::ListTasks, request, &tasks).ok());
  Places places;
  for (const v1::Task& task : tasks.tasks()) {
    AddPlace(task, task.devices(), &places);
  }
  return places;
}

// Queue "q" with a job that holds half of two nodes with four GPUs each.
void MakeHalfFull(ServiceWorld& world, absl::Duration walltime = absl::ZeroDuration()) {
  world.CreateQueue("q");
  AddNode(world, "n1", 4);
  AddNode(world, "n2", 4);
  v1::Job holder = GpuJob("holder", 1, 4);
  if (walltime > absl::ZeroDuration()) {
    ToProto(walltime, holder.mutable_spec()->mutable_walltime());
  }
  MustSubmit(world, holder);
}

}  // namespace

TEST_CASE("service: a submit gets the placement that the plan returned") {
  ServiceWorld world;
  world.CreateQueue("q");
  for (const char* name : {"n1", "n2", "n3"}) AddNode(world, name, 4);
  MustSubmit(world, GpuJob("before", 2, 1));
  const v1::Job job = GpuJob("job", 4, 2);
  const v1::PlanJobResponse plan = MustPlan(world, job);
  CHECK(plan.starts_now());
  CHECK(plan.blockers().empty());
  CHECK(plan.evictions().empty());
  REQUIRE(plan.placements_size() == 4);
  CHECK(plan.placements(0).device_uuids_size() == 2);

  // Nothing was stored, and a second call returns the same plan.
  v1::GetJobRequest get;
  get.set_name("job");
  v1::Job none;
  CHECK(absl::IsNotFound(Call(*world.jobs, &Jobs::GetJob, get, &none)));
  CHECK(MustPlan(world, job).SerializeAsString() == plan.SerializeAsString());
  MustSubmit(world, job);
  CHECK(PlacesOf(world, "job") == PlacesOf(plan));
}

TEST_CASE("service: a plan for a job that would wait gives the reason and the start time") {
  ServiceWorld world;
  MakeHalfFull(world, absl::Hours(1));
  const v1::PlanJobResponse plan = MustPlan(world, GpuJob("", 2, 4));
  CHECK_FALSE(plan.starts_now());
  CHECK(plan.placements().empty());
  REQUIRE(plan.blockers_size() > 0);
  CHECK(plan.blockers(0).code() == v1::WaitReason::INSUFFICIENT_RESOURCES);
  CHECK(plan.blockers(0).resource() == "gpu");
  CHECK(plan.blockers(0).needed() == 8);
  CHECK(plan.blockers(0).free() == 4);
  REQUIRE(plan.has_reservation());
  CHECK(plan.reservation().nodes_size() == 2);
  CHECK(TimeFrom(plan.reservation().start()) > absl::Now() + absl::Minutes(50));

  v1::Job held = GpuJob("held", 1, 1);
  held.mutable_spec()->set_suspended(true);
  const v1::PlanJobResponse on_hold = MustPlan(world, held);
  CHECK_FALSE(on_hold.starts_now());
  REQUIRE(on_hold.blockers_size() == 1);
  CHECK(on_hold.blockers(0).code() == v1::WaitReason::USER_HOLD);
}

TEST_CASE("service: a plan is refused like the submit, with field paths of the plan request") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::PlanJobResponse plan;
  SECTION("unknown queue") {
    const absl::Status status = Plan(world, SmallJob("a", "nowhere"), &plan);
    CHECK(absl::IsNotFound(status));
    CHECK(status.message() ==
          "job.spec.queue: there is no queue \"nowhere\"; queues that accept jobs: default, q");
  }
  SECTION("closed queue") {
    v1::CloseQueueRequest close;
    close.set_name("q");
    v1::Queue queue;
    REQUIRE(Call(*world.queues, &Queues::CloseQueue, close, &queue).ok());
    const absl::Status status = Plan(world, SmallJob("a"), &plan);
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(status.message() == "job.spec.queue: queue \"q\" is closed");
  }
  SECTION("name in use") {
    world.MustSubmit({"a"});
    const absl::Status status = Plan(world, SmallJob("a"), &plan);
    CHECK(absl::IsAlreadyExists(status));
    CHECK(ViolationsOf(status).at(0).field == "job.name");
  }
  SECTION("all violations at once") {
    v1::Job job = SmallJob("Not A Name", "nowhere");
    job.mutable_spec()->mutable_groups(0)->set_replicas(-1);
    const absl::Status status = Plan(world, job, &plan);
    CHECK(absl::IsInvalidArgument(status));
    std::vector<std::string> fields;
    for (const Violation& violation : ViolationsOf(status)) fields.push_back(violation.field);
    CHECK(fields ==
          std::vector<std::string>{"job.name", "job.spec.groups[0].replicas", "job.spec.queue"});
  }
  SECTION("an unimplemented field") {
    v1::Job job = SmallJob("a");
    job.mutable_spec()->mutable_topology()->set_mode(v1::TopologyConstraint::HARD);
    job.mutable_spec()->mutable_topology()->set_highest_tier(1);
    job.mutable_spec()->mutable_groups(0)->mutable_spread()->set_max_skew(1);
    CHECK(absl::IsUnimplemented(Plan(world, job, &plan)));
  }
  SECTION("the limit of the queue") {
    v1::UpdateQueueRequest update;
    update.mutable_queue()->set_name("q");
    update.mutable_queue()->mutable_spec()->set_max_jobs(1);
    update.mutable_update_mask()->add_paths("spec.max_jobs");
    v1::Queue queue;
    REQUIRE(Call(*world.queues, &Queues::UpdateQueue, update, &queue).ok());
    world.MustSubmit({"one"});
    const absl::Status status = Plan(world, SmallJob("two"), &plan);
    CHECK(absl::IsResourceExhausted(status));
    CHECK(RetryDelayOf(status) > absl::ZeroDuration());
  }
}

TEST_CASE("service: the numbers of an explanation add up, and its remedy works") {
  ServiceWorld world;
  MakeHalfFull(world, absl::Hours(1));
  v1::Job job = GpuJob("wide", 2, 4);
  MustSubmit(world, job);
  AwaitVerdict(world, "wide");
  const v1::ExplainJobResponse answer = MustExplain(world, "wide");
  CHECK(answer.job() == "wide");
  CHECK(answer.state() == v1::JOB_PENDING);
  REQUIRE(answer.reasons_size() > 0);
  CHECK(answer.reasons(0).code() == v1::WaitReason::INSUFFICIENT_RESOURCES);
  CHECK(answer.position() == 1);
  CHECK(answer.queue_jobs() == 1);
  REQUIRE(answer.groups_size() == 1);
  const v1::GroupConstraints& group = answer.groups(0);
  CHECK(group.group() == "w");
  CHECK(group.needed_tasks() == 2);
  CHECK(group.nodes() == 2);
  CHECK(group.devices() == 4);
  CHECK(group.tasks_left() == 1);
  int64_t nodes = group.nodes_left();
  for (const v1::ConstraintCount& count : group.constraints()) nodes += count.nodes_in_order();
  CHECK(nodes == group.nodes());
  CHECK(group.blocking_size() == 1);
  CHECK(group.blocking(0) == "free");
  REQUIRE(answer.holders_size() == 1);
  CHECK(answer.holders(0).job() == "holder");
  CHECK(answer.holders(0).amount() == 4);
  CHECK(TimeFrom(answer.estimate().latest()) > absl::Now() + absl::Minutes(50));
  CHECK(answer.reservation().nodes_size() == 2);

  const auto& remedies = answer.remedies();
  const auto fewer = std::find_if(remedies.begin(), remedies.end(), [](const v1::Remedy& remedy) {
    return remedy.kind() == v1::Remedy::FEWER_TASKS;
  });
  REQUIRE(fewer != remedies.end());
  CHECK(fewer->starts_now());
  CHECK(fewer->field() == "groups[0].replicas");
  CHECK(fewer->value() == "1");
  CHECK(remedies[remedies.size() - 1].kind() == v1::Remedy::WAIT);
  v1::CancelJobRequest cancel;
  cancel.set_name("wide");
  v1::Job cancelled;
  REQUIRE(Call(*world.jobs, &Jobs::CancelJob, cancel, &cancelled).ok());
  job.set_name("narrow");
  job.mutable_spec()->mutable_groups(0)->set_replicas(1);
  CHECK(MustPlan(world, job).starts_now());
}

TEST_CASE("service: jobs that do not wait for resources are explained too") {
  ServiceWorld world;
  MakeHalfFull(world);
  const v1::ExplainJobResponse placed = MustExplain(world, "holder");
  CHECK(placed.reasons().empty());
  CHECK(placed.position() == 0);
  CHECK(placed.remedies().empty());
  CHECK_FALSE(placed.estimate().has_latest());
  v1::Job held = SmallJob("held");
  held.mutable_spec()->set_suspended(true);
  MustSubmit(world, held);
  const v1::ExplainJobResponse on_hold = MustExplain(world, "held");
  REQUIRE(on_hold.reasons_size() == 1);
  CHECK(on_hold.reasons(0).code() == v1::WaitReason::USER_HOLD);
  CHECK(on_hold.groups().empty());
}

TEST_CASE("service: a start is estimated from walltimes, or reported as unknown") {
  ServiceWorld world;
  MakeHalfFull(world, absl::Hours(1));
  MustSubmit(world, GpuJob("next", 2, 4));
  v1::EstimateJobRequest request;
  request.set_job("next");
  v1::EstimateJobResponse estimate;
  REQUIRE(Call(*world.explain, &Explains::EstimateJob, request, &estimate).ok());
  CHECK(TimeFrom(estimate.latest()) > absl::Now() + absl::Minutes(50));
  CHECK(TimeFrom(estimate.latest()) < absl::Now() + absl::Minutes(61));
  CHECK(estimate.unknown().empty());
  CHECK(estimate.jobs_before() == 0);

  MustSubmit(world, GpuJob("behind", 2, 4));  // "next", which has no walltime, holds everything
  request.set_job("behind");
  estimate.Clear();
  REQUIRE(Call(*world.explain, &Explains::EstimateJob, request, &estimate).ok());
  CHECK_FALSE(estimate.has_latest());
  CHECK_FALSE(estimate.unknown().empty());
}

TEST_CASE("service: explain and plan for objects that do not exist") {
  ServiceWorld world;
  v1::ExplainJobRequest explain;
  explain.set_job("ghost");
  v1::ExplainJobResponse explained;
  const absl::Status status = Call(*world.explain, &Explains::ExplainJob, explain, &explained);
  CHECK(absl::IsNotFound(status));
  CHECK(status.message() == "there is no job \"ghost\"");
  v1::EstimateJobRequest estimate;
  estimate.set_job("ghost");
  v1::EstimateJobResponse estimated;
  CHECK(absl::IsNotFound(Call(*world.explain, &Explains::EstimateJob, estimate, &estimated)));
  v1::PlanJobResponse plan;
  CHECK(absl::IsInvalidArgument(Plan(world, v1::Job(), &plan)));
  v1::ListQueueSharesRequest list;
  list.set_queue("ghost");
  v1::ListQueueSharesResponse shares;
  const absl::Status no_queue = Call(*world.queues, &Queues::ListQueueShares, list, &shares);
  CHECK(absl::IsNotFound(no_queue));
  CHECK(no_queue.message() == "there is no queue \"ghost\"");
}

TEST_CASE("service: shares show lent and borrowed resources, of all queues or of a subtree") {
  ServiceWorld world;
  AddNode(world, "n1", 8);
  world.CreateQueue("idle");
  world.CreateQueue("q");
  world.CreateQueue("child", "idle");
  v1::UpdateQueueRequest update;
  update.mutable_queue()->set_name("idle");
  (*update.mutable_queue()->mutable_spec()->mutable_deserved()->mutable_counts())["gpu"] = 6;
  update.mutable_update_mask()->add_paths("spec.deserved");
  v1::Queue queue;
  REQUIRE(Call(*world.queues, &Queues::UpdateQueue, update, &queue).ok());
  MustSubmit(world, GpuJob("borrower", 1, 5));

  v1::ListQueueSharesRequest request;
  v1::ListQueueSharesResponse all;
  REQUIRE(Call(*world.queues, &Queues::ListQueueShares, request, &all).ok());
  REQUIRE(all.shares_size() == 4);
  CHECK(all.shares(0).queue() == "default");  // created with the store
  CHECK(all.shares(1).queue() == "idle");
  CHECK(all.shares(1).deserved().counts().at("gpu") == 6);
  CHECK(all.shares(1).lent().counts().at("gpu") == 5);
  CHECK(all.shares(2).queue() == "child");
  CHECK(all.shares(2).parent() == "idle");
  CHECK(all.shares(3).queue() == "q");
  CHECK(all.shares(3).allocated().counts().at("gpu") == 5);
  CHECK(all.shares(3).fair_share().counts().at("gpu") == 5);
  CHECK(all.shares(3).borrowed().counts().at("gpu") == 5);
  CHECK(all.shares(3).why_size() == 2);

  request.set_queue("idle");
  v1::ListQueueSharesResponse below;
  REQUIRE(Call(*world.queues, &Queues::ListQueueShares, request, &below).ok());
  CHECK(below.shares_size() == 2);
  request.set_queue("root");
  REQUIRE(Call(*world.queues, &Queues::ListQueueShares, request, &below).ok());
  CHECK(below.shares_size() == 5);
  CHECK(below.shares(0).queue() == "root");
}

TEST_CASE("service: the reason that barred reclaim is shown for the job and for its queue") {
  ServiceWorld world;
  AddNode(world, "n1", 8);
  world.CreateQueue("holds");
  world.CreateQueue("waits");
  v1::Job firm = GpuJob("firm", 1, 6);
  firm.mutable_spec()->set_queue("holds");
  firm.mutable_spec()->set_preemptible(false);
  MustSubmit(world, firm);
  v1::Job late = GpuJob("late", 1, 4);
  late.mutable_spec()->set_queue("waits");
  MustSubmit(world, late);
  const std::string held = "queue holds holds 6 gpu in jobs that are not preemptible";
  AwaitVerdict(world, "late");

  v1::GetJobRequest get;
  get.set_name("late");
  v1::Job job;
  REQUIRE(Call(*world.jobs, &Jobs::GetJob, get, &job).ok());
  REQUIRE(job.status().reasons_size() == 1);
  const auto& asked = job.status().reasons(0).asked();
  const auto reclaim = std::find_if(asked.begin(), asked.end(), [](const v1::RoomAsked& one) {
    return one.action() == "reclaim";
  });
  REQUIRE(reclaim != asked.end());
  CHECK(reclaim->barred() == held);

  v1::ListQueueSharesRequest request;
  request.set_queue("waits");
  v1::ListQueueSharesResponse shares;
  REQUIRE(Call(*world.queues, &Queues::ListQueueShares, request, &shares).ok());
  const std::string words = "reclaim made no room for job late: " + held;
  const auto& why = shares.shares(0).why();
  CHECK(std::find(why.begin(), why.end(), words) != why.end());
}

}  // namespace berth::testing
