// Conversion of the engine's answers to the API.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "server/convert/explain.h"
#include "server/convert/job.h"
#include "server/convert/shares.h"
#include "server/convert/values.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::World;

// A node with four GPUs of two models, and a pending job of two groups.
struct Scene {
  Scene() {
    for (int i = 0; i < 4; ++i) {
      v1::Device& device = *agent.inventory.add_devices();
      device.set_kind("gpu");
      device.set_uuid("GPU-" + std::to_string(i));
      device.set_model(i < 2 ? "A100" : "H100");
    }
    agent.Connect();
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  waiting = turn.state().next_job_id();
                  REQUIRE(turn.Emit(JobSubmitted{waiting, Spec(turn.state())}).ok());
                  turn.PutCold(waiting, std::make_shared<const std::string>());
                })
                .ok());
    world.Run();
  }

  static JobSpec Spec(const ClusterState& state) {
    JobSpec spec;
    spec.name = "waiting";
    spec.queue = state.FindQueue("main")->id;
    spec.walltime = absl::Hours(2);
    GroupSpec driver;
    driver.name = "driver";
    driver.shape.cpu_millis = 1000;
    GroupSpec worker;
    worker.name = "worker";
    worker.replicas = worker.min_available = 16;
    DeviceRequest fpga, gpu;
    fpga.kind = "fpga";
    fpga.count = 1;
    gpu.kind = "gpu";
    gpu.count = 1;
    gpu.models = {"A100"};
    worker.shape.devices = {fpga, gpu};
    spec.groups = {driver, worker};
    spec.min_available = 17;
    return spec;
  }

  const Job& job() { return world.job(waiting); }
  v1::Remedy Render(const Remedy& remedy) {
    v1::Remedy out;
    RenderRemedy(world.state(), job(), remedy, &out);
    return out;
  }

  World world;
  testing::Agent agent{&world, "n1"};
  JobId waiting;
};

TEST_CASE("explain: a remedy has a field of the job, a value for it, and a text") {
  Scene scene;
  Remedy remedy;
  remedy.starts_now = true;
  remedy.group = 1;
  const auto check = [&](v1::Remedy::Kind kind, const std::string& field, const std::string& value,
                         const std::string& detail) {
    const v1::Remedy out = scene.Render(remedy);
    CHECK(out.kind() == kind);
    CHECK(out.field() == field);
    CHECK(out.value() == value);
    CHECK(out.detail() == detail);
    CHECK(out.starts_now() == remedy.starts_now);
  };
  remedy.kind = RemedyKind::kFewerTasks;
  remedy.value = 8;
  check(v1::Remedy::FEWER_TASKS, "groups[1].replicas", "8",
        "8 of 16 tasks would start now (replicas and minAvailable 8)");
  remedy.starts_now = false;
  check(v1::Remedy::FEWER_TASKS, "groups[1].replicas", "8",
        "8 of 16 tasks could start (replicas and minAvailable 8)");
  remedy.starts_now = true;

  remedy.kind = RemedyKind::kDeviceModel;
  remedy.text = "H100";
  remedy.device_kind = "gpu";
  check(v1::Remedy::DEVICE_MODEL, "groups[1].resources.devices[1].model", "H100",
        "gpu H100 would do");

  remedy.kind = RemedyKind::kSmallerTasks;
  remedy.text = "gpu";
  remedy.value = 4;
  check(v1::Remedy::SMALLER_TASKS, "groups[1].resources.devices[1].count", "4",
        "a node has at most gpu 4");
  remedy.text = "cpu";
  remedy.value = 8000;
  check(v1::Remedy::SMALLER_TASKS, "groups[1].resources.cpu_millis", "8000",
        "a node has at most cpu 8");
  remedy.text = "memory";
  remedy.value = int64_t{1} << 34;
  check(v1::Remedy::SMALLER_TASKS, "groups[1].resources.memory_bytes", "17179869184",
        "a node has at most memory 16Gi");
  remedy.within_quota = true;
  remedy.queue = scene.world.state().FindQueue("main")->id;
  check(v1::Remedy::SMALLER_TASKS, "groups[1].resources.memory_bytes", "17179869184",
        "tasks of memory 16Gi fit into the quota of queue main");

  remedy.kind = RemedyKind::kOtherQueue;
  remedy.queue = scene.world.state().FindQueue("main")->id;
  check(v1::Remedy::OTHER_QUEUE, "queue", "main", "queue main has room for it");

  remedy.kind = RemedyKind::kPreemptible;
  check(v1::Remedy::PREEMPTIBLE, "preemptible", "true",
        "it could borrow beyond its queue's deserved amount, and be evicted for others");

  remedy.kind = RemedyKind::kShorterWalltime;
  remedy.walltime = absl::Minutes(90) + absl::Milliseconds(700);
  check(v1::Remedy::SHORTER_WALLTIME, "walltime", "1h30m",
        "it would end before reservations of other jobs; now it has a longer walltime");
  CHECK(DurationFrom(scene.Render(remedy).walltime()) == absl::Minutes(90));
}

TEST_CASE("explain: waiting is a remedy with a time, rounded up to whole seconds") {
  Scene scene;
  Remedy remedy;
  remedy.kind = RemedyKind::kWait;
  remedy.time = absl::FromUnixSeconds(1'800'000'000) + absl::Milliseconds(1);
  const v1::Remedy out = scene.Render(remedy);
  CHECK(out.kind() == v1::Remedy::WAIT);
  CHECK(out.field().empty());
  CHECK(out.value() == "2027-01-15T08:00:01Z");
  CHECK(TimeFrom(out.wait_until()) == remedy.time);
  CHECK_FALSE(out.starts_now());
}

TEST_CASE("explain: a plan names groups, nodes and devices, whom it evicts and what it keeps") {
  Scene scene;
  const JobId running = scene.world.Submit("running", {.tasks = 2, .gpus = 1});
  const NodeId node = scene.world.node("n1").id;
  DryRunResult plan;
  DeviceSet last;
  last.Add(3);
  plan.placements = {{.task = 0, .node = node, .devices = {}},
                     {.task = 16, .node = node, .devices = last}};
  TasksReleased released;
  released.job = running;
  released.tasks = {0, 1};
  released.reason = ReleaseReason::kPreempted;
  released.detail = "priority 9 over 0";
  plan.evictions = {released};
  const JobSpec spec = Scene::Spec(scene.world.state());
  v1::PlanJobResponse out;
  RenderPlan(scene.world.state(), spec, plan, &out);
  CHECK(out.starts_now());
  REQUIRE(out.placements_size() == 2);
  CHECK(out.placements(0).group() == "driver");
  CHECK(out.placements(0).index() == 0);
  CHECK(out.placements(0).device_uuids().empty());
  CHECK(out.placements(1).group() == "worker");
  CHECK(out.placements(1).index() == 15);
  CHECK(out.placements(1).node() == "n1");
  REQUIRE(out.placements(1).device_uuids_size() == 1);
  CHECK(out.placements(1).device_uuids(0) == "GPU-3");
  REQUIRE(out.evictions_size() == 1);
  CHECK(out.evictions(0).job() == "running");
  CHECK(out.evictions(0).queue() == "main");
  CHECK(out.evictions(0).tasks() == 2);
  CHECK(out.evictions(0).reason() == v1::Eviction::PREEMPTED);
  CHECK(out.evictions(0).detail() == "priority 9 over 0");
  CHECK_FALSE(out.has_reservation());

  DryRunResult blocked;
  WaitReason reason;
  reason.code = WaitCode::kInsufficientResources;
  reason.resource = "gpu";
  reason.needed = 16 * kWhole;
  reason.free = 2 * kWhole;
  blocked.blockers = {reason};
  blocked.reservation = Reservation{
      .start = scene.world.clock.Now(), .end = absl::InfiniteFuture(), .places = plan.placements};
  out.Clear();
  RenderPlan(scene.world.state(), spec, blocked, &out);
  CHECK_FALSE(out.starts_now());
  CHECK(out.blockers(0).code() == v1::WaitReason::INSUFFICIENT_RESOURCES);
  CHECK(out.blockers(0).needed() == 16);
  REQUIRE(out.reservation().nodes_size() == 1);
  CHECK(out.reservation().nodes(0) == "n1");
  CHECK_FALSE(out.reservation().has_end());

  blocked.exhausted = true;  // then nothing else is certain
  out.Clear();
  RenderPlan(scene.world.state(), spec, blocked, &out);
  CHECK(out.exhausted());
  CHECK(out.blockers().empty());
}

TEST_CASE("explain: unknown facts about a start are absent") {
  v1::EstimateJobResponse out;
  RenderEstimate({}, &out);
  CHECK(out.ByteSizeLong() == 0);
  StartEstimate unknown;
  unknown.unknown = "nothing that runs has a walltime";
  RenderEstimate(unknown, &out);
  CHECK_FALSE(out.has_latest());
  CHECK(out.unknown() == "nothing that runs has a walltime");
  StartEstimate known;
  known.earliest = absl::FromUnixSeconds(100);
  known.likely = absl::FromUnixSeconds(200);
  known.latest = absl::FromUnixSeconds(300);
  known.jobs_before = 3;
  known.history_jobs = 7;
  known.predicted = true;
  out.Clear();
  RenderEstimate(known, &out);
  CHECK(out.earliest().seconds() == 100);
  CHECK(out.likely().seconds() == 200);
  CHECK(out.latest().seconds() == 300);
  CHECK(out.jobs_before() == 3);
  CHECK(out.history_jobs() == 7);
  CHECK(out.predicted());
}

TEST_CASE("explain: an explanation keeps every number") {
  Scene scene;
  const JobId running = scene.world.Submit("running", {.gpus = 2});
  Explanation explanation;
  explanation.reasons = WhyWaiting(scene.world.state(), scene.job(), scene.world.clock.Now());
  explanation.position = 2;
  explanation.queue_jobs = 5;
  GroupConstraints group;
  group.group = 1;
  group.needed_tasks = 16;
  group.nodes = 10;
  group.devices = 40;
  group.constraints = {{.name = "free",
                        .nodes_alone = 4,
                        .devices_alone = 3,
                        .nodes_in_order = 2,
                        .devices_in_order = 1}};
  group.nodes_left = 8;
  group.tasks_left = 9;
  group.largest_block = 4;
  group.blocking = {"free", "size"};
  explanation.groups = {group};
  explanation.holders = {{.job = running, .amount = 2 * kWhole, .ends = absl::FromUnixSeconds(50)},
                         {.job = running, .amount = 1 * kWhole}};
  v1::ExplainJobResponse out;
  RenderExplanation(scene.world.state(), scene.job(), explanation, &out);
  CHECK(out.job() == "waiting");
  CHECK(out.state() == v1::JOB_PENDING);
  CHECK(out.reasons_size() == static_cast<int>(explanation.reasons.size()));
  CHECK(out.position() == 2);
  CHECK(out.queue_jobs() == 5);
  REQUIRE(out.groups_size() == 1);
  const v1::GroupConstraints& shown = out.groups(0);
  CHECK(shown.group() == "worker");
  CHECK(shown.needed_tasks() == 16);
  CHECK(shown.nodes() == 10);
  CHECK(shown.devices() == 40);
  REQUIRE(shown.constraints_size() == 1);
  CHECK(shown.constraints(0).name() == "free");
  CHECK(shown.constraints(0).nodes_alone() == 4);
  CHECK(shown.constraints(0).devices_alone() == 3);
  CHECK(shown.constraints(0).nodes_in_order() == 2);
  CHECK(shown.constraints(0).devices_in_order() == 1);
  CHECK(shown.nodes_left() == 8);
  CHECK(shown.tasks_left() == 9);
  CHECK(shown.largest_block() == 4);
  CHECK(shown.blocking_size() == 2);
  CHECK_FALSE(shown.has_image_nodes());  // its group has no image
  REQUIRE(out.holders_size() == 2);
  CHECK(out.holders(0).job() == "running");
  CHECK(out.holders(0).queue() == "main");
  CHECK(out.holders(0).amount() == 2);
  CHECK(out.holders(0).ends().seconds() == 50);
  CHECK_FALSE(out.holders(1).has_ends());
}

QueueSpec MakeQueue(const std::string& name, QueueId parent, int64_t deserved, int32_t weight = 1) {
  QueueSpec spec;
  spec.name = name;
  spec.parent = parent;
  if (deserved > 0) spec.deserved = {{"gpu", deserved * kWhole}};
  spec.weight = weight;
  return spec;
}

std::string WhyOf(const v1::QueueShares& shares) {
  std::string text;
  for (const std::string& one : shares.why()) text += (text.empty() ? "" : "; ") + one;
  return text;
}

TEST_CASE("explain: shares come in the order of the tree, with reasons in words") {
  Scene scene;
  REQUIRE(scene.world.loop
              ->Post([&](Turn& turn) {
                const QueueId research = turn.state().next_queue_id();
                const auto add = [&](const QueueSpec& spec) {
                  REQUIRE(turn.Emit(QueueCreated{turn.state().next_queue_id(), spec}).ok());
                };
                add(MakeQueue("research", kRootQueue, 2));
                add(MakeQueue("vision", research, 2));
                add(MakeQueue("llm", research, 0, 0));
                add(MakeQueue("audit", kRootQueue, 6));
              })
              .ok());
  scene.world.Run();
  scene.world.Submit("running", {.tasks = 4, .gpus = 1});  // in main, which deserves nothing
  const ClusterState& state = scene.world.state();
  const FairShareParameters parameters;
  v1::ListQueueSharesResponse out;
  REQUIRE(RenderShares(state, parameters, state.queues().At(kRootQueue), false, &out).ok());
  std::vector<std::string> order;
  for (const v1::QueueShares& shares : out.shares()) order.push_back(shares.queue());
  CHECK(order == std::vector<std::string>{"audit", "main", "research", "llm", "vision"});
  CHECK(out.shares(2).parent().empty());
  CHECK(out.shares(3).parent() == "research");
  // Four GPUs, but the siblings deserve eight.
  CHECK(out.shares(0).deserved_scaled());
  CHECK(out.shares(0).deserved().counts().at("gpu") == 3);
  CHECK(WhyOf(out.shares(0)) ==
        "fair share of gpu bounded by demand; deserved is scaled down: siblings deserve more than "
        "exists; lends gpu");
  const v1::QueueShares& borrower = out.shares(1);
  CHECK(borrower.allocated().counts().at("gpu") == 4);
  CHECK(borrower.borrowed().counts().at("gpu") == 4);
  // Tasks pending in the other jobs can never start here, so they do not count as demand.
  CHECK(borrower.demand().counts().at("gpu") == 4);
  CHECK(borrower.dominant_resource() == "cpu");  // the first one of equals
  CHECK(borrower.dominant_share() == 1.0);
  CHECK(WhyOf(borrower).find("borrows gpu, which may be reclaimed") != std::string::npos);
  CHECK_FALSE(borrower.has_limit());
  CHECK(out.shares(4).lent().counts().empty());  // its sibling borrows nothing

  out.Clear();
  REQUIRE(RenderShares(state, parameters, *state.FindQueue("research"), true, &out).ok());
  CHECK(out.shares_size() == 3);
  out.Clear();
  REQUIRE(RenderShares(state, parameters, state.queues().At(kRootQueue), true, &out).ok());
  CHECK(out.shares(0).queue() == "root");
  CHECK(out.shares(0).fair_share().counts().at("gpu") == 4);
}

}  // namespace
}  // namespace berth
