// Isolation of tasks: users, control groups, /tmp, scratch, hooks, images, commands inside. If the
// machine lacks something (root, control groups, crun), its cases do nothing and print a warning.
#include <fcntl.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "clients/agent/device_filter.h"
#include "clients/agent/device_nodes.h"
#include "clients/agent/exec_host.h"
#include "clients/agent/images.h"
#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/namespaces.h"
#include "core/model/task_message.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

constexpr char kApart[] = "/run";  // not below /tmp

bool IsRoot() { return geteuid() == 0 && getpwnam("nobody") != nullptr; }

bool HasGroups(const Fixture& f) {
  const bool there = absl::StrContains(f.MakeIsolation()->description(), "cgroups: version");
  if (!there) WARN("no control groups: not tested");
  return there;
}

std::string ReadText(const std::string& path) {
  std::string text;
  ReadWholeFile(path, &text);
  return text;
}

TEST_CASE("hierarchies are read from mountinfo") {
  const Hierarchies found = ReadHierarchies(
      "25 1 0:2 / /proc rw - proc proc rw\n"
      "33 31 0:3 / /cg/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "34 31 0:4 / /cg/memory rw - cgroup cgroup rw,memory\n"
      "35 31 0:4 / /again/memory rw - cgroup cgroup rw,memory\n"
      "36 31 0:5 / /nowhere/unified rw - cgroup2 cgroup2 rw\n"
      "broken line\n");
  REQUIRE(found.v1.size() == 2);
  CHECK(found.v1[0].controller == "cpu");
  CHECK(found.v1[0].path == "/cg/cpu,cpuacct");
  CHECK(found.v1[1].path == "/cg/memory");
  CHECK(found.unified == "/nowhere/unified");
  CHECK_FALSE(found.controllers);
}

TEST_CASE("version 2 control groups get their limits") {
  const TemporaryDirectory root;
  const std::string group = root.path() + "/berth/n1/1-0-1";
  config::v1::ControlGroups config;
  config.set_cpu_limit(true);
  Hierarchies hierarchies{.v1 = {}, .unified = root.path(), .controllers = true};
  // Ordinary files instead of the kernel's: they show what was written.
  std::ofstream(root.path() + "/cgroup.controllers") << "cpuset cpu io memory pids\n";
  std::ofstream(root.path() + "/cgroup.subtree_control");
  std::filesystem::create_directories(root.path() + "/berth/n1");
  for (const char* above : {"/berth", "/berth/n1"}) {
    std::ofstream(root.path() + above + "/cgroup.controllers") << "cpuset cpu memory pids\n";
    std::ofstream(root.path() + above + "/cgroup.subtree_control");
  }
  const auto groups = ControlGroups::Open(config, "n1", hierarchies);
  REQUIRE(groups.ok());
  CHECK(ReadText(root.path() + "/cgroup.subtree_control") == "+cpuset");  // the last value written
  std::filesystem::create_directories(group);
  const auto without_files = (*groups)->Make(kTask, GroupLimits());
  CHECK(absl::StrContains(without_files.status().message(), "pids.max"));
  CHECK_FALSE(std::filesystem::exists(group));
}

TEST_CASE("required control groups that are missing stop the agent") {
  config::v1::ControlGroups config;
  config.set_mode(config::v1::ControlGroups::REQUIRED);
  const auto groups = ControlGroups::Open(config, "n1", {});
  CHECK(absl::IsFailedPrecondition(groups.status()));
  config.set_parent("a/../b");
  CHECK(absl::IsInvalidArgument(ControlGroups::Open(config, "n1", {}).status()));
  config.set_mode(config::v1::ControlGroups::OFF);
  const auto off = ControlGroups::Open(config, "n1", {});
  REQUIRE(off.ok());
  CHECK(*off == nullptr);
}

TEST_CASE("a task is in its control group, with its limits, and the group is removed with it") {
  Fixture f;
  if (!IsRoot() || !HasGroups(f)) return;
  f.launch.set_memory_bytes(64 << 20);
  f.launch.set_cpu_millis(2000);
  f.Start(kTask, "cat /proc/self/cgroup; sleep 1000");
  f.Await(kTask, Kind::kRunning);
  REQUIRE(Eventually([&] { return absl::StrContains(f.Log(kTask), "berth-test"); }));
  const SupervisorSpec spec = [&] {
    SupervisorSpec read;
    DecodeSpec(ReadText(f.state.path() + "/tasks/1-0-1/spec"), &read);
    return read;
  }();
  REQUIRE_FALSE(spec.groups.empty());
  bool limited = false;
  for (const std::string& group : spec.groups) {
    CHECK(std::filesystem::exists(group));
    for (const char* file : {"/memory.limit_in_bytes", "/memory.max"})
      limited |= ReadText(group + file) == absl::StrCat(64 << 20, "\n");
  }
  CHECK(limited);
  f.runner->Kill(kTask, "SIGTERM", absl::Seconds(5), v1::TaskReport::KILLED);
  CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::KILLED);
  for (const std::string& group : spec.groups) CHECK_FALSE(std::filesystem::exists(group));
}

TEST_CASE("memory near the devices is preferred, but not enforced") {
  Fixture f;
  f.launch.add_memory_nodes(0);
  f.Start(kTask, "cat /proc/self/numa_maps; cat /proc/self/status");
  f.Await(kTask, Kind::kExited);
  const std::string log = f.Log(kTask);
  if (!std::filesystem::exists("/proc/self/numa_maps")) return;
  CHECK(absl::StrContains(log, "prefer"));
  const std::string own = ReadText("/proc/self/status");
  const size_t at = own.find("Mems_allowed_list:");
  REQUIRE(at != std::string::npos);
  CHECK(absl::StrContains(log, own.substr(at, own.find('\n', at) - at)));
}

TEST_CASE("the message of a task that ran out of memory starts as the core expects") {
  CHECK(OutOfMemoryText(2, 32 << 20) ==
        absl::StrCat(kOutOfMemory, " 2 of its processes, at 32 MiB requested"));
  CHECK(OutOfMemoryText(1, 0) == "out of memory: the kernel killed 1 of its processes");
}

TEST_CASE(
    "a task that uses more memory than it requested is killed, and the report gives the reason") {
  Fixture f;
  if (!IsRoot() || !HasGroups(f)) return;
  f.launch.set_memory_bytes(32 << 20);
  f.Start(kTask, "exec /usr/bin/python3 -c 'x = bytearray(200 << 20)'");
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_signal == SIGKILL);
  CHECK(absl::StrContains(exited.message, "out of memory"));
  CHECK(absl::StrContains(exited.message, "32 MiB"));
}

TEST_CASE("SIGTERM reaches processes outside the process group, and each process once") {
  Fixture f;
  if (!IsRoot() || !HasGroups(f)) return;
  f.Start(kTask,
          "setsid sh -c 'trap \"echo apart ends\" TERM; echo ready; for i in $(seq 50); do sleep "
          "0.1; done' & "
          "trap 'echo main ends; wait' TERM; wait");
  f.Await(kTask, Kind::kRunning);
  REQUIRE(Eventually([&] { return absl::StrContains(f.Log(kTask), "ready"); }));
  f.runner->Kill(kTask, "SIGTERM", absl::Seconds(20), v1::TaskReport::KILLED);
  CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::KILLED);
  const std::string log = f.Log(kTask);
  INFO(log);
  for (const char* words : {"main ends\n", "apart ends\n"}) {
    CHECK(absl::StrContains(log, words));
    CHECK(log.find(words) == log.rfind(words));
  }
}

TEST_CASE("no process of a task outlives it, even without a supervisor") {
  Fixture f;
  if (!IsRoot() || !HasGroups(f)) return;
  const bool lost = GENERATE(false, true);
  // Leaves session, process group and environment.
  f.Start(kTask, "setsid env -i sh -c 'echo $$; exec sleep 1000' & sleep 1000");
  const pid_t hidden = f.PidInLog(kTask);
  CHECK(Alive(hidden));
  if (lost)
    kill(static_cast<pid_t>(f.Status(kTask).supervisor_pid), SIGKILL);
  else
    f.runner->Kill(kTask, "SIGTERM", absl::Seconds(5), v1::TaskReport::KILLED);
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.cause == (lost ? v1::TaskReport::SUPERVISOR_LOST : v1::TaskReport::KILLED));
  CHECK_FALSE(Alive(hidden));
}

TEST_CASE("a task runs as the user that its job requests, if the node allows it") {
  if (!IsRoot() || getpwnam("daemon") == nullptr) return;
  config::v1::Agent config;
  (*config.mutable_task_users())["ada"] = "daemon";
  (*config.mutable_task_users())["nobody"] = "";
  Fixture f("/tmp", config);
  f.user = "nobody";
  f.Restart();
  f.launch.set_run_as("ada");
  f.Start(kTask, "id -un; echo $USER; grep NoNewPrivs /proc/self/status; touch here && echo mine");
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  CHECK(f.Log(kTask) == "daemon\ndaemon\nNoNewPrivs:\t1\nmine\n");
  f.launch.set_run_as("root");
  f.runner->Prepare({2, 0, 1}, f.launch, false);
  const TaskEvent refused = f.Await({2, 0, 1}, Kind::kRefused);
  CHECK(refused.message == "this node runs no tasks as root: not in the agent's taskUsers");
}

TEST_CASE("a job cannot run as root unless root tasks are allowed") {
  if (!IsRoot()) return;
  CHECK(absl::IsPermissionDenied(TaskUsers("nobody", {{"r", "root"}}, false).Find("r").status()));
  CHECK(TaskUsers("nobody", {{"r", "root"}}, true).Find("r").ok());
  CHECK(absl::IsNotFound(TaskUsers("nobody", {{"x", "no-such-user"}}, false).Find("x").status()));
  CHECK(TaskUsers("nobody", {}, false).Find("")->name == "nobody");
}

TEST_CASE("each task has a private /tmp and scratch directory") {
  if (!IsRoot() || TryNamespaces() != 0) return;
  Fixture f(kApart);
  f.user = "nobody";
  f.Restart();
  f.Start(kTask,
          "ls -A /tmp /var/tmp; echo x > /tmp/mark; echo y > $BERTH_SCRATCH/mark; "
          "ln -s /etc $BERTH_SCRATCH/etc; echo $TMPDIR; cat /tmp/mark");
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 0);
  CHECK(f.Log(kTask) == "/tmp:\n\n/var/tmp:\n/tmp\nx\n");
  CHECK_FALSE(std::filesystem::exists("/tmp/mark"));
  const std::string directory = f.state.path() + "/tasks/1-0-1";
  for (const char* gone : {"/tmp", "/var-tmp", "/scratch"})
    CHECK_FALSE(std::filesystem::exists(directory + gone));
  CHECK(std::filesystem::exists("/etc/passwd"));
}

TEST_CASE("hooks run around the task, and the epilog always runs") {
  config::v1::Agent config;
  for (const char* word :
       {"/bin/sh", "-c", "echo prolog $BERTH_JOB $SECRET; test \"$BERTH_JOB\" = j"})
    config.mutable_hooks()->add_prolog(word);
  for (const char* word : {"/bin/sh", "-c", "echo epilog; test \"$BERTH_QUEUE\" != bad"})
    config.mutable_hooks()->add_epilog(word);
  Fixture f("/tmp", config);
  v1::EnvVar* variable = f.launch.add_env();
  variable->set_name("SECRET");
  variable->set_value("s");
  f.launch.set_job("j");
  SECTION("no failure") {
    f.Start(kTask, "echo task $SECRET");
    const TaskEvent exited = f.Await(kTask, Kind::kExited);
    CHECK(exited.exit_code == 0);
    CHECK(exited.node_problem.empty());
    CHECK(f.Log(kTask) == "task s\n");
    CHECK(f.Log(kTask, v1::STDERR) == "prolog j\nepilog\n");
  }
  SECTION("a prolog that fails is the node's fault") {
    f.launch.set_job("other");
    f.Start(kTask, "echo task");
    CHECK(f.Await(kTask, Kind::kRefused).message == "prolog exited with 1");
    CHECK(f.Log(kTask) == "");
    CHECK(f.Log(kTask, v1::STDERR) == "prolog other\nepilog\n");
  }
  SECTION("an epilog that fails does not change the result of the task") {
    f.launch.set_queue("bad");
    f.Start(kTask, "exit 3");
    const TaskEvent exited = f.Await(kTask, Kind::kExited);
    CHECK(exited.exit_code == 3);
    CHECK(exited.node_problem == "epilog exited with 1");
  }
}

TEST_CASE("a hook that takes too long is killed, and a task can be stopped in its prolog") {
  config::v1::Agent config;
  for (const char* word : {"/bin/sh", "-c", "sleep 1000"}) config.mutable_hooks()->add_prolog(word);
  config.mutable_hooks()->mutable_prolog_timeout()->set_seconds(1);
  SECTION("timeout") {
    Fixture f("/tmp", config);
    f.Start(kTask, "true");
    CHECK(f.Await(kTask, Kind::kRefused).message == "prolog timed out and was killed");
  }
  SECTION("stopped") {
    config.mutable_hooks()->mutable_prolog_timeout()->set_seconds(600);
    Fixture f("/tmp", config);
    f.Start(kTask, "true");
    f.runner->Kill(kTask, "SIGTERM", absl::Seconds(5), v1::TaskReport::KILLED);
    CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::KILLED);
  }
}

TEST_CASE("images are looked up by name only") {
  const TemporaryDirectory store;
  std::filesystem::create_directories(store.path() + "/team/torch:2/rootfs");
  std::filesystem::create_directories(store.path() + "/plain/bin");
  std::filesystem::create_directories(store.path() + "/layout/blobs");
  std::ofstream(store.path() + "/layout/oci-layout") << "{}";
  std::filesystem::create_symlink("/etc", store.path() + "/link");
  const auto find = [&](const std::string& name) { return FindImage(store.path(), name); };
  CHECK(find("team/torch:2")->rootfs == store.path() + "/team/torch:2/rootfs");
  CHECK(find("plain")->rootfs == store.path() + "/plain");
  for (const char* name : {"", "/etc", "../etc", "plain/..", "plain//bin", "."})
    CHECK(absl::IsInvalidArgument(find(name).status()));
  for (const char* name : {"link", "link:1", "plain:1", "other", "other:1", ":1", "layout:1/x"})
    CHECK(absl::IsNotFound(find(name).status()));
  CHECK(absl::IsNotFound(FindImage("", "x").status()));
  CHECK(find("layout")->rootfs.empty());
  CHECK(find("layout")->layout == store.path() + "/layout");
  CHECK(find("layout")->tag.empty());
  CHECK(find("layout:2.3")->layout == store.path() + "/layout");
  CHECK(find("layout:2.3")->tag == "2.3");
  const auto hint = [&](const std::string& name, const std::string& into) {
    const std::string line =
        absl::StrCat("skopeo copy docker://REGISTRY/", name, " oci:", store.path(), "/", into);
    return absl::EndsWith(find(name).status().message(), line);
  };
  CHECK(hint("other", "other:latest"));
  CHECK(hint("team/other:1", "team/other:1"));
}

TEST_CASE("a container's configuration escapes values of a job") {
  ContainerSpec spec;
  spec.rootfs = "/images/a";
  spec.argv = {"sh", "-c", "echo \"a\\b\"\n"};
  spec.working_directory = "/run/berth/work";
  spec.user.uid = 7;
  spec.user.gid = 8;
  spec.user.groups = {8, 9};
  const std::string json = ContainerConfig(spec);
  CHECK(absl::StrContains(json, "[\"sh\",\"-c\",\"echo \\\"a\\\\b\\\"\\u000a\"]"));
  CHECK(absl::StrContains(json, "\"uid\":7,\"gid\":8,\"additionalGids\":[9]"));
  CHECK(absl::StrContains(json, "\"readonly\":true"));
}

// Some machines have control group hierarchies of both versions. crun then works only if version 2
// is hidden.
std::string CrunForHere(const std::string& directory) {
  if (access("/usr/bin/crun", X_OK) != 0) return "";
  if (!std::filesystem::exists("/sys/fs/cgroup/unified/cgroup.procs")) return "/usr/bin/crun";
  const std::string wrapper = directory + "/crun-here";
  std::ofstream(wrapper) << "#!/bin/sh\nexec unshare -m sh -c "
                            "'umount /sys/fs/cgroup/unified; exec /usr/bin/crun \"$@\"' crun "
                            "\"$@\"\n";
  chmod(wrapper.c_str(), 0755);
  return wrapper;
}

// An image with one static program; "" without busybox.
std::string MakeImage(const std::string& store) {
  std::string program;
  for (const char* at : {"/bin/busybox", "/usr/bin/busybox"}) {
    if (access(at, X_OK) == 0) program = at;
  }
  if (program.empty()) return "";
  const std::string rootfs = store + "/small/rootfs";
  for (const char* part : {"/bin", "/proc", "/dev", "/sys", "/tmp", "/run", "/etc"})
    std::filesystem::create_directories(rootfs + part);
  std::filesystem::copy_file(program, rootfs + "/bin/busybox");
  for (const char* name : {"sh", "id", "cat", "ls", "sleep", "echo", "touch", "pwd"})
    std::filesystem::create_symlink("busybox", rootfs + "/bin/" + name);
  return "small";
}

TEST_CASE("a task runs in an image, as its user, and commands join it there") {
  const TemporaryDirectory files(kApart);
  chmod(files.path().c_str(), 0755);
  const std::string crun = IsRoot() ? CrunForHere(files.path()) : "";
  const std::string image = MakeImage(files.path());
  if (crun.empty() || image.empty()) {
    WARN("no root, crun or static busybox: images are not tested");
    return;
  }
  config::v1::Agent config;
  config.mutable_images()->set_directory(files.path());
  config.mutable_images()->set_crun(crun);
  Fixture f(kApart, config);
  f.user = "nobody";
  f.Restart();
  f.launch.set_image(image);
  f.Start(kTask,
          "id -u; pwd; ls /; touch here /tmp/there && echo writable; touch /bin/x && echo layer; "
          "cat $BERTH_HOSTFILE; touch /dev/shm/of-image; echo ready; trap 'exit 9' TERM; while :; "
          "do sleep 0.05; done");
  f.Await(kTask, Kind::kRunning);
  REQUIRE(Eventually([&] { return absl::StrContains(f.Log(kTask), "ready\n"); }));
  CHECK(f.Log(kTask) ==
        "65534\n/run/berth/work\nbin\ndev\netc\nproc\nrun\nsys\ntmp\nwritable\nlayer\n127.0.0.1\n"
        "ready\n");
  CHECK(access((files.path() + "/small/rootfs/bin/x").c_str(), F_OK) != 0);  // it is shared
  ExecHost execs(ProgramBeside("berth-supervisor"), f.runner->tasks_directory());
  v1::OpenExec open;
  open.set_request(1);
  *open.mutable_key() = ToKey(kTask);
  for (const char* word : {"sh", "-c", "id -u; pwd; ls; ls /dev/shm"}) open.add_command(word);
  execs.Open(open);
  std::string said;
  bool ended = false;
  REQUIRE(Eventually([&] {
    for (const v1::ExecOutput& output : execs.Poll()) {
      said += output.data();
      ended |= output.end();
    }
    return ended;
  }));
  CHECK(said == "65534\n/run/berth/work\nhere\nof-image\n");
  CHECK_FALSE(std::filesystem::exists("/dev/shm/of-image"));
  f.runner->Kill(kTask, "SIGTERM", absl::Seconds(10), v1::TaskReport::KILLED);
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 9);
  f.launch.set_image("none");
  f.runner->Prepare({2, 0, 1}, f.launch, false);
  CHECK(absl::StrContains(f.Await({2, 0, 1}, Kind::kRefused).message, "image none is not in"));
}

// Opens the file from inside the group. Returns 0 or errno.
int OpenInside(const ControlGroup& group, const char* file, int flags = O_RDWR) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (const int error = group.Enter(); error != 0) _exit(200);
    _exit(open(file, flags | O_CLOEXEC) >= 0 ? 0 : errno);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Also runs on machines where version 1 has the controller, which is hidden here.
TEST_CASE("version 2 denies devices by a BPF program") {
  Hierarchies hierarchies = ReadHierarchies(ReadText("/proc/self/mountinfo"));
  std::erase_if(hierarchies.v1, [](const auto& v1) { return v1.controller == "devices"; });
  config::v1::ControlGroups config;
  config.set_parent(absl::StrCat("berth-test-filter-", getpid()));
  const auto groups = ControlGroups::Open(config, "n1", hierarchies);
  if (!groups.ok() || hierarchies.unified.empty()) {
    WARN("no control groups of version 2, not tested: " << groups.status());
    return;
  }
  const std::string root = hierarchies.unified;
  if (!(*groups)->denies_devices()) {
    WARN("the kernel rejects the program, not tested: " << (*groups)->device_denial_error());
    CHECK_FALSE((*groups)->device_denial_error().empty());
  } else {
    // /dev/null 1:3, /dev/zero 1:5, /dev/full 1:7
    const auto made = (*groups)->Make(kTask, {.denied_devices = {"1:3", "1:7", "4:5"}});
    REQUIRE(made.ok());
    const ControlGroup group(*made);
    CHECK(OpenInside(group, "/dev/null") == EPERM);
    CHECK(OpenInside(group, "/dev/null", O_RDONLY) == EPERM);
    CHECK(OpenInside(group, "/dev/full") == EPERM);
    CHECK(OpenInside(group, "/dev/zero") == 0);
    CHECK(OpenInside(group, "/proc/self/status", O_RDONLY) == 0);
    CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);  // outside the group nothing is denied
    group.Remove();
    CHECK_FALSE((*groups)->Make(kTask, {.denied_devices = {"1:x"}}).ok());
    const auto open = (*groups)->Make(kTask, {});
    REQUIRE(open.ok());
    CHECK(OpenInside(ControlGroup(*open), "/dev/null") == 0);
    ControlGroup(*open).Remove();
    std::vector<std::string> many(kMaxDeniedDevices + 1, "1:3");
    CHECK(absl::IsInvalidArgument(DenyAccess(root + "/" + config.parent(), many)));
    many.pop_back();
    CHECK(DenyAccess(root + "/" + config.parent(), many).ok());
  }
  for (const Hierarchies::V1& v1 : hierarchies.v1) rmdir((v1.path + "/" + config.parent()).c_str());
  rmdir((root + "/" + config.parent()).c_str());
}

TEST_CASE("GPUs of other tasks are denied, by the driver's list of GPUs") {
  const TemporaryDirectory proc;
  for (int i = 0; i < 3; ++i) {
    const std::string directory =
        absl::StrCat(proc.path(), "/driver/nvidia/gpus/0000:0", i, ":00.0");
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/information")
        << "Model: \t NVIDIA H100\nGPU UUID: \t GPU-" << i << "\nDevice Minor: \t " << i << "\n";
  }
  using Files = std::vector<std::string>;
  NvidiaFiles nvidia = ReadNvidiaFiles(proc.path());
  CHECK(nvidia.minors == std::map<std::string, int>{{"GPU-0", 0}, {"GPU-1", 1}, {"GPU-2", 2}});
  v1::TaskLaunch launch;
  CHECK(DeniedDevices(launch, nvidia) == Files{"195:0", "195:1", "195:2"});
  launch.add_device_uuids("GPU-1");
  launch.add_device_kinds("gpu");
  CHECK(DeniedDevices(launch, nvidia) == Files{"195:0", "195:2"});
  launch.set_device_uuids(0, "MIG-1");
  CHECK(DeniedDevices(launch, nvidia).empty());

  // GPU-2 is divided in two; the driver lists names for more instances.
  std::filesystem::create_directories(proc.path() + "/driver/nvidia-caps");
  std::ofstream(proc.path() + "/driver/nvidia-caps/mig-minors")
      << "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu2/gi3/access 30\ngpu2/gi3/ci0/access 31\n"
         "gpu2/gi5/access 50\ngpu2/gi5/ci0/access 51\ngpu2/gi6/access 60\n";
  std::ofstream(proc.path() + "/devices")
      << "Character devices:\n195 nvidia\n237 nvidia-caps\n\nBlock devices:\n  8 sd\n";
  nvidia = ReadNvidiaFiles(proc.path());
  nvidia.mig = {{"MIG-1", {"GPU-2", 3, 0}}, {"MIG-2", {"GPU-2", 5, 0}}};
  launch.set_device_kinds(0, "mig");
  CHECK(DeniedDevices(launch, nvidia) ==
        Files{"195:0", "195:1", "237:1", "237:2", "237:50", "237:51"});
  launch.set_device_kinds(0, "gpu");
  launch.set_device_uuids(0, "GPU-0");
  CHECK(DeniedDevices(launch, nvidia) ==
        Files{"195:1", "195:2", "237:1", "237:2", "237:30", "237:31", "237:50", "237:51"});

  const TemporaryDirectory dev;
  std::filesystem::create_directory(dev.path() + "/nvidia-caps");
  for (const char* name :
       {"/nvidia0", "/nvidia1", "/nvidia2", "/nvidiactl", "/nvidia-uvm",
        "/nvidia-caps/nvidia-cap30", "/nvidia-caps/nvidia-cap31", "/nvidia-caps/nvidia-cap50"})
    std::ofstream(dev.path() + name) << "";
  const auto files = [&] {
    Files found = DeviceFiles(launch, nvidia, {}, dev.path());
    for (std::string& file : found) file = file.substr(dev.path().size());
    return found;
  };
  CHECK(files() == Files{"/nvidia-uvm", "/nvidia0", "/nvidiactl"});
  launch.set_device_uuids(0, "MIG-1");
  launch.set_device_kinds(0, "mig");
  CHECK(files() == Files{"/nvidia-caps/nvidia-cap30", "/nvidia-caps/nvidia-cap31", "/nvidia-uvm",
                         "/nvidia2", "/nvidiactl"});
  launch.set_device_uuids(0, "MIG-9");
  CHECK(files() ==
        Files{"/nvidia-caps", "/nvidia-uvm", "/nvidia0", "/nvidia1", "/nvidia2", "/nvidiactl"});
}

}  // namespace
}  // namespace berth
