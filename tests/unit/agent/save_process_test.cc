// Tasks whose GPUs are saved while they are frozen, with real processes and control groups, and a
// program that behaves like cuda-checkpoint.
#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/match.h"
#include "tests/unit/agent/fake_cuda_checkpoint.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using testing::Alive;
using testing::Eventually;
using testing::FakeCudaCheckpoint;
using testing::Fixture;
using testing::Kind;

constexpr TaskId kSavedTask{.job_uid = 1, .task = 0, .attempt = 1};

// Has a GPU open, and counts.
struct SavingTask : Fixture {
  SavingTask() : fake(state.path() + "/cuda"), gpu(state.path() + "/nvidia0") {
    std::ofstream(gpu) << "a GPU";
    cuda_checkpoint = fake.program();
    gpu_files = {state.path() + "/nvidia"};
    launch.add_device_uuids("g0");
    launch.add_device_kinds("gpu");
    Restart();
  }
  bool Begin(const std::string& before = "") {
    if (geteuid() != 0 || !MakeIsolation()->HasGroups()) {
      WARN("no control groups: not tested");
      return false;
    }
    Start(kSavedTask, absl::StrCat("exec 9<", gpu, "; trap 'echo asked; exit 3' TERM; ", before,
                                   "while :; do echo line; sleep 0.02 9<&-; done"));
    Await(kSavedTask, Kind::kRunning);
    REQUIRE(Eventually([&] { return !Log(kSavedTask).empty(); }));
    return true;
  }
  TaskEvent Pause(int64_t request) {
    runner->Freeze(kSavedTask, request, true);
    return Await(kSavedTask, Kind::kPaused);
  }
  bool CountsOn() {
    const std::string before = Log(kSavedTask);
    return Eventually([&] { return Log(kSavedTask) != before; });
  }

  FakeCudaCheckpoint fake;
  const std::string gpu;
};

TEST_CASE("a task is saved before it is frozen, and restored after it is thawed") {
  SavingTask f;
  if (!f.Begin()) return;
  const TaskEvent paused = f.Pause(7);
  CHECK(paused.freeze_request == 7);
  CHECK(paused.devices_released);
  CHECK(paused.message.empty());
  CHECK(f.fake.State() == "checkpointed");
  f.Restart();  // the agent
  f.runner->Adopt(f.Record(kSavedTask));
  CHECK(f.Await(kSavedTask, Kind::kPaused).devices_released);
  f.fake.Put("slow-restore", "0.5");
  f.runner->Freeze(kSavedTask, 0, false);
  f.Await(kSavedTask, Kind::kResumed);
  CHECK(f.fake.State() == "running");  // before it is said to run
  CHECK(f.CountsOn());
  CHECK(f.Pause(9).devices_released);
  f.runner->Freeze(kSavedTask, 10, true);  // another request, of the same state
  CHECK(f.Await(kSavedTask, Kind::kPaused).devices_released);
}

TEST_CASE("a task that cannot be saved is frozen with its devices, and goes on") {
  SavingTask f;
  f.fake.Put("fail-checkpoint", "UVM is not supported\n");
  if (!f.Begin()) return;
  const TaskEvent paused = f.Pause(7);
  CHECK_FALSE(paused.devices_released);
  CHECK(paused.message == "cuda-checkpoint exited with 1: UVM is not supported");
  CHECK(f.fake.State() == "running");
  const std::string log = f.Log(kSavedTask);
  absl::SleepFor(absl::Milliseconds(200));
  CHECK(f.Log(kSavedTask).size() <= log.size() + 10);  // it stands still
  f.runner->Freeze(kSavedTask, 0, false);
  f.Await(kSavedTask, Kind::kResumed);
  CHECK(f.CountsOn());
  f.fake.Remove("fail-checkpoint");
  CHECK(f.Pause(8).devices_released);
}

TEST_CASE("a task with two processes that have GPUs open keeps its devices") {
  SavingTask f;
  if (!f.Begin("sleep 600 & ")) return;  // it inherits the file
  const TaskEvent paused = f.Pause(7);
  CHECK_FALSE(paused.devices_released);
  CHECK_THAT(paused.message, Catch::Contains("of its processes have GPUs open"));
  CHECK(f.fake.Get("calls").empty());
}

TEST_CASE("a task that is resumed while it is being saved goes on") {
  SavingTask f;
  f.fake.Put("slow-checkpoint", "1");
  if (!f.Begin()) return;
  f.runner->Freeze(kSavedTask, 7, true);
  REQUIRE(Eventually([&] { return absl::StrContains(f.fake.Get("calls"), "checkpoint"); }));
  f.runner->Freeze(kSavedTask, 0, false);
  f.Await(kSavedTask, Kind::kResumed);
  CHECK(f.fake.State() == "running");
  CHECK(absl::StrContains(f.fake.Get("calls"), "restore"));
  CHECK(f.CountsOn());
}

TEST_CASE("a task whose GPUs are lent is stopped without getting them back") {
  SavingTask f;
  if (!f.Begin()) return;
  CHECK(f.Pause(7).devices_released);
  SECTION("by the server: it gets its signal") {
    f.runner->Kill(kSavedTask, "SIGTERM", absl::Seconds(20), v1::TaskReport::KILLED);
    const TaskEvent exited = f.Await(kSavedTask, Kind::kExited);
    CHECK(exited.exit_code == 3);
    CHECK(exited.cause == v1::TaskReport::KILLED);
  }
  SECTION("at once") {
    f.runner->Kill(kSavedTask, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    CHECK(f.Await(kSavedTask, Kind::kExited).exit_signal == SIGKILL);
  }
  SECTION("its supervisor is killed") {
    const SupervisorStatus status = f.Status(kSavedTask);
    kill(static_cast<pid_t>(status.supervisor_pid), SIGKILL);
    CHECK(f.Await(kSavedTask, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
    CHECK_FALSE(Alive(static_cast<pid_t>(status.pid)));
  }
  CHECK_FALSE(absl::StrContains(f.fake.Get("calls"), "restore"));
  CHECK(f.fake.State() == "checkpointed");
}

TEST_CASE("a task that is stopped while it is being saved gets its GPUs back for its grace") {
  SavingTask f;
  f.fake.Put("slow-checkpoint", "1");
  if (!f.Begin("trap '' TERM; ")) return;
  f.runner->Freeze(kSavedTask, 7, true);
  REQUIRE(Eventually([&] { return absl::StrContains(f.fake.Get("calls"), "checkpoint"); }));
  f.runner->Kill(kSavedTask, "SIGTERM", absl::Seconds(5), v1::TaskReport::KILLED);
  CHECK(f.Await(kSavedTask, Kind::kExited).exit_signal == SIGKILL);
  CHECK(f.fake.State() == "running");
}

TEST_CASE("a lease that lapses ends a task whose GPUs are lent") {
  SavingTask f;
  f.launch.set_fence(true);
  const absl::Duration end = SystemClock().Steady() + absl::Seconds(4);
  f.runner->SetLease(end, end);
  if (!f.Begin()) return;
  CHECK(f.Pause(7).devices_released);
  CHECK(f.Await(kSavedTask, Kind::kExited).cause == v1::TaskReport::LEASE_LAPSED);
  CHECK_FALSE(absl::StrContains(f.fake.Get("calls"), "restore"));
}

TEST_CASE("a task that cannot be restored fails, after some attempts") {
  SavingTask f;
  if (!f.Begin()) return;
  CHECK(f.Pause(7).devices_released);
  SECTION("in the end it can") {
    f.fake.Put("fail-restore", "out of memory\n");
    f.runner->Freeze(kSavedTask, 0, false);
    REQUIRE(Eventually([&] { return absl::StrContains(f.fake.Get("calls"), "restore"); }));
    f.fake.Remove("fail-restore");
    f.Await(kSavedTask, Kind::kResumed);
    CHECK(f.CountsOn());
  }
  SECTION("never") {
    f.fake.Put("fail-restore", "out of memory\n");
    f.runner->Freeze(kSavedTask, 0, false);
    const TaskEvent exited = f.Await(kSavedTask, Kind::kExited);
    CHECK(exited.exit_code != 0);
    CHECK(exited.message ==
          "what it had on its GPUs could not be restored: cuda-checkpoint exited with 1: out of "
          "memory");
  }
}

TEST_CASE("a task on a node without cuda-checkpoint keeps its devices") {
  SavingTask f;
  f.cuda_checkpoint.clear();
  f.Restart();
  if (!f.Begin()) return;
  const TaskEvent paused = f.Pause(7);
  CHECK_FALSE(paused.devices_released);
  CHECK(paused.message == "the node had no cuda-checkpoint when the task started");
}

}  // namespace
}  // namespace berth
