// Dispatch of decisions to the agents: Prepare, Start, Kill, with devices and ranks; reports and
// acks.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "server/commands/job_change.h"
#include "server/controllers/cold_cache.h"
#include "server/controllers/ranks.h"
#include "server/convert/cold.h"
#include "storage/keys.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

v1::Device Gpu(int i) {
  v1::Device device;
  device.set_kind("gpu");
  device.set_uuid("GPU-" + std::to_string(i));
  device.set_model("H100");
  return device;
}

TEST_CASE("dispatch: nothing reaches the agent before the decision is durable") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  world.committer.hold = true;
  const JobId job = world.Submit("one");
  CHECK(world.task(job).state == TaskState::kBound);
  CHECK(agent.link->Of(Message::kPrepare).empty());
  world.committer.Release();
  CHECK(agent.link->Of(Message::kPrepare).size() == 1);
}

TEST_CASE("dispatch: a decision that never became durable was never sent") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  world.committer.hold = true;
  world.Submit("one");
  world.Restart();
  CHECK(agent.link->Of(Message::kPrepare).empty());
  CHECK(world.state().FindJob("one") == nullptr);
}

TEST_CASE("dispatch: a task bound and released in one turn gets only a Kill, and is bound again") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  JobId id;
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                id = turn.state().next_job_id();
                JobSpec spec;
                spec.name = "one";
                spec.queue = turn.state().FindQueue("main")->id;
                spec.min_available = 1;
                GroupSpec& group = spec.groups.emplace_back();
                group.name = "worker";
                group.shape.cpu_millis = 1000;
                v1::JobSpec cold;
                cold.add_groups()->add_command("run");
                REQUIRE(turn.Emit(JobSubmitted{id, spec}).ok());
                turn.PutCold(id, std::make_shared<const std::string>(EncodeCold(cold)));
                const NodeId node = turn.state().FindNode("n1")->id;
                REQUIRE(turn.Emit(TasksBound{id, true, {{0, node, {}}}}).ok());
                REQUIRE(turn.Emit(TasksReleased{id, {0}, true, ReleaseReason::kDrain}).ok());
              })
              .ok());
  world.Run();
  CHECK(agent.link->Of(Message::kPrepare).empty());
  CHECK(agent.link->Of(Message::kKill).size() == 1);
  agent.Work();
  CHECK(world.task(id).attempt == 2);
  CHECK(agent.Runs(id));
}

TEST_CASE("dispatch: a gang of one is prepared and started at once, with all launch data") {
  World world;
  Agent agent(&world, "n1");
  for (int i = 0; i < 4; ++i) *agent.inventory.add_devices() = Gpu(i);
  agent.Connect();
  const JobId job = world.Submit("one", {.gpus = 2, .kill_signal = "SIGUSR1"});
  REQUIRE(agent.link->Of(Message::kPrepare).size() == 1);
  const v1::Prepare prepare = agent.link->Of(Message::kPrepare)[0].prepare();
  CHECK(prepare.start_at_once());
  CHECK(prepare.reserve_port());
  CHECK(prepare.key().job_uid() == job.value);
  CHECK(prepare.key().attempt() == 1);
  const v1::TaskLaunch& launch = prepare.launch();
  CHECK(launch.job() == "one");
  CHECK(launch.queue() == "main");
  CHECK(launch.group() == "worker");
  CHECK(launch.command(1) == "one");
  CHECK(launch.env(0).name() == "JOB");
  CHECK(launch.working_dir() == "/work");
  CHECK(launch.kill_signal() == "SIGUSR1");
  CHECK(launch.kill_grace().seconds() == 10);
  CHECK(launch.fence());
  CHECK_FALSE(launch.has_walltime());
  CHECK(launch.world_size() == 1);
  CHECK(launch.cpu_millis() == 1000);
  CHECK(launch.device_uuids_size() == 2);
  CHECK(launch.device_kinds(0) == "gpu");

  agent.Work();
  CHECK(agent.executions.size() == 1);
  CHECK(world.job(job).status.state == JobState::kRunning);
  CHECK(world.dispatcher->counters().store_reads == 0);  // just submitted: kept in memory
  agent.Exit(job, 0, 0);
  CHECK(world.job(job).status.state == JobState::kSucceeded);
  CHECK(world.node("n1").tasks.empty());
}

TEST_CASE("dispatch: a gang is prepared everywhere before any member starts") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("gang", {.tasks = 4, .cpu_millis = 4000});
  CHECK(a.link->Of(Message::kPrepare).size() == 2);
  CHECK(b.link->Of(Message::kPrepare).size() == 2);
  a.Work();
  CHECK(a.link->Of(Message::kStart).empty());
  CHECK(b.link->Of(Message::kStart).empty());
  b.Work();
  CHECK(a.link->Of(Message::kStart).size() == 2);
  CHECK(b.link->Of(Message::kStart).size() == 2);

  const v1::Start start = b.link->Of(Message::kStart)[0].start();
  CHECK(start.nodes_size() == 2);
  const bool master_is_a = world.node("n1").id == world.task(job, 0).node;
  CHECK(start.nodes(0) == (master_is_a ? "n1" : "n2"));
  CHECK(start.master_address() == (master_is_a ? "n1.example" : "n2.example"));
  CHECK(start.node_addresses(0) == start.master_address());
  CHECK(start.master_port() == 20000);

  std::set<int> ranks;
  int ports = 0;
  for (Agent* agent : {&a, &b}) {
    std::set<int> local;
    for (const auto& [key, prepare] : agent->prepared) {
      CHECK_FALSE(prepare.start_at_once());
      ranks.insert(prepare.launch().rank());
      local.insert(prepare.launch().local_rank());
      ports += prepare.reserve_port() ? 1 : 0;
      CHECK(prepare.reserve_port() == (prepare.launch().rank() == 0));
      CHECK(prepare.launch().world_size() == 4);
      CHECK(prepare.launch().local_world_size() == 2);
      CHECK(prepare.launch().node_count() == 2);
    }
    CHECK(local == std::set<int>{0, 1});
  }
  CHECK(ranks == std::set<int>{0, 1, 2, 3});
  CHECK(ports == 1);
  a.Work();
  b.Work();
  CHECK(world.job(job).status.state == JobState::kRunning);
}

TEST_CASE("dispatch: cancel sends Kill with grace and signal, and the exit frees the devices") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job =
      world.Submit("one", {.kill_grace = absl::Milliseconds(2500), .kill_signal = "SIGINT"});
  agent.Work();
  world.Cancel(job);
  REQUIRE(agent.link->Of(Message::kKill).size() == 1);
  const v1::Kill kill = agent.link->Of(Message::kKill)[0].kill();
  CHECK(kill.grace().seconds() == 2);
  CHECK(kill.grace().nanos() == 500'000'000);
  CHECK(kill.signal() == "SIGINT");
  CHECK(kill.reason() == "the job was cancelled");
  CHECK(world.task(job).state == TaskState::kReleasing);
  agent.Work();
  CHECK(world.job(job).status.state == JobState::kCancelled);
  CHECK(world.node("n1").tasks.empty());
}

// What `berth job cancel --force` does.
void CancelByForce(World& world, JobId job) {
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                REQUIRE(turn.Emit(JobCancelled{job, "by force", true}).ok());
              })
              .ok());
  world.Run();
}

TEST_CASE(
    "dispatch: a forced cancel removes the grace period, even of a task that is already stopping") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId stopping = world.Submit("stopping", {.kill_grace = absl::Minutes(30)});
  const JobId running = world.Submit("running", {.kill_grace = absl::Minutes(30)});
  agent.Work();
  world.Cancel(stopping);
  REQUIRE(agent.link->Of(Message::kKill).size() == 1);
  CHECK(agent.link->Of(Message::kKill)[0].kill().grace().seconds() == 1800);
  for (const JobId job : {stopping, running}) {
    CancelByForce(world, job);
    const v1::Kill kill = agent.link->Of(Message::kKill).back().kill();
    CHECK(kill.key().job_uid() == job.value);
    CHECK(kill.grace().seconds() == 0);
    CHECK(kill.signal() == "SIGKILL");
  }
  agent.Work();
  CHECK(world.job(stopping).status.state == JobState::kCancelled);
  CHECK(world.job(running).status.state == JobState::kCancelled);
}

TEST_CASE("dispatch: a forced cancel ends a job that would wait forever for a silent node") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId keep = world.Submit("keep", {.on_node_loss = NodeLossPolicy::kKeep});
  a.Work();
  b.Connect();
  a.Disconnect();
  for (int second = 0; second < 17; ++second) {
    world.Advance(absl::Seconds(1));
    b.Heartbeat();
  }
  REQUIRE(world.task(keep).state == TaskState::kLost);
  world.Cancel(keep);
  CHECK(world.job(keep).status.state == JobState::kCompleting);
  CancelByForce(world, keep);
  CHECK(world.job(keep).status.state == JobState::kCancelled);
  CHECK(world.node("n1").tasks.empty());
  a.Connect();  // the server orders it to forget the task
  a.Work();
  CHECK_FALSE(a.Runs(keep));
}

TEST_CASE("dispatch: a forced cancel also holds if the node falls silent afterwards") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId job = world.Submit("job", {.kill_grace = absl::Minutes(30)});
  a.Work();
  b.Connect();
  a.Disconnect();
  CancelByForce(world, job);  // within the lease: the node may still receive it
  CHECK(world.job(job).status.state == JobState::kCompleting);
  for (int second = 0; second < 17; ++second) {
    world.Advance(absl::Seconds(1));
    b.Heartbeat();
  }
  REQUIRE(world.node("n1").status.state == NodeState::kSilent);
  CHECK(world.job(job).status.state == JobState::kCancelled);
  CHECK(world.node("n1").tasks.empty());
  a.Connect();
  a.Work();
  CHECK_FALSE(a.Runs(job));
}

TEST_CASE("dispatch: repeating a forced cancel ends tasks that were lost in the meantime") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("job", {.on_node_loss = NodeLossPolicy::kKeep});
  agent.Work();
  v1::CancelJobRequest request;
  request.set_force(true);
  CancelByForce(world, job);
  CHECK_FALSE(CancelOf(world.job(job), request, "").value().has_value());
  const NodeSilenced waits_for_fence{.id = world.node("n1").id, .ends_forced = false};
  REQUIRE(world.loop->Post([&](Turn& turn) { REQUIRE(turn.Emit(waits_for_fence).ok()); }).ok());
  world.Run();
  REQUIRE(world.task(job).state == TaskState::kLost);
  REQUIRE(CancelOf(world.job(job), request, "").value().has_value());
  CancelByForce(world, job);
  CHECK(world.job(job).status.state == JobState::kCancelled);
  CHECK_FALSE(CancelOf(world.job(job), request, "").value().has_value());
}

TEST_CASE("dispatch: the grace period never exceeds the current limit of the operator") {
  World world;
  Live<JobDefaults> defaults;
  world.dispatcher->SetDefaults(&defaults);
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one", {.kill_grace = absl::Minutes(30)});
  agent.Work();
  defaults.Set({.greatest_kill_grace = absl::Seconds(20)});
  world.Cancel(job);
  REQUIRE(agent.link->Of(Message::kKill).size() == 1);
  CHECK(agent.link->Of(Message::kKill)[0].kill().grace().seconds() == 20);
}

TEST_CASE("dispatch: an eviction checkpoints, even if its Kill is resent, and a cancel does not") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one", {.kill_signal = "SIGINT",
                                         .checkpoint_signal = "SIGUSR1",
                                         .checkpoint_grace = absl::Minutes(2)});
  const JobId winner = world.Submit("winner", {.tasks = 1000, .cpu_millis = 64'000});
  agent.Work();
  const auto kills = [&] { return agent.link->Of(Message::kKill); };
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                TasksReleased evicted{job, {0}, true, ReleaseReason::kPreempted};
                evicted.beneficiary = winner;
                evicted.detail = "higher priority";
                REQUIRE(turn.Emit(evicted).ok());
              })
              .ok());
  world.Run();
  REQUIRE(kills().size() == 1);
  CHECK(kills()[0].kill().signal() == "SIGUSR1");
  CHECK(kills()[0].kill().grace().seconds() == 120);
  CHECK(kills()[0].kill().reason() ==
        "a job of higher priority preempts it, for job winner: higher priority");
  const JobStatus& status = world.job(job).status;
  CHECK(status.evictions == 1);
  CHECK(status.eviction.beneficiary == winner);
  CHECK(status.eviction.time == world.task(job).since);

  CHECK(ReasonByState(world.job(job), world.task(job)) == ReleaseReason::kPreempted);
  world.Cancel(job);
  CHECK(ReasonByState(world.job(job), world.task(job)) == ReleaseReason::kCancelled);
}

TEST_CASE("dispatch: foreseen stops send the checkpoint signal, also when the Kill is repeated") {
  struct Row {
    ReleaseReason reason;
    bool saves;
  };
  const Row row =
      GENERATE(Row{ReleaseReason::kDrain, true}, Row{ReleaseReason::kSuspended, true},
               Row{ReleaseReason::kGangExpired, true}, Row{ReleaseReason::kRestart, false},
               Row{ReleaseReason::kCancelled, false});
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job =
      world.Submit("one", {.checkpoint_signal = "SIGUSR1", .checkpoint_grace = absl::Minutes(2)});
  agent.Work();
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                REQUIRE(turn.Emit(TasksReleased{job, {0}, true, row.reason}).ok());
              })
              .ok());
  world.Run();
  const auto kills = [&] { return agent.link->Of(Message::kKill); };
  REQUIRE(kills().size() == 1);
  CAPTURE(static_cast<int>(row.reason));
  CHECK(kills()[0].kill().checkpoint() == row.saves);
  CHECK((kills()[0].kill().signal() == "SIGUSR1") == row.saves);
  CHECK(kills()[0].kill().grace().seconds() == (row.saves ? 120 : 10));
  CHECK(ReasonByState(world.job(job), world.task(job)) == row.reason);
}

TEST_CASE("dispatch: a refusal by one member requeues the gang without using a retry") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("gang", {.tasks = 2, .cpu_millis = 8000});
  a.Work();
  b.mute = true;
  b.Work();
  const uint32_t at_b = world.node("n2").id == world.task(job, 0).node ? 0 : 1;
  v1::TaskReport refusal = b.ReportFor(job, at_b, 1, v1::TaskReport::REFUSED);
  refusal.set_message("no space left on device");
  b.Report(refusal);
  world.Run();
  CHECK(world.node("n2").status.refusals == 1);
  CHECK(a.link->Of(Message::kKill).size() == 1);
  a.Work();
  CHECK(world.job(job).status.retries == 0);
  b.mute = false;
  world.Advance(absl::Minutes(1));  // back-off; both agents fall silent, which does not matter here
  CHECK(world.job(job).status.state != JobState::kFailed);
}

TEST_CASE("dispatch: refusals that are the job's fault fail it, and no node is blamed") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("typo");
  for (int start = 1; start <= 2; ++start) {
    REQUIRE(world.task(job).state == TaskState::kBound);
    Agent& agent = world.task(job).node == world.node("n1").id ? a : b;
    v1::TaskReport refusal =
        agent.ReportFor(job, 0, static_cast<uint32_t>(start), v1::TaskReport::REFUSED);
    refusal.set_fault(v1::TaskReport::JOB);
    refusal.set_message("cannot enter /typo");
    agent.Report(refusal);
    world.Run();
  }
  CHECK(world.job(job).status.state == JobState::kFailed);
  CHECK(absl::StrContains(world.job(job).status.message, "(refused by n1 and n2)"));
  CHECK(world.node("n1").status.refusals + world.node("n2").status.refusals == 0);
}

TEST_CASE("reports: acked only when durable, and repeats are acked and change nothing") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  world.committer.hold = true;
  agent.Work();  // reports RUNNING
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(agent.link->Of(Message::kReportAck).empty());
  world.committer.Release();
  CHECK(agent.link->Of(Message::kReportAck).size() == 1);

  world.committer.hold = false;
  const size_t batches = world.committer.batches;
  agent.Report(agent.journal.begin()->second);
  world.Run();
  CHECK(agent.link->Of(Message::kReportAck).size() == 2);
  CHECK(world.committer.batches == batches);
  CHECK(world.gateway->counters().duplicate_reports == 1);
}

TEST_CASE("reports: a repeat of a report that is not durable yet also waits") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  world.Submit("one");
  world.committer.hold = true;
  agent.Work();
  agent.Report(agent.journal.begin()->second);
  world.Run();
  CHECK(agent.link->Of(Message::kReportAck).empty());
  world.committer.Release();
  CHECK(agent.link->Of(Message::kReportAck).size() == 2);
}

TEST_CASE(
    "reports: reports of a task that the node never had are acked, counted and change nothing") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  const JobId job = world.Submit("one");
  a.Work();
  b.Connect();
  const size_t batches = world.committer.batches;
  const JobId unknown{99};
  b.Report(b.ReportFor(unknown, 0, 1, v1::TaskReport::EXITED));  // no such job
  b.Report(b.ReportFor(job, 7, 1, v1::TaskReport::EXITED));      // no such task
  b.Report(b.ReportFor(job, 0, 2, v1::TaskReport::EXITED));      // no such attempt yet
  b.Report(b.ReportFor(job, 0, 0, v1::TaskReport::EXITED));
  b.Report(b.ReportFor(job, 0, 1, v1::TaskReport::EXITED));  // another node's
  v1::TaskReport nonsense = b.ReportFor(job, 0, 1, v1::TaskReport::EXITED);
  nonsense.set_exit_signal(4000);
  b.Report(nonsense);
  b.Report(b.ReportFor(job, 0, 1, static_cast<v1::TaskReport::State>(77)));
  world.Run();
  CHECK(b.link->Of(Message::kReportAck).size() == 7);
  CHECK(world.gateway->counters().unknown_reports == 7);
  CHECK(world.committer.batches == batches);
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK_FALSE(b.link->closed);
}

TEST_CASE("reports: reports of an attempt that has ended are acked and dropped") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  agent.Exit(job, 0, 0);
  const size_t batches = world.committer.batches;
  agent.Report(agent.ReportFor(job, 0, 1, v1::TaskReport::RUNNING));
  agent.Report(agent.ReportFor(job, 0, 1, v1::TaskReport::EXITED));
  world.Run();
  CHECK(world.committer.batches == batches);
  CHECK(world.gateway->counters().duplicate_reports == 2);
  CHECK(world.job(job).status.state == JobState::kSucceeded);
}

TEST_CASE("dispatch: launch data comes from the store when it is no longer in memory") {
  World world;
  const JobId job = world.Submit("one");
  world.Restart();
  Agent agent(&world, "n1");
  agent.Connect();
  REQUIRE(agent.link->Of(Message::kPrepare).size() == 1);
  CHECK(agent.link->Of(Message::kPrepare)[0].prepare().launch().command(1) == "one");
  CHECK(world.dispatcher->counters().store_reads == 1);
  CHECK(world.task(job).attempt == 1);
}

TEST_CASE("dispatch: a job whose stored command is damaged is cancelled, and no node is blamed") {
  World world;
  const JobId job = world.Submit("one");
  REQUIRE(world.loop->Post([](Turn&) {}).ok());
  world.Run();
  Batch damage{.sequence = world.store.LastSequence() + 1, .records = {}, .log = ""};
  const std::string key = JobKey(job);
  std::string record = *world.store.Read(RecordKind::kJobSpec, key);
  record.resize(record.size() - 3);
  damage.records.push_back({RecordKind::kJobSpec, key, record});
  Dispatcher dispatcher(&world.store, &world.executor);
  dispatcher.SetGateway(world.gateway.get());
  REQUIRE(world.store.Append({&damage}).ok());
  auto launch = std::make_shared<LaunchJob>();
  launch->id = launch->cold_of = job;
  launch->name = "one";
  launch->group_names = {"worker"};
  LaunchOrder order;
  order.task = 0;
  order.job = launch;
  dispatcher.Send({order});
  CHECK(dispatcher.counters().unreadable == 1);
  CHECK(world.store.read_errors() == 1);
  world.committer.hold = true;  // the store is ahead of this loop
  world.Run();
  CHECK(world.job(job).status.state == JobState::kCancelled);
}

TEST_CASE("dispatch: while the disk is full agents continue to work, and nothing new starts") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  world.committer.hold = true;
  world.committer.paused = "disk full";
  agent.Exit(job, 0, 0);
  agent.Heartbeat();
  world.Run();
  CHECK(agent.link->Of(Message::kReportAck).size() == 1);  // of RUNNING, sent before
  CHECK(agent.link->Of(Message::kHeartbeatAck).size() == 1);
  CHECK_FALSE(agent.link->closed);
  world.committer.paused.clear();
  world.committer.hold = false;
  world.committer.Release();
  CHECK(agent.link->Of(Message::kReportAck).size() == 2);
}

TEST_CASE("cold cache: bounded in bytes, evicts the oldest entry first") {
  ColdCache cache(1000);
  for (uint64_t i = 1; i <= 10; ++i) {
    cache.Insert({{JobId{i}, std::make_shared<const std::string>(std::string(100, 'x'))}});
  }
  CHECK(cache.Find(JobId{1}) == nullptr);
  CHECK(cache.Find(JobId{6}) == nullptr);
  CHECK(cache.Find(JobId{7}) != nullptr);  // four of 228 bytes fit
  CHECK(cache.Find(JobId{10}) != nullptr);
  CHECK(cache.Find(JobId{11}) == nullptr);
  // An entry that is already present is not added twice, so nothing is evicted for it.
  cache.Insert({{JobId{10}, std::make_shared<const std::string>("other")}});
  CHECK(cache.Find(JobId{7}) != nullptr);
  CHECK(cache.Find(JobId{10})->size() == 100);
}

}  // namespace
}  // namespace berth
