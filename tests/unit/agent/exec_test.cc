// Commands inside tasks, and node health: the agent's work besides running tasks.
#include <pwd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "clients/agent/exec_host.h"
#include "clients/agent/health_checks.h"
#include "clients/agent/supervisor/namespaces.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

// A waiting task, and a host for commands inside it.
struct World {
  World() : f("/run") {
    signal(SIGPIPE, SIG_IGN);
    if (geteuid() == 0) f.user = "nobody";
    f.Restart();
    f.Start(kTask, "echo task > /tmp/mark; exec sleep 1000");
    f.Await(kTask, Kind::kRunning);
    host =
        std::make_unique<ExecHost>(ProgramBeside("berth-supervisor"), f.runner->tasks_directory());
  }
  ~World() {
    host.reset();
    f.runner->Kill(kTask, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    f.Await(kTask, Kind::kExited);
  }
  void Open(const std::string& script, bool terminal = false) {
    v1::OpenExec open;
    open.set_request(1);
    *open.mutable_key() = ToKey(kTask);
    for (const std::string& word : {std::string("sh"), std::string("-c"), script})
      open.add_command(word);
    if (terminal) {
      open.mutable_terminal()->set_rows(33);
      open.mutable_terminal()->set_columns(77);
    }
    host->Open(open);
  }
  void Look() {
    for (const v1::ExecOutput& output : host->Poll()) {
      (output.stream() == v1::STDERR ? err : out) += output.data();
      consumed += output.consumed();
      if (!output.end()) continue;
      ended = true;
      exit_code = output.exit_code();
      error = output.error();
    }
  }
  bool AwaitEnd() {
    return Eventually([&] {
      Look();
      return ended;
    });
  }
  void Send(const std::string& data, bool end = false) {
    v1::ExecInput input;
    input.set_request(1);
    input.set_data(data);
    input.set_end(end);
    host->Input(input);
  }

  Fixture f;
  std::unique_ptr<ExecHost> host;
  std::string out, err, error;
  uint64_t consumed = 0;
  bool ended = false;
  int exit_code = -1;
};

TEST_CASE(
    "a command inside a task gets its user, environment and directory, and returns its exit code") {
  World world;
  world.Open("id -un; echo $BERTH_TASK_DIR; pwd; cat; echo bad >&2; exit 7");
  world.Send("to the command\n", true);
  REQUIRE(world.AwaitEnd());
  CHECK(world.exit_code == 7);
  const std::string directory = world.f.state.path() + "/tasks/1-0-1";
  const std::string user = geteuid() == 0 ? "nobody" : getpwuid(geteuid())->pw_name;
  CHECK(world.out ==
        absl::StrCat(user, "\n", directory, "\n", directory, "/work\nto the command\n"));
  CHECK(world.err == "bad\n");
  CHECK(world.consumed == 15);
}

TEST_CASE("a command sees the task's /tmp, and is in its control group") {
  World world;
  if (geteuid() != 0 || TryNamespaces() != 0) return;
  world.Open("cat /tmp/mark; cat /proc/self/cgroup");
  REQUIRE(world.AwaitEnd());
  CHECK(absl::StartsWith(world.out, "task\n"));
  if (absl::StrContains(world.f.MakeIsolation()->description(), "cgroups: version"))
    CHECK(absl::StrContains(world.out, "/1-0-1"));
}

TEST_CASE("a command with a terminal") {
  World world;
  world.Open("stty size; read line; echo got $line", true);
  world.Send("word\n");
  REQUIRE(world.AwaitEnd());
  CHECK(world.exit_code == 0);
  CHECK(absl::StrContains(world.out, "33 77\r\n"));
  CHECK(absl::StrContains(world.out, "got word\r\n"));
}

TEST_CASE("output waits for confirmation, input beyond the window ends the session") {
  World world;
  SECTION("output") {
    world.Open("head -c 3000000 /dev/zero");
    CHECK_FALSE(Eventually(
        [&] {
          world.Look();
          return world.out.size() > kExecWindow + kMaxExecDataBytes;
        },
        absl::Seconds(1)));
    CHECK(world.out.size() >= kExecWindow);
    CHECK(Eventually([&] {
      v1::ExecInput confirmed;
      confirmed.set_request(1);
      confirmed.set_consumed(kExecWindow / 2);
      world.host->Input(confirmed);
      world.Look();
      return world.ended;
    }));
    CHECK(world.out.size() == 3000000);
    CHECK(world.exit_code == 0);
  }
  SECTION("output that is still in the pipe when the command has ended") {
    world.Open(absl::StrCat("head -c ", kExecWindow,
                            " /dev/zero; read line; head -c 30000 /dev/zero; echo > ended"));
    REQUIRE(Eventually([&] {
      world.Look();
      return world.out.size() == kExecWindow;
    }));
    world.Send("\n");
    const std::string ended = world.f.state.path() + "/tasks/1-0-1/work/ended";
    REQUIRE(Eventually([&] { return access(ended.c_str(), F_OK) == 0; }));
    absl::SleepFor(absl::Milliseconds(200));
    world.Look();
    REQUIRE_FALSE(world.ended);
    v1::ExecInput confirmed;
    confirmed.set_request(1);
    confirmed.set_consumed(world.out.size());
    world.host->Input(confirmed);
    REQUIRE(world.AwaitEnd());
    CHECK(world.out.size() == kExecWindow + 30000);
  }
  SECTION("input") {
    world.Open("sleep 1000");
    for (int i = 0; i < 8; ++i) world.Send(std::string(kMaxExecDataBytes, 'x'));
    REQUIRE(world.AwaitEnd());
    CHECK(world.error == "input exceeds the flow-control window");
  }
}

TEST_CASE("a missing command fails, and commands end with their task") {
  World world;
  SECTION("not found") {
    v1::OpenExec open;
    open.set_request(1);
    *open.mutable_key() = ToKey(kTask);
    open.add_command("no-such-command");
    world.host->Open(open);
    REQUIRE(world.AwaitEnd());
    CHECK(world.exit_code == 127);
    CHECK(absl::StrContains(world.err, "no-such-command"));
  }
  SECTION("the task ends") {
    world.Open("echo $$; sleep 1000");
    REQUIRE(Eventually([&] {
      world.Look();
      return absl::StrContains(world.out, "\n");
    }));
    const pid_t pid =
        PidOutside(std::atoi(world.out.c_str()), static_cast<pid_t>(world.f.Status(kTask).pid));
    CHECK(Alive(pid));
    world.host->EndTask(kTask);
    world.Look();
    CHECK(world.error == "the task has ended");
    CHECK(Eventually([&] { return !Alive(pid); }));
  }
  SECTION("no command to run") {
    v1::OpenExec open;
    open.set_request(1);
    world.host->Open(open);
    world.Look();
    CHECK(world.error == "no command");
  }
}

TEST_CASE("a condition starts after some bad results, and ends after some good ones") {
  HealthBook book(2, 3);
  const auto note = [&](bool good) {
    return book.Note({"disk-space", good, good ? "" : "full"}, v1::NodeCondition::DRAIN);
  };
  CHECK_FALSE(note(false));
  CHECK_FALSE(note(true));
  CHECK_FALSE(note(false));
  CHECK(note(false));
  REQUIRE(book.Conditions().conditions_size() == 1);
  CHECK(book.Conditions().conditions(0).message() == "full");
  CHECK_FALSE(note(true));
  CHECK_FALSE(note(true));
  CHECK_FALSE(note(false));
  CHECK_FALSE(note(true));
  CHECK_FALSE(note(true));
  CHECK(note(true));
  CHECK(book.Conditions().conditions().empty());
  CHECK(book.Raise("epilog", v1::NodeCondition::DRAIN, "x"));
  CHECK_FALSE(book.Raise("epilog", v1::NodeCondition::DRAIN, "y"));
  CHECK_FALSE(book.Note({"epilog", true, ""}, v1::NodeCondition::DRAIN));
  CHECK(book.Conditions().conditions_size() == 1);
}

TEST_CASE("health checks") {
  CHECK(CheckDiskSpace("/", 1).good);
  const CheckResult full = CheckDiskSpace("/", int64_t{1} << 60);
  CHECK_FALSE(full.good);
  CHECK(absl::StrContains(full.message, "the disk is nearly full"));
  CHECK_FALSE(CheckDiskSpace("/no/such/place", 1).good);
  const std::atomic<bool> on = false;
  CHECK(CheckCommand({"/bin/true"}, absl::Seconds(10), on).good);
  CHECK(CheckCommand({"/bin/sh", "-c", "echo broken; echo more; exit 1"}, absl::Seconds(10), on)
            .message == "broken");
  CHECK(CheckCommand({"/bin/sleep", "1000"}, absl::Milliseconds(200), on).message ==
        "/bin/sleep timed out");
  CHECK_FALSE(CheckCommand({"/no/such/program"}, absl::Seconds(1), on).good);
  const TemporaryDirectory sys;
  const std::string port = sys.path() + "/mlx5_0/ports/1";
  std::filesystem::create_directories(port);
  InfinibandSeen seen;
  absl::Time now = absl::UnixEpoch();
  const auto look = [&](const std::string& state) {
    std::ofstream(port + "/state") << state << "\n";
    now += absl::Seconds(10);
    const CheckResult result = CheckInfiniband(sys.path(), now, &seen);
    return result.good ? "good" : result.message;
  };
  const auto count = [&](const std::string& name, int64_t value) {
    std::filesystem::create_directories(port + "/counters");
    std::ofstream(port + "/counters/" + name) << value << "\n";
  };
  CHECK(look("1: DOWN") == "good");  // was never up: not cabled
  CHECK(look("4: ACTIVE") == "good");
  CHECK(look("1: DOWN") == "no longer ACTIVE: mlx5_0/1");
  count("symbol_error", 5000);
  count("link_downed", 3);
  CHECK(look("4: ACTIVE") == "good");  // earlier errors are not known to be new
  count("symbol_error", 5100);
  CHECK(look("4: ACTIVE") == "good");  // ten a second
  count("symbol_error", 5201);
  CHECK(look("4: ACTIVE") == "errors: mlx5_0/1 symbol_error +101");
  CHECK(look("4: ACTIVE") == "good");
  count("link_downed", 4);
  count("symbol_error", 0);  // the counter was reset
  CHECK(look("4: ACTIVE") == "errors: mlx5_0/1 link_downed +1");
  CHECK(look("4: ACTIVE") == "good");
}

}  // namespace
}  // namespace berth
