// The safety model detects violations: the tests feed it events that no run should produce.
#include "tests/simulation/safety.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "absl/strings/match.h"

namespace berth::simulation {
namespace {

constexpr uint64_t kUid = 7;

v1::Job JobOf(int tasks, v1::NodeLossPolicy on_node_loss = v1::FENCE) {
  v1::Job job;
  job.set_name("train");
  v1::TaskGroup* group = job.mutable_spec()->add_groups();
  group->set_replicas(tasks);
  job.mutable_spec()->set_on_node_loss(on_node_loss);
  return job;
}

struct Model {
  explicit Model(const v1::Job& job)
      : safety(
            &scheduler, &trace, {{8000, 1 << 30}, {8000, 1 << 30}}, absl::Hours(1),
            [this] { return wall; },
            [this](const std::string& what) {
              if (failure.empty()) failure = what;
            }) {
    safety.OnSubmitting(job);
    safety.OnSubmitted("train", kUid, 0);
    launch.set_job("train");
    launch.set_cpu_millis(3000);
  }
  void Prepare(uint32_t task, uint32_t attempt, size_t node = 0) {
    safety.OnPrepared(node, {kUid, task, attempt});
  }
  void Start(uint32_t task, uint32_t attempt, size_t node = 0) {
    safety.OnStarted(node, {kUid, task, attempt}, launch, start);
  }
  void End(uint32_t task, uint32_t attempt, size_t node = 0, bool succeeded = false) {
    safety.OnEnded(node, {kUid, task, attempt}, succeeded);
  }
  bool Broken(absl::string_view rule) const { return absl::StartsWith(failure, rule); }

  Scheduler scheduler;
  Trace trace{false};
  absl::Time wall = absl::FromUnixSeconds(1'800'000'000);
  std::string failure;
  v1::TaskLaunch launch;
  v1::Start start;
  Safety safety;
};

TEST_CASE("safety: allowed events pass") {
  Model model(JobOf(2));
  for (const uint32_t attempt : {1u, 2u}) {
    for (const uint32_t task : {0u, 1u}) model.Prepare(task, attempt);
    for (const uint32_t task : {0u, 1u}) model.Start(task, attempt, task);
    for (const uint32_t task : {0u, 1u}) model.End(task, attempt, task);
  }
  CHECK(model.failure.empty());
  CHECK(model.safety.starts() == 4);
}

TEST_CASE("safety: an attempt starts at most once on any node") {
  Model model(JobOf(1));
  model.Start(0, 1);
  model.End(0, 1);
  model.Start(0, 1, 1);
  CHECK(model.Broken("once"));
}

TEST_CASE("safety: no task runs twice at the same time, unless its job allows it") {
  Model fenced(JobOf(1));
  fenced.Start(0, 1, 0);
  fenced.Start(0, 2, 1);
  CHECK(fenced.Broken("alone"));
  Model careless(JobOf(1, v1::REPLACE_NOW));
  careless.Start(0, 1, 0);
  careless.Start(0, 2, 1);
  CHECK(careless.failure.empty());
}

TEST_CASE(
    "safety: a task on a frozen machine may be replaced, and must stop when the machine resumes") {
  for (const bool stops : {true, false}) {
    Model model(JobOf(1));
    model.Start(0, 1, 0);
    model.safety.OnFrozen(0, true);
    model.Start(0, 2, 1);
    CHECK(model.failure.empty());
    model.safety.OnFrozen(0, false);
    if (stops) model.End(0, 1, 0);
    while (model.scheduler.Step(absl::Seconds(1))) {
    }
    CHECK(model.Broken("alone") == !stops);
  }
}

TEST_CASE(
    "safety: a gang that needs all its members starts when all have prepared the same attempt") {
  Model model(JobOf(2));
  model.Prepare(0, 2);
  model.Prepare(1, 1);
  model.Start(0, 2);
  CHECK(model.Broken("whole"));
}

TEST_CASE("safety: once a member has succeeded, attempts of the others are independent") {
  for (const bool there : {true, false}) {
    Model model(JobOf(2));
    for (const uint32_t task : {0u, 1u}) model.Prepare(task, 1);
    for (const uint32_t task : {0u, 1u}) model.Start(task, 1, task);
    model.End(1, 1, 1, true);
    model.End(0, 1, 0);  // evicted, and bound alone
    model.Prepare(0, 2);
    model.Start(0, 2);
    if (!there) model.End(0, 2);
    // The job restarts.
    model.scheduler.After(absl::Seconds(1), std::make_shared<Actor>(), [] {});
    model.scheduler.Step(absl::Seconds(1));
    model.Prepare(1, 2);
    if (there) model.Prepare(0, 3);
    model.Start(1, 2, 1);
    CHECK(model.Broken("whole") == !there);
  }
}

TEST_CASE("safety: a gang does not wait for a member that has succeeded") {
  for (const bool succeeded : {true, false}) {
    Model model(JobOf(2));
    for (const uint32_t task : {0u, 1u}) model.Prepare(task, 1);
    for (const uint32_t task : {0u, 1u}) model.Start(task, 1, task);
    model.End(1, 1, 1, succeeded);
    model.End(0, 1, 0);
    model.Prepare(0, 2);
    model.Start(0, 2);
    CHECK(model.Broken("whole") == !succeeded);
  }
}

// Of two tasks that may restart alone; `change` alters the job, or what the second one is told.
struct Pair : Model {
  explicit Pair(const std::function<void(v1::JobSpec&)>& change = {}) : Model(Job(change)) {
    launch.set_world_size(2);
    start.set_master_address("n0");
    start.set_master_port(20000);
    for (const uint32_t task : {0u, 1u}) Prepare(task, 1, task);
    Start(0, 1, 0);
  }
  static v1::Job Job(const std::function<void(v1::JobSpec&)>& change) {
    v1::Job job = JobOf(2);
    v1::LifecyclePolicy* policy = job.mutable_spec()->mutable_groups(0)->add_policies();
    policy->set_action(v1::LifecyclePolicy::RESTART_TASK);
    if (change) change(*job.mutable_spec());
    return job;
  }
};

// Two groups of one task each.
void Split(v1::JobSpec& spec) {
  spec.mutable_groups(0)->set_replicas(1);
  *spec.add_groups() = spec.groups(0);
}

TEST_CASE("safety: members of a rigid gang are launched with one world size and one endpoint") {
  Pair same;
  same.Start(1, 1, 1);
  CHECK(same.failure.empty());
  Pair smaller;
  smaller.launch.set_world_size(1);
  smaller.Start(1, 1, 1);
  CHECK(smaller.failure == "world: 7-1-1 of train runs with world size 1 while 7-0-1 runs with 2");
  Pair elsewhere;
  elsewhere.start.set_master_address("n1");
  elsewhere.Start(1, 1, 1);
  CHECK(elsewhere.failure ==
        "world: 7-1-1 of train runs with rendezvous endpoint n1:20000 while 7-0-1 runs with "
        "n0:20000");
  Pair port;
  port.start.set_master_port(20001);
  port.Start(1, 1, 1);
  CHECK(port.Broken("world"));
}

TEST_CASE("safety: a gang may have another endpoint once all its processes have ended") {
  for (const bool ended : {true, false}) {
    Pair model;
    model.Start(1, 1, 1);
    model.End(0, 1, 0);
    if (ended) model.End(1, 1, 1);
    model.start.set_master_port(20001);
    model.Prepare(0, 2);
    model.Start(0, 2);
    CHECK(model.Broken("world") == !ended);
  }
}

TEST_CASE("safety: the groups of a gang have one world, unless one is elastic or starts later") {
  const auto with = [](const std::function<void(v1::JobSpec&)>& change) {
    Pair model(change);
    model.launch.set_world_size(3);
    model.Start(1, 1, 1);
    return model.failure;
  };
  CHECK(absl::StartsWith(with(Split), "world"));
  CHECK(with([](v1::JobSpec& spec) { spec.mutable_groups(0)->set_min_available(1); }).empty());
  const auto later = [](v1::JobSpec& spec) {
    Split(spec);
    spec.mutable_groups(0)->set_name("first");
    v1::GroupDependency* after = spec.mutable_groups(1)->add_depends_on();
    after->set_group("first");
    after->set_condition(v1::GroupDependency::RUNNING);
  };
  CHECK(with(later).empty());
}

TEST_CASE("safety: members on a frozen machine must stop when it resumes in another world") {
  for (const bool stops : {true, false}) {
    Pair model;
    model.Start(1, 1, 1);
    model.safety.OnFrozen(1, true);
    model.End(0, 1, 0);
    model.start.set_master_port(20001);
    model.Prepare(0, 2);
    model.Start(0, 2);
    CHECK(model.failure.empty());
    model.safety.OnFrozen(1, false);
    if (stops) model.End(1, 1, 1);
    while (model.scheduler.Step(absl::Seconds(1))) {
    }
    CHECK(model.Broken("world") == !stops);
  }
}

TEST_CASE("safety: a copy that its job allows to live on is not part of the new world") {
  for (const bool replaced : {true, false}) {
    Pair model([](v1::JobSpec& spec) { spec.set_on_node_loss(v1::REPLACE_NOW); });
    model.Start(1, 1, 1);
    model.start.set_master_port(20001);
    for (const uint32_t task : {0u, 1u}) {
      if (task == 0 || replaced) model.Prepare(task, 2);
    }
    model.Start(0, 2);
    CHECK(model.Broken("world") == !replaced);
  }
}

TEST_CASE("safety: no resource of a node is allocated twice") {
  Model cpu(JobOf(3, v1::REPLACE_NOW));
  for (const uint32_t task : {0u, 1u, 2u}) cpu.Prepare(task, 1);
  cpu.Start(0, 1);
  cpu.Start(1, 1);
  CHECK(cpu.failure.empty());
  cpu.Start(2, 1);
  CHECK(cpu.Broken("room"));
  Model device(JobOf(2));
  for (const uint32_t task : {0u, 1u}) device.Prepare(task, 1);
  device.launch.add_device_uuids("gpu-0");
  device.Start(0, 1);
  device.Start(1, 1);
  CHECK(device.Broken("room"));
}

TEST_CASE("safety: an acknowledged job exists until its time to live after its end has expired") {
  Model model(JobOf(1));
  const ClusterState empty;
  model.Start(0, 1);
  model.End(0, 1);
  model.wall += absl::Hours(1);
  model.safety.CheckLoaded(empty);
  CHECK(model.failure.empty());
  Model early(JobOf(1));
  early.wall += absl::Hours(100);  // none of its tasks has ended
  early.safety.CheckLoaded(empty);
  CHECK(early.Broken("kept"));
  Model read(JobOf(1));
  read.safety.OnRead("train", {});
  CHECK(read.Broken("kept"));
}

TEST_CASE("safety: no task starts for a job that was never submitted") {
  Model model(JobOf(1));
  model.launch.set_job("other");
  model.Start(0, 1);
  CHECK(model.Broken("kept"));
}

TEST_CASE("safety: a job that was reported as ended stays ended") {
  Model back(JobOf(1));
  back.safety.OnRead("train", {.at = absl::Seconds(2), .found = true, .ended = true});
  back.safety.OnRead("train", {.at = absl::Seconds(1), .found = true});
  CHECK(back.failure.empty());  // an older read, whose answer arrived late
  back.safety.OnRead("train", {.at = absl::Seconds(3), .found = true});
  CHECK(back.Broken("over"));
  Model late(JobOf(1));
  late.safety.OnRead("train", {.found = true, .ended = true});
  late.Start(0, 1);
  CHECK(late.Broken("over"));
}

TEST_CASE("safety: a job succeeds by its own run, in this incarnation or before the backup") {
  const Safety::Read succeeded{.incarnation = 2, .found = true, .ended = true, .succeeded = true};
  Model by_itself(JobOf(1));
  by_itself.Start(0, 1);
  by_itself.End(0, 1, 0, true);
  by_itself.safety.OnBackup();
  by_itself.safety.OnRestored(2, false);
  by_itself.safety.OnRead("train", succeeded);
  CHECK(by_itself.failure.empty());

  Model by_another(JobOf(1));
  by_another.Start(0, 1);
  by_another.safety.OnBackup();
  by_another.End(0, 1, 0, true);  // after the backup: the job must run again
  by_another.safety.OnRestored(2, false);
  by_another.safety.OnRead("train", succeeded);
  CHECK(by_another.Broken("own"));

  Model next(JobOf(1));
  next.Start(0, 1);
  next.safety.OnRestored(2, true);
  next.End(0, 1, 0, true);  // foreign by now
  next.safety.OnSubmitting(JobOf(1));
  next.safety.OnSubmitted("train", kUid, 2);
  next.safety.OnRead("train", succeeded);
  CHECK(next.Broken("own"));
}

TEST_CASE("safety: no task of a job in the backup starts while it still runs from before") {
  const auto restored = [](v1::NodeLossPolicy policy, bool in_backup) {
    auto model = std::make_unique<Model>(JobOf(1, policy));
    if (in_backup) model->safety.OnBackup();
    model->Start(0, 1);
    model->safety.OnRestored(2, false);
    return model;
  };
  const auto beside = restored(v1::FENCE, true);
  beside->safety.OnStarted(1, {kUid, 0, 1, 2}, beside->launch, beside->start);
  CHECK(beside->Broken("alone"));
  const auto after = restored(v1::FENCE, true);
  after->End(0, 1);
  after->safety.OnStarted(1, {kUid, 0, 1, 2}, after->launch, after->start);
  CHECK(after->failure.empty());
  const auto keeps = restored(v1::KEEP, true);
  keeps->safety.OnStarted(1, {kUid, 0, 1, 2}, keeps->launch, keeps->start);
  CHECK(keeps->failure.empty());
  const auto unknown = restored(v1::FENCE, false);  // another job has its name and uid
  unknown->safety.OnStarted(1, {kUid, 0, 1, 2}, unknown->launch, unknown->start);
  CHECK(unknown->failure.empty());
}

TEST_CASE(
    "safety: after a restore, jobs that are not in the backup are not required and may run again") {
  Model model(JobOf(1));
  model.Start(0, 1);
  model.safety.OnRestored(2, true);
  model.safety.CheckLoaded(ClusterState());
  model.safety.OnRead("train", {.incarnation = 2});
  model.safety.OnRead("train", {.incarnation = 1, .found = true, .ended = true});  // an old answer
  model.End(0, 1);
  model.safety.OnStarted(0, {kUid, 0, 1, 2}, model.launch, model.start);
  CHECK(model.failure.empty());
  model.safety.OnEnded(0, {kUid, 0, 1, 2}, true);
  model.safety.OnStarted(0, {kUid, 0, 1, 2}, model.launch, model.start);
  CHECK(model.Broken("once"));
}

}  // namespace
}  // namespace berth::simulation
