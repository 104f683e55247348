// What agents tell about running tasks: what is kept, what becomes a fact, what is ignored.
#include "server/controllers/progress_book.h"

#include <catch2/catch.hpp>

#include "server/convert/values.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::JobOptions;
using testing::World;
using MessageCase = v1::ServerMessage::MessageCase;

void AddGpu(v1::NodeInventory& inventory, const std::string& uuid) {
  v1::Device& gpu = *inventory.add_devices();
  gpu.set_kind("gpu");
  gpu.set_uuid(uuid);
}

// A server with a book, and agents n1.. that run a watched gang of one task each.
struct Server {
  explicit Server(int tasks, JobOptions options = {.watchdog = absl::Minutes(10)},
                  bool freezes = false) {
    world.gateway->SetProgressBook(&book);
    world.loop->AddObserver(&book);
    for (int i = 1; i <= tasks; ++i) {
      agents.push_back(std::make_unique<Agent>(&world, absl::StrCat("n", i)));
      agents.back()->inventory.set_cpu_millis(1000);
      agents.back()->inventory.set_freezes(freezes);
      AddGpu(agents.back()->inventory, absl::StrCat("GPU-", i));
      agents.back()->Connect();
    }
    options.tasks = tasks;
    job = world.Submit("train", options);
    Work();
    REQUIRE(world.job(job).status.state == JobState::kRunning);
  }
  void Work() {
    for (int i = 0; i < 4; ++i) {
      for (auto& agent : agents) agent->Work();
      world.Run();
    }
  }
  Agent& On(uint32_t task) {
    const std::string& name = world.state().nodes().At(world.task(job, task).node).spec.name;
    for (auto& agent : agents) {
      if (agent->name == name) return *agent;
    }
    FAIL("no agent");
    return *agents[0];
  }
  v1::TaskProgress Of(uint32_t task) const {
    v1::TaskProgress progress;
    progress.mutable_key()->set_job_uid(job.value);
    progress.mutable_key()->set_task(task);
    progress.mutable_key()->set_attempt(world.task(job, task).attempt);
    return progress;
  }
  void Tell(uint32_t task, const v1::TaskProgress& progress) {
    v1::AgentMessage message;
    message.set_epoch(On(task).epoch);
    *message.mutable_progress()->add_tasks() = progress;
    On(task).Send(std::move(message));
    world.Run();
  }
  v1::JobStatus Status() const {
    v1::JobStatus status;
    book.Render(world.state(), world.job(job), &status);
    return status;
  }

  bool facts = true;
  ProgressBook book{[this] { return facts; }};
  World world;
  std::vector<std::unique_ptr<Agent>> agents;
  JobId job;
};

v1::TaskProgress Saved(v1::TaskProgress progress, int64_t step) {
  progress.mutable_checkpoint()->set_step(step);
  progress.mutable_checkpoint()->set_where(v1::Checkpoint::SHARED);
  return progress;
}

v1::TaskProgress Hung(v1::TaskProgress progress, int64_t step, bool hung = true) {
  progress.set_step(step);
  progress.set_hung(hung);
  ToProto(hung ? absl::Minutes(10) : absl::Seconds(1), progress.mutable_still());
  return progress;
}

TEST_CASE("progress: what is done to prepare a task is shown until it is prepared") {
  Server server(1);
  World& world = server.world;
  Agent& agent = server.On(0);
  Agent other(&world, "n2");
  other.inventory.set_cpu_millis(1000);
  AddGpu(other.inventory, "GPU-2");
  other.Connect();
  const JobId waits = world.Submit("waits", {.tasks = 1});
  world.Run();
  REQUIRE(world.task(waits, 0).state == TaskState::kBound);
  v1::AgentMessage message;
  message.set_epoch(other.epoch);
  v1::TaskProgress& progress = *message.mutable_progress()->add_tasks();
  progress.mutable_key()->set_job_uid(waits.value);
  progress.mutable_key()->set_attempt(1);
  progress.set_status("pulling the image: 1 of 2 MiB");
  progress.set_ready(true);  // not of a task that does not run
  other.Send(std::move(message));
  world.Run();
  const auto status = [&] {
    v1::JobStatus out;
    server.book.Render(world.state(), world.job(waits), &out);
    return out.progress().status();
  };
  CHECK(status() == "worker-0: pulling the image: 1 of 2 MiB");
  CHECK_FALSE(world.task(waits, 0).ready);
  for (int i = 0; i < 4; ++i) {
    agent.Work();
    other.Work();
    world.Run();
  }
  CHECK(world.job(waits).status.state == JobState::kRunning);
  CHECK(status().empty());
}

TEST_CASE("progress: steps are kept in memory, and readiness is a fact") {
  Server server(2);
  v1::TaskProgress progress = server.Of(0);
  progress.set_ready(true);
  progress.set_step(7);
  progress.set_step_time_us(1500);
  progress.set_status("epoch 1 of 3");
  progress.set_dropped(4);
  server.Tell(0, progress);
  progress = server.Of(1);
  progress.set_step(9);
  server.Tell(1, progress);
  CHECK(server.world.task(server.job, 0).ready);
  CHECK_FALSE(server.world.task(server.job, 1).ready);
  const v1::JobProgress told = server.Status().progress();
  CHECK(told.step() == 7);
  CHECK(told.task() == "worker-0");
  CHECK(told.ready() == 1);
  CHECK(told.dropped() == 4);
  CHECK(DurationFrom(told.step_time()) == absl::Microseconds(1500));
  CHECK(server.book.Steps(10) == std::vector<std::pair<JobId, int64_t>>{{server.job, 7}});
  CHECK(server.book.counters().dropped_datagrams == 4);

  SECTION("until the task ends") {
    server.On(0).Exit(server.job, 0, 1);
    server.Work();
    CHECK(server.Status().progress().step() == 0);
    CHECK(server.book.Steps(10).empty());
  }
  SECTION("a restart of the server knows readiness, and nothing else") {
    server.world.Restart();
    CHECK(server.world.task(server.job, 0).ready);
  }
}

TEST_CASE("progress: a checkpoint of a gang is recorded once for each step, and not too often") {
  Server server(2);
  const auto step = [&] { return server.world.job(server.job).status.checkpoint.step; };
  const size_t before = server.world.committer.batches;
  server.Tell(0, Saved(server.Of(0), 100));
  CHECK(step() == 100);
  CHECK(server.world.committer.batches == before + 1);
  server.Tell(1, Saved(server.Of(1), 100));
  server.Tell(1, Saved(server.Of(1), 101));  // within 5 s
  CHECK(step() == 100);
  CHECK(server.world.committer.batches == before + 1);
  server.world.clock.Advance(absl::Seconds(5));
  server.Tell(1, Saved(server.Of(1), 101));
  CHECK(step() == 101);
  CHECK(server.world.task(server.job, 1).saved == server.world.clock.Now());
  server.world.Restart();
  CHECK(step() == 101);
}

TEST_CASE("progress: a store of an older format gets no facts, the rest works") {
  Server server(1);
  server.facts = false;
  v1::TaskProgress progress = Saved(server.Of(0), 100);
  progress.set_ready(true);
  progress.set_step(100);
  server.Tell(0, progress);
  CHECK_FALSE(server.world.task(server.job, 0).ready);
  CHECK(server.world.job(server.job).status.checkpoint == Checkpoint{});
  CHECK(server.Status().progress().step() == 100);
}

TEST_CASE("progress: a gang that hangs is asked for its stacks, also after a reconnect") {
  Server server(2);
  server.Tell(0, Hung(server.Of(0), 7));
  CHECK_FALSE(Hangs(server.world.job(server.job)));
  server.Tell(1, Hung(server.Of(1), 5));
  REQUIRE(Hangs(server.world.job(server.job)));
  CHECK(server.world.job(server.job).status.hang.step == 5);
  for (uint32_t task : {0u, 1u}) {
    const auto asked = server.On(task).link->Of(MessageCase::kSignalTask);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].signal_task().signal() == "SIGABRT");
    CHECK(asked[0].signal_task().reason() == "it hangs");
  }
  SECTION("it is asked again with the same number") {
    const int64_t request =
        server.On(1).link->Of(MessageCase::kSignalTask)[0].signal_task().request();
    server.On(1).Disconnect();
    server.On(1).Connect();
    const auto again = server.On(1).link->Of(MessageCase::kSignalTask);
    REQUIRE(again.size() == 1);
    CHECK(again[0].signal_task().request() == request);
  }
  SECTION("it goes on") {
    server.Tell(0, Hung(server.Of(0), 8, /*hung=*/false));
    CHECK_FALSE(Hangs(server.world.job(server.job)));
  }
  SECTION("it does not, and restarts") {
    server.world.Advance(absl::Seconds(11));
    CHECK(server.world.job(server.job).status.state == JobState::kCompleting);  // no retries
    CHECK(server.world.job(server.job).status.message.find("worker-1 hangs on n") == 0);
  }
}

TEST_CASE("progress: launches carry the watchdog's times") {
  Server server(1, {.watchdog = absl::Minutes(45)});
  const auto prepares = server.On(0).link->Of(MessageCase::kPrepare);
  REQUIRE(prepares.size() == 1);
  const v1::Watchdog& watchdog = prepares[0].prepare().launch().watchdog();
  CHECK(DurationFrom(watchdog.timeout()) == absl::Minutes(45));
  CHECK(DurationFrom(watchdog.start()) == absl::Minutes(45));
  CHECK(Server(1, {}).On(0).link->Of(MessageCase::kPrepare)[0].prepare().launch().has_watchdog() ==
        false);
}

TEST_CASE("progress: attempts that do not run there are ignored, and bad messages are refused") {
  Server server(2);
  v1::TaskProgress progress = server.Of(0);
  progress.set_step(7);
  progress.mutable_key()->set_attempt(2);
  server.Tell(0, progress);
  progress.mutable_key()->set_attempt(1);
  server.Tell(1, progress);  // told by another node
  progress.mutable_key()->set_job_uid(99);
  server.Tell(0, progress);
  CHECK(server.book.counters().stale == 3);
  CHECK(server.book.Steps(10).empty());
  progress = server.Of(0);
  progress.set_step(7);
  progress.mutable_key()->set_incarnation(5);
  server.Tell(0, progress);
  CHECK(server.book.Steps(10).empty());

  v1::Progress message;
  for (int i = 0; i <= kMaxToldTasks; ++i) message.add_tasks();
  CHECK_FALSE(ValidateProgress(message).ok());
  message.Clear();
  message.add_tasks()->set_status(std::string(kMaxToldStatus + 1, 'x'));
  CHECK_FALSE(ValidateProgress(message).ok());
  message.Clear();
  message.add_tasks()->set_step(-1);
  CHECK_FALSE(ValidateProgress(message).ok());
  progress = server.Of(0);
  progress.set_step_time_us(-1);
  server.Tell(0, progress);
  CHECK(server.On(0).link->closed);
}

v1::TaskProgress Idles(v1::TaskProgress progress, int minutes) {
  if (minutes > 0) ToProto(absl::Minutes(minutes), progress.mutable_idle());
  return progress;
}

bool HasIdleCondition(const v1::JobStatus& status) {
  return std::any_of(status.conditions().begin(), status.conditions().end(),
                     [](const v1::JobCondition& one) {
                       return one.kind() == v1::JobCondition::IDLE_DEVICES &&
                              one.detail() == "all its devices have been idle for 20m";
                     });
}

TEST_CASE("progress: a job idles if all its devices do") {
  Server server(2, {.gpus = 1});
  server.Tell(0, Idles(server.Of(0), 30));
  CHECK_FALSE(HasIdleCondition(server.Status()));
  CHECK(server.book.IdleJobs() == 1);
  server.Tell(1, Idles(server.Of(1), 20));
  CHECK(HasIdleCondition(server.Status()));
  CHECK_FALSE(server.Status().has_progress());
  server.Tell(0, server.Of(0));
  CHECK_FALSE(HasIdleCondition(server.Status()));
  CHECK(server.world.job(server.job).status.state == JobState::kRunning);
}

TEST_CASE("progress: an idle job is suspended if it asks for that") {
  const bool suspends = GENERATE(true, false);
  Server server(2, {.gpus = 1, .suspends_idle = suspends});
  server.Tell(0, Idles(server.Of(0), 30));
  CHECK_FALSE(server.world.job(server.job).status.suspended);
  server.Tell(1, Idles(server.Of(1), 20));
  server.Work();
  const JobStatus& status = server.world.job(server.job).status;
  CHECK(status.suspended == suspends);
  if (!suspends) return;
  CHECK(status.state == JobState::kSuspended);
  CHECK(status.message == "suspended: its devices were idle for 20m");
}

v1::TaskProgress Unused(v1::TaskProgress progress, int minutes, v1::Interactive::Action action) {
  ToProto(absl::Minutes(minutes), progress.mutable_unused());
  progress.set_unused_action(action);
  return progress;
}

TEST_CASE("progress: an interactive job ends or is suspended once none of its tasks is used") {
  const auto action = GENERATE(v1::Interactive::END, v1::Interactive::SUSPEND);
  Server server(2, {});
  server.Tell(0, Unused(server.Of(0), 30, action));
  server.Work();
  CHECK_FALSE(server.world.job(server.job).status.cancelled);
  CHECK_FALSE(server.world.job(server.job).status.suspended);
  SECTION("the other one is used again") {
    server.Tell(0, server.Of(0));
    server.Tell(1, Unused(server.Of(1), 20, action));
    server.Work();
    CHECK(server.world.job(server.job).status.state == JobState::kRunning);
  }
  SECTION("both are unused") {
    server.Tell(1, Unused(server.Of(1), 20, action));
    server.Work();
    const JobStatus& status = server.world.job(server.job).status;
    CHECK(status.cancelled == (action == v1::Interactive::END));
    CHECK(status.suspended == (action == v1::Interactive::SUSPEND));
    const std::string why =
        "nobody has used this interactive job, and it has done nothing, for 20m";
    if (status.suspended) CHECK(status.message == "suspended: " + why);
    if (status.cancelled) CHECK(status.message == why);
  }
}

TEST_CASE("progress: an unused interactive job is paused, or suspended where that is impossible") {
  const bool freezes = GENERATE(true, false);
  Server server(2, {}, freezes);
  server.Tell(0, Unused(server.Of(0), 30, v1::Interactive::PAUSE));
  server.Tell(1, Unused(server.Of(1), 20, v1::Interactive::PAUSE));
  server.Work();
  const JobStatus& status = server.world.job(server.job).status;
  const std::string why = "nobody has used this interactive job, and it has done nothing, for 20m";
  CHECK(status.suspended);
  CHECK(status.pause.wanted == freezes);
  CHECK(status.message == (freezes ? "paused: " : "suspended: ") + why);
  CHECK(status.state == (freezes ? JobState::kRunning : JobState::kSuspended));
  CHECK(IsPaused(status) == freezes);
}

}  // namespace
}  // namespace berth
