// Drains by mode, of nodes and of devices.
#include <catch2/catch.hpp>

#include "core/model/state_editor.h"
#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::JobShape;
using testing::kSecond;
using testing::MakeNode;
using testing::Running;
using testing::TestCluster;

constexpr Duration kDeadline = absl::Minutes(10);

Drain DrainBy(const TestCluster& cluster, DrainMode mode, Duration deadline = kDeadline) {
  return {.mode = mode, .begin = cluster.now(), .deadline = cluster.now() + deadline};
}

void DrainWhole(TestCluster& cluster, const std::string& name, const Drain& drain) {
  cluster.Must(NodeSteered{.id = cluster.node_id(name),
                           .cordoned = true,
                           .draining = true,
                           .reason = "test",
                           .drain = drain});
  cluster.Settle();
}

void EndDrain(TestCluster& cluster, const std::string& name) {
  cluster.Must(NodeSteered{.id = cluster.node_id(name)});
  cluster.Settle();
}

void SaveWork(TestCluster& cluster, JobId job, uint32_t task) {
  cluster.Must(CheckpointRecorded{
      .task = {job, task}, .attempt = cluster.job(job).tasks[task].attempt, .step = 10});
  cluster.Settle();
}

JobShape SavingShape(JobShape shape) {
  shape.saves_before_drain = true;
  return shape;
}

// Tasks that do not need each other.
JobShape DrainArray(int tasks) {
  JobShape shape = Gang(tasks);
  shape.groups[0].membership = GangMembership::kIndependent;
  return shape;
}

TEST_CASE("a drain that waits leaves tasks until they end, or until its deadline") {
  Running run(Gang(2));
  DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kWait));
  CHECK(run.Tasks() == "RR");
  run.cluster.Advance(kDeadline - kSecond);
  CHECK(run.Tasks() == "RR");
  SECTION("they end") {
    run.cluster.Exit(run.job, 0);
    run.cluster.Exit(run.job, 1);
    CHECK(run.State() == "Succeeded");
    run.cluster.Advance(kSecond);
    CHECK(CheckConsistency(run.cluster.state()).ok());
  }
  SECTION("the deadline") {
    run.cluster.Advance(kSecond);
    CHECK(run.Tasks() == "LL");
    CHECK(run.Message() == "worker-1 had to leave n2");
    CHECK(run.cluster.job(run.job).tasks[1].released == ReleaseReason::kDrain);
    run.cluster.GoneAll(run.job);
    run.cluster.RunAll(run.job);
    CHECK(run.State() == "Running");
    CHECK(run.cluster.Where(run.job) == "n1 n3");
    CHECK(run.cluster.status(run.job).retries == 0);
  }
  SECTION("the operator ends it") {
    EndDrain(run.cluster, "n2");
    run.cluster.Advance(absl::Hours(1));
    CHECK(run.Tasks() == "RR");
  }
  SECTION("the operator waits no longer") {
    DrainWhole(run.cluster, "n2", {});
    CHECK(run.Tasks() == "LL");
  }
}

TEST_CASE("the deadline of a drain wakes planning") {
  Running run(Gang(2));
  DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kWait));
  const Time deadline = run.cluster.now() + kDeadline;
  CHECK(run.cluster.Cycle().wake_at == deadline);
  CHECK(run.cluster.state().drain_ends().size() == 1);
  // A later deadline replaces it.
  DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kWait, 2 * kDeadline));
  CHECK(run.cluster.Cycle().wake_at == deadline + kDeadline);
  CHECK(run.cluster.state().drain_ends().size() == 1);
  // None: nothing to wake for.
  Drain forever = DrainBy(run.cluster, DrainMode::kWait);
  forever.deadline = absl::InfiniteFuture();
  DrainWhole(run.cluster, "n2", forever);
  CHECK(run.cluster.state().drain_ends().empty());
  run.cluster.Advance(absl::Hours(100));
  CHECK(run.Tasks() == "RR");
}

TEST_CASE("a gang leaves a node that drains by checkpoint once it has saved its work") {
  Running run(SavingShape(Gang(3)));
  run.cluster.Advance(absl::Minutes(5));
  SaveWork(run.cluster, run.job, 0);  // before the drain: does not count
  run.cluster.Advance(kSecond);
  DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kCheckpoint));
  run.cluster.Advance(absl::Minutes(2));
  CHECK(run.Tasks() == "RRR");
  SECTION("it reports a checkpoint") {
    SaveWork(run.cluster, run.job, 0);
    CHECK(run.Tasks() == "LLL");
    CHECK(run.cluster.job(run.job).tasks[0].moves);  // keeps its place
    CHECK_FALSE(run.cluster.job(run.job).tasks[1].moves);
    run.cluster.GoneAll(run.job);
    run.cluster.RunAll(run.job);
    CHECK(run.cluster.Where(run.job) == "n1 n4 n3");
    CHECK(run.cluster.status(run.job).retries == 0);
  }
  SECTION("it does not until the deadline") {
    run.cluster.Advance(absl::Minutes(8) - kSecond);
    CHECK(run.Tasks() == "RRR");
    run.cluster.Advance(kSecond);
    CHECK(run.Tasks() == "LLL");
  }
  SECTION("the drain is ended before") {
    EndDrain(run.cluster, "n2");
    SaveWork(run.cluster, run.job, 0);
    run.cluster.Advance(absl::Hours(1));
    CHECK(run.Tasks() == "RRR");
  }
}

TEST_CASE("a drain by checkpoint waits for nobody that does not save its work") {
  JobShape shape = Gang(2);
  SECTION("a job without a checkpoint signal") {
    Running run(shape);
    DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kCheckpoint));
    CHECK(run.Tasks() == "LL");
  }
  SECTION("a gang that has not started") {
    TestCluster cluster;
    cluster.AddNodes("n", 4);
    const JobId job = cluster.Submit("j", SavingShape(shape));
    cluster.Settle();
    CHECK(cluster.Tasks(job) == "BB");
    DrainWhole(cluster, "n2", DrainBy(cluster, DrainMode::kCheckpoint));
    CHECK(cluster.Tasks(job) == "LL");
  }
}

TEST_CASE("independent tasks leave a drained node one by one, as they save") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.cpu = 80});
  const JobId job = cluster.Submit("j", SavingShape(DrainArray(4)));
  cluster.RunAll(job);
  REQUIRE(cluster.Where(job) == "n1 n1 n2 n2");
  DrainWhole(cluster, "n1", DrainBy(cluster, DrainMode::kCheckpoint));
  CHECK(cluster.Tasks(job) == "RRRR");
  cluster.Advance(kSecond);
  SaveWork(cluster, job, 1);
  CHECK(cluster.Tasks(job) == "RLRR");
  SaveWork(cluster, job, 2);  // need not leave
  CHECK(cluster.Tasks(job) == "RLRR");
  cluster.Advance(kDeadline);
  CHECK(cluster.Tasks(job) == "LLRR");
}

TEST_CASE("a job that restarts as a whole waits until all that must leave have saved") {
  JobShape shape = SavingShape(Gang(4));
  shape.groups[0].min_available = 3;  // by default independent, but it needs three
  Running run(shape);
  DrainWhole(run.cluster, "n1", DrainBy(run.cluster, DrainMode::kCheckpoint));
  DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kCheckpoint));
  run.cluster.Advance(kSecond);
  SaveWork(run.cluster, run.job, 0);
  CHECK(run.Tasks() == "LRRR");  // the others are enough
  run.cluster.GoneAll(run.job);
  SaveWork(run.cluster, run.job, 1);
  CHECK(run.Tasks() == ".LLL");
}

TEST_CASE("exit codes that say that the work is saved are no failure when a node drains") {
  JobShape shape = SavingShape(Gang(2));
  shape.saved_exit_codes = {0, 85};
  Running run(shape);
  SECTION("asked") {
    DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kCheckpoint));
    run.cluster.Advance(kSecond);
    const int code = GENERATE(0, 85);
    const uint32_t task = GENERATE(0U, 1U);  // it, or the other member of its gang
    run.cluster.Exit(run.job, task, code);
    CHECK(run.State() == "Restarting");
    CHECK(run.Message() == (task == 0 ? "worker-0 saved its work and ended, for the drain"
                                      : "worker-1 saved its work and ended, for the drain"));
    run.cluster.GoneAll(run.job);
    run.cluster.RunAll(run.job);
    CHECK(run.State() == "Running");
    CHECK(run.cluster.status(run.job).retries == 0);
  }
  SECTION("another code") {
    DrainWhole(run.cluster, "n2", DrainBy(run.cluster, DrainMode::kCheckpoint));
    run.cluster.Exit(run.job, 1, 86);
    CHECK(run.State() == "Completing");
  }
  SECTION("not asked") {
    run.cluster.Exit(run.job, 1, 85);
    CHECK(run.State() == "Completing");
  }
}

// One task per GPU: n1-gpu-0, n1-gpu-1, ...
struct DrainOnGpus {
  explicit DrainOnGpus(JobShape shape) {
    cluster.AddNode("n1", {.gpus = 4});
    shape.groups[0].cpu = 1;
    shape.groups[0].gpus = 1;
    job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    REQUIRE(cluster.StateOf(job) == "Running");
  }
  void DrainDevices(DrainMode mode, std::vector<size_t> devices) {
    NodeSteered event{.id = cluster.node_id("n1"), .drain = {.mode = mode, .begin = cluster.now()}};
    event.drain.deadline = cluster.now() + kDeadline;
    for (size_t device : devices) event.drain.devices.Add(device);
    cluster.Must(event);
    cluster.Settle();
  }
  size_t DeviceOf(uint32_t task) const {
    for (size_t i = 0; i < 4; ++i) {
      if (cluster.job(job).tasks[task].devices.Has(i)) return i;
    }
    return 99;
  }
  const Node& node() const { return cluster.node("n1"); }
  TestCluster cluster;
  JobId job;
};

TEST_CASE("a drain of devices moves their users, and nobody else gets them") {
  DrainOnGpus on(DrainArray(2));
  const size_t drained = on.DeviceOf(1);
  on.DrainDevices(DrainMode::kNow, {drained});
  CHECK(on.cluster.Tasks(on.job) == "RL");
  CHECK_FALSE(on.node().healthy.Has(drained));
  CHECK(on.node().capacity[*on.cluster.state().interner().FindKind("gpu")] == 3 * kWhole);
  CHECK(TakesTasks(on.node().status));
  on.cluster.GoneAll(on.job);
  on.cluster.RunAll(on.job);
  CHECK(on.cluster.Tasks(on.job) == "RR");
  CHECK(on.DeviceOf(1) != drained);
  const JobId more =
      on.cluster.Submit("more", {.groups = {{.name = "w", .replicas = 2, .gpus = 1}}});
  on.cluster.Settle();
  CHECK(on.cluster.Tasks(more) == "..");  // one GPU is left
  EndDrain(on.cluster, "n1");
  CHECK(on.cluster.Tasks(more) == "BB");
  CHECK(CheckConsistency(on.cluster.state()).ok());
}

TEST_CASE("a drain of devices gives up the places that wait for them") {
  DrainOnGpus on(Gang(4));
  on.DrainDevices(DrainMode::kNow, {3});
  CHECK(on.cluster.Tasks(on.job) == "LLLL");
  int moving = 0;
  for (const Task& task : on.cluster.job(on.job).tasks) moving += task.moves ? 1 : 0;
  CHECK(moving == 3);
  CHECK(on.cluster.status(on.job).message.find(" had to leave devices of n1") != std::string::npos);
  on.DrainDevices(DrainMode::kNow, {0, 3});
  moving = 0;
  for (const Task& task : on.cluster.job(on.job).tasks) moving += task.moves ? 1 : 0;
  CHECK(moving == 2);
  CHECK(CheckConsistency(on.cluster.state()).ok());
}

TEST_CASE("a drain of devices has modes, too") {
  DrainOnGpus on(SavingShape(DrainArray(2)));
  const DrainMode mode = GENERATE(DrainMode::kWait, DrainMode::kCheckpoint);
  on.DrainDevices(mode, {on.DeviceOf(0)});
  CHECK(on.cluster.Tasks(on.job) == "RR");
  on.cluster.Advance(kSecond);
  if (mode == DrainMode::kCheckpoint) SaveWork(on.cluster, on.job, 0);
  if (mode == DrainMode::kWait) on.cluster.Advance(kDeadline);
  CHECK(on.cluster.Tasks(on.job) == "LR");
}

TEST_CASE("a node that drains as a whole while devices are drained leaves nobody") {
  DrainOnGpus on(DrainArray(2));
  on.DrainDevices(DrainMode::kWait, {on.DeviceOf(0)});
  NodeSteered event{
      .id = on.node().id, .cordoned = true, .draining = true, .reason = "agent: x: y"};
  event.drain = on.node().status.drain;
  on.cluster.Must(event);
  on.cluster.Settle();
  CHECK(on.cluster.Tasks(on.job) == "LL");
}

TEST_CASE("drained devices keep their drain when the node registers in another order") {
  DrainOnGpus on(DrainArray(1));
  const size_t used = on.DeviceOf(0);
  const size_t drained = used == 3 ? 2 : 3;
  const std::string uuid = on.node().spec.devices[drained].uuid;
  on.DrainDevices(DrainMode::kWait, {drained});
  NodeSpec fresh = MakeNode("n1", {.gpus = 4});
  const auto registers = [&] {
    on.cluster.Must(NodeRegistered{
        .id = on.node().id, .spec = fresh, .epoch = on.node().status.epoch + 1, .agent_id = "n1"});
  };
  const auto drained_uuids = [&] {
    std::vector<std::string> uuids;
    for (size_t i = 0; i < on.node().spec.devices.size(); ++i) {
      if (on.node().status.drain.devices.Has(i)) uuids.push_back(on.node().spec.devices[i].uuid);
    }
    return uuids;
  };
  SECTION("reversed") {
    std::reverse(fresh.devices.begin(), fresh.devices.end());
    registers();
    CHECK(drained_uuids() == std::vector<std::string>{uuid});
    CHECK_FALSE(on.node().healthy.Has(3 - drained));
    CHECK(on.node().healthy.Count() == 3);
  }
  SECTION("without it, and with it again") {
    fresh.devices.erase(fresh.devices.begin() + static_cast<ptrdiff_t>(drained));
    registers();
    CHECK(on.node().spec.devices.size() == 4);  // remembered, unhealthy
    CHECK(drained_uuids() == std::vector<std::string>{uuid});
    CHECK(on.node().healthy.Count() == 3);
    fresh = MakeNode("n1", {.gpus = 4});
    registers();
    CHECK(drained_uuids() == std::vector<std::string>{uuid});
    CHECK(on.node().healthy.Count() == 3);
    on.cluster.Must(NodeSteered{.id = on.node().id});
    CHECK(on.node().healthy.Count() == 4);
  }
  CHECK(CheckConsistency(on.cluster.state()).ok());
}

TEST_CASE("drains that make no sense are refused") {
  TestCluster cluster;
  const NodeId id = cluster.AddNode("n1", {.gpus = 2});
  NodeSteered event{.id = id};
  event.drain.devices.Add(2);
  CHECK(cluster.Try(event).message() == "node n1 (1) has no device 2");
  event = {.id = id, .cordoned = true, .draining = true};
  event.drain.mode = DrainMode::kCheckpoint;
  CHECK(cluster.Try(event).message() == "node n1 (1): a drain by checkpoint needs a deadline");
  // Without anything that drains, nothing of it is kept.
  event = {.id = id, .cordoned = true};
  event.drain = {.mode = DrainMode::kWait, .deadline = cluster.now() + kSecond};
  cluster.Must(event);
  CHECK(cluster.node("n1").status.drain == Drain{});
}

}  // namespace
}  // namespace berth
