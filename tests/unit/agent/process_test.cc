// Real processes under real supervisors.
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "clients/agent/leftovers.h"
#include "clients/agent/log_files.h"
#include "clients/agent/process_runner.h"
#include "clients/agent/supervisor/namespaces.h"
#include "clients/agent/task_signals.h"
#include "support/clock.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

// The usual lease of an agent.
void SetLease(Fixture& f, absl::Duration end) { REQUIRE(f.runner->SetLease(end, end)); }

TEST_CASE("exit codes and output reach the agent") {
  Fixture f;
  f.Start(kTask, "echo out $BERTH_NODE; echo err >&2; pwd; cat; exit 7");
  f.Await(kTask, Kind::kRunning);
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_code == 7);
  CHECK(exited.exit_signal == 0);
  CHECK(exited.cause == v1::TaskReport::CAUSE_UNSPECIFIED);
  CHECK(f.Log(kTask) == absl::StrCat("out n1\n", f.state.path(), "/tasks/1-0-1/work\n"));
  CHECK(f.Log(kTask, v1::STDERR) == "err\n");
  CHECK(f.port >= 26000);
  f.runner->Remove(kTask);
  CHECK_FALSE(std::filesystem::exists(f.state.path() + "/tasks/1-0-1"));
}

TEST_CASE("death by a signal is reported") {
  Fixture f;
  f.Start(kTask, "kill -SEGV $$");
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_signal == SIGSEGV);
  CHECK(exited.exit_code == 128 + SIGSEGV);
}

TEST_CASE("a missing command ends the task, a missing directory refuses the start") {
  Fixture f;
  f.launch.add_command("berth-no-such-program");
  f.StartLaunch(kTask);
  TaskEvent event = f.Await(kTask, Kind::kExited);
  CHECK(event.exit_code == 127);
  CHECK(event.message == "command not found: berth-no-such-program");
  f.launch.set_command(0, "/etc/passwd");
  f.StartLaunch({2, 0, 1});
  event = f.Await({2, 0, 1}, Kind::kExited);
  CHECK(event.exit_code == 126);
  f.launch.set_working_dir("/no/such/directory");
  f.StartLaunch({3, 0, 1});
  event = f.Await({3, 0, 1}, Kind::kRefused);
  CHECK(event.message == "cannot enter directory /no/such/directory: No such file or directory");
}

TEST_CASE("a stop signal goes to the whole group, and can be handled") {
  Fixture f;
  f.Start(kTask, "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.05; done");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "ready\n"; }));
  f.runner->Kill(kTask, "SIGTERM", absl::Seconds(20), v1::TaskReport::KILLED);
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_code == 5);
  CHECK(exited.cause == v1::TaskReport::KILLED);
  CHECK(f.Log(kTask) == "ready\ngot it\n");
}

TEST_CASE("SIGKILL comes after the grace, and at once without one") {
  Fixture f;
  f.Start(kTask, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "ready\n"; }));
  const absl::Time begin = absl::Now();
  f.runner->Kill(kTask, "SIGTERM", absl::Milliseconds(300), v1::TaskReport::KILLED);
  TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(absl::Now() - begin >= absl::Milliseconds(290));
  CHECK(exited.exit_signal == SIGKILL);
  f.Start({2, 0, 1}, "trap '' TERM; echo ready; sleep 1000");
  REQUIRE(Eventually([&] { return f.Log({2, 0, 1}) == "ready\n"; }));
  f.runner->Kill({2, 0, 1}, "SIGTERM", absl::Hours(1), v1::TaskReport::KILLED);
  f.runner->Kill({2, 0, 1}, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::LEASE_LAPSED);
  exited = f.Await({2, 0, 1}, Kind::kExited);
  CHECK(exited.exit_signal == SIGKILL);
  CHECK(exited.cause == v1::TaskReport::KILLED);  // the first one counts
}

TEST_CASE("no process of a task outlives it: background children, new sessions, orphans") {
  Fixture f;
  f.Start(kTask,
          "sleep 1000 & (setsid sh -c 'setsid sleep 1001 & echo $! ; sleep 1002' &) ; sleep 0.3; "
          "exit 0");
  const pid_t far = f.PidInLog(kTask);
  CHECK(Alive(far));
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  CHECK_FALSE(Alive(far));
  CHECK(KillLeftovers(TaskMarker(f.state.path() + "/tasks/1-0-1"), 0) == 0);
}

TEST_CASE("output is bounded by rotation") {
  Fixture f;
  f.log_file_bytes = 10000;
  f.Restart();
  f.Start(kTask,
          "i=0; while [ $i -lt 5000 ]; do echo line $i of many lines that are written; i=$((i+1)); "
          "done");
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(f.state.path() + "/tasks/1-0-1")) {
    if (file.path().filename().string().rfind("stdout.", 0) == 0) bytes += file.file_size();
  }
  CHECK(bytes <= 30000);
  CHECK(bytes > 20000);
  const std::string text = f.Log(kTask);
  CHECK(text.size() == bytes);
  CHECK(text.find("line 4999 of") != std::string::npos);
}

TEST_CASE("a task outlives the agent and is adopted, its exit code is known later") {
  Fixture f;
  const std::string gate = f.state.path() + "/gate";
  f.Start(kTask, "while [ ! -e " + gate + " ]; do sleep 0.02; done; exit 42");
  f.Await(kTask, Kind::kRunning);
  const int port = f.port;
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  f.Await(kTask, Kind::kRunning);
  f.runner->Prepare({2, 0, 1}, f.launch, true);
  CHECK(f.Await({2, 0, 1}, Kind::kPrepared).port != port);  // it belongs to the adopted task
  std::ofstream(gate).put('x');
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 42);
}

TEST_CASE("the end of a task without an agent is known from its status file") {
  Fixture f;
  f.Start(kTask, "exit 9");
  const pid_t supervisor = [&] {
    REQUIRE(Eventually([&] { return f.Status(kTask).phase == SupervisorStatus::kExited; }));
    return static_cast<pid_t>(f.Status(kTask).supervisor_pid);
  }();
  CHECK(supervisor > 0);
  f.Restart();
  f.runner->Adopt(f.Record(kTask, agent::v1::TaskRecord::STARTING));
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 9);
}

TEST_CASE("an adopted task can be stopped") {
  Fixture f;
  f.Start(kTask, "sleep 1000");
  f.Await(kTask, Kind::kRunning);
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  f.Await(kTask, Kind::kRunning);
  // Not SIGINT: a shell that is about to exec the command may lose it.
  f.runner->Kill(kTask, "SIGUSR1", absl::Seconds(10), v1::TaskReport::KILLED);
  CHECK(f.Await(kTask, Kind::kExited).exit_signal == SIGUSR1);
}

TEST_CASE("a task whose supervisor is killed does not keep running unnoticed") {
  Fixture f;
  f.Start(kTask, "sleep 1000 & setsid env -i sleep 1001 & echo $!; sleep 1002");
  const pid_t child = f.PidInLog(kTask);
  f.Await(kTask, Kind::kRunning);
  const SupervisorStatus status = f.Status(kTask);
  SECTION("noticed by the agent") {}
  SECTION("while no agent ran") { f.Restart(); }
  kill(static_cast<pid_t>(status.supervisor_pid), SIGKILL);
  if (f.seen.empty()) f.runner->Adopt(f.Record(kTask));
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.cause == v1::TaskReport::SUPERVISOR_LOST);
  CHECK_FALSE(Alive(static_cast<pid_t>(status.pid)));
  CHECK(KillLeftovers(TaskMarker(f.state.path() + "/tasks/1-0-1"), 0) == 0);
  // `env -i` in a separate session: out of reach without a PID namespace, see
  // docs/operators/agents.md.
  if (geteuid() == 0 && TryNamespaces() == 0)
    CHECK_FALSE(Alive(child));
  else
    kill(child, SIGKILL);
}

TEST_CASE("a start that never got a supervisor is reported as refused, and not started") {
  Fixture f;
  f.runner->Prepare(kTask, f.launch, true);
  f.Await(kTask, Kind::kPrepared);
  f.Restart();
  f.runner->Adopt(f.Record(kTask, agent::v1::TaskRecord::STARTING));
  CHECK(f.Await(kTask, Kind::kRefused).fault == v1::TaskReport::NODE);
}

TEST_CASE("the grace counts from the end of the lease, also for a supervisor that notices late") {
  Fixture f;
  f.launch.set_fence(true);
  f.launch.mutable_kill_grace()->set_seconds(120);          // longer than the test waits
  SetLease(f, SystemClock().Steady() - absl::Minutes(10));  // as after the machine slept
  f.Start(kTask, "trap '' TERM; while :; do sleep 0.02; done");
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_signal == SIGKILL);
  CHECK(exited.cause == v1::TaskReport::LEASE_LAPSED);
}

TEST_CASE("the supervisor itself enforces the lease while no agent runs") {
  Fixture f;
  f.launch.set_fence(true);
  f.launch.mutable_kill_grace()->set_seconds(5);
  f.launch.set_kill_signal("SIGUSR1");
  SetLease(f, SystemClock().Steady() + absl::Milliseconds(600));
  f.Start(kTask, "trap 'exit 3' USR1; while :; do sleep 0.02; done");
  f.Await(kTask, Kind::kRunning);
  SetLease(f, SystemClock().Steady() + absl::Milliseconds(900));  // extended once
  const absl::Time begin = absl::Now();
  f.runner.reset();
  REQUIRE(Eventually([&] {
    std::string text;
    SupervisorStatus status;
    ReadWholeFile(f.state.path() + "/tasks/1-0-1/status", &text);
    return DecodeStatus(text, &status) && status.phase == SupervisorStatus::kExited;
  }));
  CHECK(absl::Now() - begin >= absl::Milliseconds(850));
  f.Restart();
  CHECK(ProcessRunner::ReadLease(f.state.path()).has_value());
  f.runner->Adopt(f.Record(kTask));
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_code == 3);
  CHECK(exited.cause == v1::TaskReport::LEASE_LAPSED);
}

TEST_CASE("a supervisor keeps a longer lease, and notices if it ends early") {
  Fixture f;
  f.launch.set_fence(true);
  f.launch.mutable_kill_grace()->set_seconds(5);
  const absl::Duration begin = SystemClock().Steady();
  REQUIRE(f.runner->SetLease(begin + absl::Milliseconds(300), begin + absl::Minutes(10)));
  f.Start(kTask, "trap 'exit 3' TERM; while :; do sleep 0.02; done");
  f.Await(kTask, Kind::kRunning);
  absl::SleepFor(absl::Milliseconds(1200));  // four usual leases
  std::string text;
  SupervisorStatus status;
  ReadWholeFile(f.state.path() + "/tasks/1-0-1/status", &text);
  REQUIRE(DecodeStatus(text, &status));
  CHECK(status.phase == SupervisorStatus::kRunning);
  CHECK(ProcessRunner::ReadLease(f.state.path()) == begin + absl::Minutes(10));
  SetLease(f, SystemClock().Steady() + absl::Milliseconds(700));  // the usual one again
  const absl::Time ended = absl::Now() + absl::Milliseconds(700);
  f.runner.reset();  // without an agent
  REQUIRE(Eventually([&] {
    ReadWholeFile(f.state.path() + "/tasks/1-0-1/status", &text);
    return DecodeStatus(text, &status) && status.phase == SupervisorStatus::kExited;
  }));
  CHECK(absl::Now() >= ended - absl::Milliseconds(50));
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::LEASE_LAPSED);
}

TEST_CASE("tasks run as the configured user") {
  if (geteuid() != 0 || getpwnam("nobody") == nullptr) return;  // only root can
  Fixture f;
  f.user = "nobody";
  f.Restart();
  f.Start(kTask,
          "id -un; id -Gn; touch here && echo writable; cat ../spec 2>/dev/null && echo bad; test "
          "-r $BERTH_HOSTFILE && echo hosts");
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  CHECK(f.Log(kTask) == "nobody\nnogroup\nwritable\nhosts\n");
}

TEST_CASE("root is refused unless it is allowed") {
  if (geteuid() != 0) return;
  config::v1::Agent config;
  config.set_node_name("n1");
  const auto refused = Isolation::Create(config, "/tmp");
  CHECK(refused.status().message() ==
        "tasks must not run as root on this node: allowRootTasks is not set");
}

TEST_CASE("removing an ended task does not follow its links") {
  Fixture f;
  const std::string outside = f.state.path() + "/outside";
  std::filesystem::create_directory(outside);
  std::ofstream(outside + "/keep").put('x');
  f.Start(kTask, "ln -s " + outside + " link; mkdir deep; ln -s " + outside + " deep/link");
  f.Await(kTask, Kind::kExited);
  f.runner->Remove(kTask);
  CHECK_FALSE(std::filesystem::exists(f.state.path() + "/tasks/1-0-1"));
  CHECK(std::filesystem::exists(outside + "/keep"));
}

TEST_CASE("many tasks at once") {
  Fixture f;
  f.launch.clear_command();
  for (uint64_t uid = 1; uid <= 30; ++uid) f.Start({uid, 0, 1}, absl::StrCat("exit ", uid));
  for (uint64_t uid = 1; uid <= 30; ++uid)
    CHECK(f.Await({uid, 0, 1}, Kind::kExited).exit_code == static_cast<int>(uid));
}

TEST_CASE("signal names") {
  CHECK(SignalNumber("SIGTERM") == SIGTERM);
  CHECK(SignalNumber("USR1") == SIGUSR1);
  CHECK(SignalNumber("9") == 9);
  CHECK(SignalNumber("SIGNOPE") == 0);
  CHECK(SignalNumber("0") == 0);
}

}  // namespace
}  // namespace berth
