// Tasks that are frozen, with real processes, and control groups of both versions.
#include <catch2/catch.hpp>
#include <fstream>

#include "clients/agent/supervisor/control_group.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using testing::Alive;
using testing::Eventually;
using testing::Fixture;
using testing::Kind;

constexpr TaskId kFrozenTask{.job_uid = 1, .task = 0, .attempt = 1};

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

TEST_CASE("a group is frozen by the freezer of version 1 if there is one, else by version 2") {
  const testing::TemporaryDirectory root;
  const std::string first = root.path() + "/memory", second = root.path() + "/other";
  std::filesystem::create_directories(first);
  std::filesystem::create_directories(second);
  std::ofstream(second + "/cgroup.freeze") << "0\n";
  std::ofstream(second + "/cgroup.events") << "populated 1\nfrozen 0\n";
  const ControlGroup group({first, second});
  group.SetFrozen(true);
  CHECK(FirstLine(second + "/cgroup.freeze").substr(0, 1) == "1");
  CHECK_FALSE(group.IsFrozen());  // not yet
  std::ofstream(second + "/cgroup.events") << "populated 1\nfrozen 1\n";
  CHECK(group.IsFrozen());
  group.SetFrozen(false);
  CHECK(FirstLine(second + "/cgroup.freeze").substr(0, 1) == "0");
  std::ofstream(first + "/freezer.state") << "THAWED\n";
  std::ofstream(second + "/cgroup.events") << "populated 1\nfrozen 0\n";
  group.SetFrozen(true);
  CHECK(FirstLine(first + "/freezer.state") == "FROZEN");
  CHECK(FirstLine(second + "/cgroup.freeze").substr(0, 1) == "0");
  std::ofstream(first + "/freezer.state") << "FREEZING\n";
  CHECK_FALSE(group.IsFrozen());
  std::ofstream(first + "/freezer.state") << "FROZEN\n";
  CHECK(group.IsFrozen());
}

TEST_CASE("a task is frozen, survives the agent, goes on, and is frozen when it is killed") {
  Fixture f;
  if (geteuid() != 0 || !f.MakeIsolation()->HasGroups()) {
    WARN("no control groups: not tested");
    return;
  }
  f.Start(kFrozenTask, "trap 'echo asked; exit 3' TERM; while :; do echo line; sleep 0.02; done");
  f.Await(kFrozenTask, Kind::kRunning);
  REQUIRE(Eventually([&] { return !f.Log(kFrozenTask).empty(); }));
  f.runner->Freeze(kFrozenTask, 7, false);
  CHECK(f.Await(kFrozenTask, Kind::kPaused).freeze_request == 7);
  absl::SleepFor(absl::Milliseconds(100));  // what it wrote last is in the log
  const std::string log = f.Log(kFrozenTask);
  absl::SleepFor(absl::Milliseconds(200));
  CHECK(f.Log(kFrozenTask) == log);
  f.Restart();
  f.runner->Adopt(f.Record(kFrozenTask));
  f.Await(kFrozenTask, Kind::kRunning);
  CHECK(f.Await(kFrozenTask, Kind::kPaused).freeze_request == 7);
  f.runner->Freeze(kFrozenTask, 8, false);  // another request, of the same state
  CHECK(f.Await(kFrozenTask, Kind::kPaused).freeze_request == 8);
  f.runner->Freeze(kFrozenTask, 0, false);
  CHECK(f.Await(kFrozenTask, Kind::kResumed).began.has_value());
  REQUIRE(Eventually([&] { return f.Log(kFrozenTask) != log; }));
  f.runner->Freeze(kFrozenTask, 9, false);
  f.Await(kFrozenTask, Kind::kPaused);
  f.runner->Kill(kFrozenTask, "SIGTERM", absl::Seconds(20), v1::TaskReport::KILLED);
  const TaskEvent exited = f.Await(kFrozenTask, Kind::kExited);
  CHECK(exited.exit_code == 3);  // it got its signal, and ended by itself
  CHECK(exited.cause == v1::TaskReport::KILLED);
}

TEST_CASE("a frozen task whose supervisor is killed does not survive it") {
  Fixture f;
  if (geteuid() != 0 || !f.MakeIsolation()->HasGroups()) return;
  f.Start(kFrozenTask, "echo $$; while :; do sleep 0.02; done");
  f.Await(kFrozenTask, Kind::kRunning);
  f.runner->Freeze(kFrozenTask, 7, false);
  f.Await(kFrozenTask, Kind::kPaused);
  const SupervisorStatus status = f.Status(kFrozenTask);
  REQUIRE(status.pid > 0);
  kill(static_cast<pid_t>(status.supervisor_pid), SIGKILL);
  CHECK(f.Await(kFrozenTask, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
  CHECK_FALSE(Alive(static_cast<pid_t>(status.pid)));
}

}  // namespace
}  // namespace berth
