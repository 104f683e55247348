// What is private to a task: processes, shared memory, the values of its variables. Without root or
// namespaces the cases do nothing and print a warning.
#include "clients/agent/supervisor/namespaces.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "clients/agent/exec_host.h"
#include "clients/agent/supervisor/expand.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

const TaskId kOther = {2, 0, 1};  // of another job

bool Possible() {
  const bool root =
      geteuid() == 0 && getpwnam("nobody") != nullptr && getpwnam("daemon") != nullptr;
  if (root && TryNamespaces() == 0) return true;
  WARN("no root or no namespaces: not tested");
  return false;
}

// Tasks of the user nobody.
struct Nobody : Fixture {
  explicit Nobody(config::v1::Agent with = {}) : Fixture("/run", std::move(with)) {
    user = "nobody";
    Restart();
  }
  void AddVariable(const std::string& name, const std::string& value) {
    v1::EnvVar* variable = launch.add_env();
    variable->set_name(name);
    variable->set_value(value);
  }
  // Runs the script as a task of another job, to its end. Returns its output.
  std::string Ask(const std::string& script, TaskId id = kOther) {
    Start(id, script);
    Await(id, Kind::kExited);
    return Log(id);
  }
  void End(TaskId id) {
    runner->Kill(id, "SIGKILL", absl::ZeroDuration(), v1::TaskReport::KILLED);
    Await(id, Kind::kExited);
  }
};

TEST_CASE("tasks of one user neither see nor reach the processes of each other") {
  if (!Possible()) return;
  Nobody f;
  f.AddVariable("TOKEN", "s3cr3t-of-one");
  f.Start(kTask, "echo ready; sleep 1000; true");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "ready\n"; }));
  f.launch.clear_env();
  const std::string seen = f.Ask(
      "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c s3cr3t; "
      "for p in /proc/[0-9]*; do cat $p/cmdline; done 2>/dev/null | tr '\\0' ' ' | grep -c "
      "'[s]leep "
      "1000'; kill -9 -1; for p in $(seq 2 400); do test $p = $$ || kill -9 $p; done 2>/dev/null; "
      "echo done");
  CHECK(seen == "0\n0\ndone\n");
  CHECK(Alive(static_cast<pid_t>(f.Status(kTask).pid)));
  CHECK_FALSE(std::any_of(f.seen.begin(), f.seen.end(),
                          [](const TaskEvent& event) { return event.kind == Kind::kExited; }));
  f.End(kTask);
}

TEST_CASE("tasks share processes if they request sharedPid") {
  if (!Possible()) return;
  config::v1::Agent config;
  config.set_shared_pid(true);
  Nobody f(config);
  f.Start(kTask, "exec sleep 4321");
  f.Await(kTask, Kind::kRunning);
  const std::string pid = std::to_string(f.Status(kTask).pid);
  CHECK(f.Ask("tr '\\0' ' ' < /proc/" + pid + "/cmdline") == "sleep 4321 ");
  f.End(kTask);
}

TEST_CASE("a command without handlers ends on SIGTERM, and orphans are reaped") {
  if (!Possible()) return;
  Nobody f;
  f.Start(kTask,
          "(sh -c 'exit 3' & exec sleep 0.1) & sleep 0.5; cat /proc/[0-9]*/stat | grep -c ') Z '; "
          "ls -d /proc/[0-9]* | grep -cx /proc/1; exec sleep 1000");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "0\n1\n"; }));
  f.runner->Kill(kTask, "SIGTERM", absl::Minutes(10), v1::TaskReport::KILLED);
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_signal == SIGTERM);
  CHECK(exited.cause == v1::TaskReport::KILLED);
}

TEST_CASE("all processes of a task end with its first process, and with its supervisor") {
  if (!Possible()) return;
  const bool lost = GENERATE(false, true);
  config::v1::Agent config;
  config.mutable_cgroups()->set_mode(config::v1::ControlGroups::OFF);  // the namespace alone
  Nobody f(config);
  f.Start(kTask, "setsid env -i sh -c 'echo $$; exec sleep 1000' & sleep 1000; true");
  const pid_t hidden = f.PidInLog(kTask);
  REQUIRE(hidden > 0);
  CHECK(Alive(hidden));
  const SupervisorStatus status = f.Status(kTask);
  kill(static_cast<pid_t>(lost ? status.supervisor_pid : status.pid), SIGKILL);
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_signal == SIGKILL);
  CHECK((exited.cause == v1::TaskReport::SUPERVISOR_LOST) == lost);
  CHECK(Eventually([&] { return !Alive(hidden); }, absl::Seconds(5)));
}

TEST_CASE("the process ids of tasks of one job start at different numbers") {
  if (!Possible() || access("/proc/sys/kernel/ns_last_pid", W_OK) != 0) return;
  Nobody f;
  // After the supervisor, and after its thread if a sanitizer adds one.
  const int first = std::stoi(f.Ask("echo $$"));
  CHECK((first == 2 || first == 3));
  f.launch.set_local_rank(3);
  CHECK(f.Ask("echo $$", {2, 3, 1}) == "6145\n");
}

TEST_CASE("a command inside joins the task's processes and shared memory") {
  if (!Possible()) return;
  Nobody f;
  f.Start(kTask, "echo word > /dev/shm/mark; echo $$; exec sleep 1000");
  f.Await(kTask, Kind::kRunning);
  REQUIRE(Eventually([&] { return absl::EndsWith(f.Log(kTask), "\n"); }));
  const int first = std::stoi(f.Log(kTask));
  ExecHost host(ProgramBeside("berth-supervisor"), f.runner->tasks_directory());
  const auto run = [&](uint64_t number, const std::string& script, bool terminal) {
    v1::OpenExec open;
    open.set_request(number);
    *open.mutable_key() = ToKey(kTask);
    for (const std::string& word : {std::string("sh"), std::string("-c"), script})
      open.add_command(word);
    if (terminal) open.mutable_terminal()->set_rows(24);
    host.Open(open);
    std::string text;
    bool ended = false;
    REQUIRE(Eventually([&] {
      for (const v1::ExecOutput& output : host.Poll()) {
        text += output.data();
        if (output.end()) text += absl::StrCat("exit ", output.exit_code());
        ended |= output.end();
      }
      return ended;
    }));
    return text;
  };
  CHECK(Eventually([&] { return run(1, "cat /dev/shm/mark", false) == "word\nexit 0"; }));
  CHECK(run(2,
            absl::StrCat("tr '\\0' ' ' < /proc/", first,
                         "/cmdline; id -un; kill -9 1 2>/dev/null; exit 7"),
            false) == "sleep 1000 nobody\nexit 7");
  CHECK(run(3, "kill -TERM $$", false) == "exit 143");
  CHECK(run(4, "test $(ps -o tpgid= -p $$) -gt 1 && echo in front; exit 5", true) ==
        "in front\r\nexit 5");
  f.End(kTask);
}

// The files of /proc and of `files` in which a process of another user, outside all tasks, finds
// `marker`.
std::string SeenFromOutside(const std::string& marker, const std::vector<std::string>& files) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const passwd* user = getpwnam("daemon");
    if (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0) _exit(1);
    std::vector<std::string> all = files;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      for (const char* file : {"/cmdline", "/environ", "/comm", "/status"})
        all.push_back(entry.path().string() + file);
    }
    for (const std::string& file : all) {
      std::string text;
      if (ReadWholeFile(file, &text) != 0 || text.find(marker) == std::string::npos) continue;
      const std::string line = file + "\n";
      if (write(ends[1], line.data(), line.size()) < 0) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string seen;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    seen.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
  return seen;
}

TEST_CASE("the value of a variable is in no command line that others can see") {
  if (!Possible()) return;
  Nobody f;
  f.AddVariable("TOKEN", "t0k3n-value");
  f.Start(kTask, "echo right $TOKEN; sleep 1000; : $TOKEN");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "right t0k3n-value\n"; }));
  const std::string directory = f.state.path() + "/tasks/1-0-1";
  std::vector<std::string> files = {f.state.path() + "/journal"};
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.push_back(entry.path());
  CHECK(SeenFromOutside("t0k3n-value", files) == "");
  std::string supervisor;
  ReadWholeFile(absl::StrCat("/proc/", f.Status(kTask).supervisor_pid, "/cmdline"), &supervisor);
  CHECK(supervisor == absl::StrCat(ProgramBeside("berth-supervisor"), std::string(1, '\0'),
                                   directory, std::string(1, '\0')));
  f.End(kTask);
}

TEST_CASE("references are expanded by the process that becomes the command") {
  Fixture f;
  v1::EnvVar* variable = f.launch.add_env();
  variable->set_name("NAME");
  variable->set_value("a  b");
  for (const char* word : {"/bin/echo", "-n", "$NAME", "${NAME}!", "$$NAME", "$NONE"})
    f.launch.add_command(word);
  f.StartLaunch(kTask);
  f.Await(kTask, Kind::kExited);
  CHECK(f.Log(kTask) == "a  b a  b! $NAME $NONE");
  std::string spec;
  REQUIRE(ReadWholeFile(f.state.path() + "/tasks/1-0-1/spec", &spec) == 0);
  CHECK(spec.find("arg=a  b") == std::string::npos);
  CHECK(spec.find("arg=$NAME") != std::string::npos);
}

TEST_CASE("the script of a shell is left to the shell") {
  CHECK(ShellScriptAt({"sh", "-c", "x"}) == 2);
  CHECK(ShellScriptAt({"/bin/bash", "-euc", "x", "y"}) == 2);
  CHECK(ShellScriptAt({"bash", "-o", "pipefail", "--norc", "-c", "x"}) == 5);
  CHECK(ShellScriptAt({"bash", "-eo", "pipefail", "-c", "x"}) == 4);
  CHECK(ShellScriptAt({"bash", "-c", "--", "x"}) == 3);
  CHECK(ShellScriptAt({"bash", "script", "-c", "x"}) == 0);
  CHECK(ShellScriptAt({"python3", "-c", "x"}) == 0);
  CHECK(ShellScriptAt({"sh", "-c"}) == 0);
  CHECK(ShellScriptAt({}) == 0);
}

TEST_CASE("the script of a shell is found behind wrapper programs") {
  CHECK(ShellScriptAt({"/usr/bin/env", "bash", "-c", "x"}) == 3);
  CHECK(ShellScriptAt({"env", "-u", "B", "A=b", "sh", "-c", "x"}) == 6);
  CHECK(ShellScriptAt({"env", "--", "A=b", "sh", "-c", "x"}) == 5);
  CHECK(ShellScriptAt({"timeout", "1h", "sh", "-c", "x"}) == 4);
  CHECK(ShellScriptAt({"timeout", "-k", "5", "--signal=INT", "1h", "sh", "-c", "x"}) == 7);
  CHECK(ShellScriptAt({"nice", "-n", "5", "sh", "-c", "x"}) == 5);
  CHECK(ShellScriptAt({"nice", "-5", "sh", "-c", "x"}) == 4);
  CHECK(ShellScriptAt({"nice", "--adjustment", "5", "sh", "-c", "x"}) == 5);
  CHECK(ShellScriptAt({"busybox", "sh", "-c", "x"}) == 3);
  CHECK(ShellScriptAt({"nohup", "setsid", "-w", "bash", "-lc", "x"}) == 5);
  CHECK(ShellScriptAt({"stdbuf", "-oL", "-e", "0", "sh", "-c", "x"}) == 6);
  CHECK(ShellScriptAt({"numactl", "-N", "0", "--membind=0", "sh", "-c", "x"}) == 6);
  CHECK(ShellScriptAt({"taskset", "-c", "0-3", "ionice", "-c", "2", "sh", "-c", "x"}) == 8);
  CHECK(ShellScriptAt({"env", "A=b", "python3", "-c", "x"}) == 0);
  CHECK(ShellScriptAt({"timeout", "1h"}) == 0);
  CHECK(ShellScriptAt({"nice", "-n"}) == 0);
  CHECK(ShellScriptAt({"mpirun", "sh", "-c", "x"}) == 0);
  CHECK(ExpandCommand({"env", "B=$A", "sh", "-c", "$A"}, {"A=1"}) ==
        std::vector<std::string>{"env", "B=1", "sh", "-c", "$A"});
}

TEST_CASE("in a script only an escaped reference is replaced") {
  using Words = std::vector<std::string>;
  const Words expanded = ExpandCommand({"sh", "-c", "a $A $$A $B", "$A"}, {"A=1=2", "B"});
  CHECK(expanded == Words{"sh", "-c", "a $A $A $B", "1=2"});
  CHECK(ExpandCommand({"echo", "$A"}, {"A="}) == Words{"echo", ""});
}

TEST_CASE("tasks of one job share memory, others do not, and it is removed with the last of them") {
  if (!Possible()) return;
  Nobody f;
  const TaskId second = {1, 1, 1};
  f.Start(kTask,
          "echo here > /dev/shm/mark; ipcmk -M 4096 > /dev/null; ls -A /dev/shm; sleep 1000");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "mark\n"; }));
  f.Start(second,
          "cat /dev/shm/mark; ipcs -m | grep -c nobody; echo more > /dev/shm/more; sleep 1000");
  REQUIRE(Eventually([&] { return f.Log(second) == "here\n1\n"; }));
  CHECK(f.Ask("ls -A /dev/shm; ipcs -m | grep -c nobody; true") == "0\n");
  CHECK_FALSE(std::filesystem::exists("/dev/shm/mark"));
  f.End(kTask);
  const std::string shm = f.state.path() + "/shm/1-0-0";
  CHECK(std::filesystem::exists(shm + "/files/more"));
  CHECK(f.Ask("cat /dev/shm/mark", {1, 2, 1}) == "here\n");  // a task that starts later
  f.End(second);
  CHECK_FALSE(std::filesystem::exists(shm));
  CHECK(f.Ask("ls -A /dev/shm; ipcs -m | grep -c nobody; true", {1, 0, 2}) == "0\n");
}

TEST_CASE("a task's shared memory is as large as its memory") {
  if (!Possible()) return;
  config::v1::Agent config;
  config.set_memory_bytes(int64_t{1} << 30);
  config.set_max_shared_memory_bytes(200 << 20);
  Nobody f(config);
  const std::string size = "df -m --output=size /dev/shm | tail -1 | tr -d ' '";
  CHECK(f.Ask(size) == "200\n");
  f.launch.set_memory_bytes(100 << 20);
  CHECK(f.Ask(size, {2, 0, 2}) == "100\n");
  f.Start(kTask, "sleep 1000");
  f.Await(kTask, Kind::kRunning);
  CHECK(f.Ask(size, {1, 1, 1}) == "200\n");  // two tasks
  f.End(kTask);
}

TEST_CASE("shared memory outlives the agent with its tasks, but not a killed supervisor") {
  if (!Possible()) return;
  Nobody f;
  f.Start(kTask, "echo here > /dev/shm/mark; sleep 1000");
  f.Await(kTask, Kind::kRunning);
  const std::string shm = f.state.path() + "/shm/1-0-0";
  REQUIRE(Eventually([&] { return std::filesystem::exists(shm + "/files/mark"); }));
  f.Restart();
  f.runner->Adopt(f.Record(kTask));
  f.runner->CleanUp({kTask});
  CHECK(std::filesystem::exists(shm + "/files/mark"));
  kill(static_cast<pid_t>(f.Status(kTask).supervisor_pid), SIGKILL);
  CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
  CHECK_FALSE(std::filesystem::exists(shm));
}

// A user without processes: leftovers are removed only then, and other tests use nobody.
std::string QuietUser() {
  const std::vector<std::string> users = {"games", "lp", "mail", "news", "uucp", "backup", "list"};
  for (size_t i = 0; i < users.size(); ++i) {
    const std::string& user = users[(i + static_cast<size_t>(getpid())) % users.size()];
    const passwd* found = getpwnam(user.c_str());
    if (found != nullptr && std::system(("pgrep -u " + user + " >/dev/null").c_str()) != 0)
      return user;
  }
  return "nobody";
}

// Tasks that use the machine's shared memory, of a user without other processes.
struct Sharing : Nobody {
  Sharing()
      : Nobody([] {
          config::v1::Agent config;
          config.set_shared_shm(true);
          return config;
        }()) {
    user = QuietUser();
    Restart();
  }
  ~Sharing() {
    std::filesystem::remove_all(place);
    const std::string remove =
        "for i in $(ipcs -m | awk '$3 == \"" + user + "\" {print $2}'); do ipcrm -m $i; done";
    if (std::system(remove.c_str()) != 0) WARN("segments of user " << user << " are left");
  }
  int Segments() const {
    FILE* count = popen(("ipcs -m | grep -c ' " + user + " '").c_str(), "r");
    int segments = -1;
    REQUIRE(fscanf(count, "%d", &segments) == 1);
    pclose(count);
    return segments;
  }
  const std::string place = absl::StrCat("/dev/shm/berth-test-", getpid());
  const std::string write = absl::StrCat("mkdir -p ", place, "/a; echo x > ", place,
                                         "/a/b; ipcmk -M 4096 > /dev/null; echo done; ");
};

TEST_CASE(
    "what overlapping tasks leave in the machine's shared memory is removed with the last task") {
  if (!Possible()) return;
  Sharing f;
  f.Start(kTask, f.write + "sleep 1000");
  REQUIRE(Eventually([&] { return f.Log(kTask) == "done\n"; }));
  f.Start(kOther, "sleep 1000");
  f.Await(kOther, Kind::kRunning);
  f.End(kTask);
  CHECK(std::filesystem::exists(f.place));  // the other task may use it
  CHECK(f.Segments() == 1);
  SECTION("which ends") { f.End(kOther); }
  SECTION("under the next agent") {
    f.Restart();
    f.runner->Adopt(f.Record(kOther));
    f.runner->CleanUp({kOther});
    CHECK(std::filesystem::exists(f.place));
    f.End(kOther);
  }
  SECTION("whose supervisor is killed") {
    kill(static_cast<pid_t>(f.Status(kOther).supervisor_pid), SIGKILL);
    CHECK(f.Await(kOther, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
  }
  CHECK_FALSE(std::filesystem::exists(f.place));
  CHECK(f.Segments() == 0);
}

TEST_CASE("required namespaces that cannot be made stop the agent") {
  config::v1::Agent config;
  config.set_node_name("n1");
  config.set_allow_root_tasks(true);
  config.mutable_cgroups()->set_mode(config::v1::ControlGroups::OFF);
  const TemporaryDirectory state;  // below /tmp, so that tasks cannot get a private /tmp
  const auto created = Isolation::Create(config, state.path());
  REQUIRE(created.ok());
  CHECK((*created)->warnings().size() == 1);
  config.set_require_namespaces(true);
  CHECK(absl::IsFailedPrecondition(Isolation::Create(config, state.path()).status()));
}

}  // namespace
}  // namespace berth
