// Which task is ended when the disk is full and files in task directories do not explain it: files
// elsewhere, kept output, empty files, supervisors that accept no reason.
#include <fstream>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/health_checks.h"
#include "clients/agent/kept_output.h"
#include "tests/unit/agent/disk_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

// A directory on this disk that any user may write to.
std::string Elsewhere(const SmallDisk& disk) {
  const std::string directory = disk.path() + "/home";
  std::filesystem::create_directory(directory);
  chmod(directory.c_str(), 0777);
  return directory;
}

bool HasGroups(const Fixture& f) {
  if (!absl::StrContains(f.MakeIsolation()->description(), "cgroups: none")) return true;
  WARN("no control groups: the processes of a task are unknown, not tested");
  return false;
}

TEST_CASE("a task that fills the disk outside of its own directories is ended, and no other") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), 16 * kMiB);
  if (!HasGroups(world.f)) return;
  const std::string file = Elsewhere(disk) + "/f";
  world.f.launch.set_scratch_bytes(30 * kMiB);
  world.Run(kOther, "exec 5>mine; dd if=/dev/zero bs=1M count=12 >&5 2>/dev/null; sleep 1000");
  SECTION("with the file still open") {
    world.Run(kTask, "exec 5>" + file + "; dd if=/dev/zero bs=1M count=40 >&5; sleep 1000");
  }
  SECTION("with a file that stays, up to the last byte") {
    world.Run(kTask, "exec 5>" + file + "; dd if=/dev/zero bs=1M >&5; sleep 1000");
  }
  SECTION("with the file closed after the agent saw it") {
    world.Run(kTask,
              "for i in 1 2 3 4 5 6; do sleep 0.2; dd if=/dev/zero bs=1M count=4 2>/dev/null; "
              "done >" +
                  file + "; echo closed; sleep 1000");
    REQUIRE(Eventually([&] { return world.f.Log(kTask) == "closed\n"; }));
    CHECK(world.Stays(kTask));
    std::ofstream(disk.path() + "/of-somebody-else") << std::string(14 * kMiB, 'x');
  }
  const TaskEvent exited = world.AwaitEnd(kTask);
  CHECK(absl::StrContains(exited.message, "the node's disk is nearly full"));
  CHECK(absl::StrContains(exited.message, "outside its own directories"));
  CHECK(absl::StrContains(exited.message, file));
  CHECK(exited.exit_code != 0);
  CHECK(world.Stays(kOther));
}

TEST_CASE("a file that existed before the task is not counted against it") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), 16 * kMiB);
  if (!HasGroups(world.f)) return;
  const std::string file = Elsewhere(disk) + "/f";
  std::ofstream(file) << std::string(25 * kMiB, 'x');
  chmod(file.c_str(), 0666);
  absl::SleepFor(absl::Milliseconds(50));
  world.Run(kTask, "exec 5>>" + file + "; echo x >&5; sleep 1000");
  std::ofstream(disk.path() + "/of-somebody-else") << std::string(30 * kMiB, 'x');
  CHECK(Eventually([&] { return world.f.runner->DiskIsExhausted(); }));
  CHECK(world.Stays(kTask));
}

absl::Status OpenLog(const Fixture& f, TaskId id) {
  v1::ReadLog request;
  *request.mutable_key() = ToKey(id);
  return LogFiles(f.runner->tasks_directory()).Open(request).status();
}

TEST_CASE("output of tasks that ended first is removed when the disk is nearly full") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), 16 * kMiB);
  world.f.log_file_bytes = 8 * kMiB;
  world.f.kept_output_bytes = 64 * kMiB;
  world.f.Restart();
  for (const uint64_t job : {11, 12, 13, 14}) {
    world.Run({job, 0, 1}, "head -c 13000000 /dev/zero");
    CHECK(world.AwaitEnd({job, 0, 1}).exit_code == 0);
    absl::SleepFor(absl::Milliseconds(20));
  }
  CHECK(Eventually([&] { return absl::IsNotFound(OpenLog(world.f, {11, 0, 1})); }));
  CHECK(OpenLog(world.f, {14, 0, 1}).ok());
  CHECK(world.f.Status({11, 0, 1}).phase == SupervisorStatus::kExited);  // its exit is still known
  CHECK(Eventually([&] { return !world.f.runner->DiskIsExhausted(); }));
  world.Run(kTask, "echo here; sleep 1000");
  CHECK(world.Stays(kTask));
}

TEST_CASE("the output of all ended tasks has one bound") {
  const TemporaryDirectory place;
  const auto make = [&](const std::string& name, const std::string& phase, int64_t seconds) {
    const std::string task = place.path() + "/" + name;
    std::filesystem::create_directory(task);
    std::ofstream(task + "/stdout.0") << std::string(kMiB, 'x');
    std::ofstream(task + "/times.stdout.0") << "t";
    SupervisorStatus status;
    status.phase = phase == "ended" ? SupervisorStatus::kExited : SupervisorStatus::kRunning;
    status.has_output = true;
    std::ofstream(task + "/status") << EncodeStatus(status);
    const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0},
                               {.tv_sec = seconds, .tv_nsec = 0}};
    utimensat(AT_FDCWD, (task + "/status").c_str(), times, 0);
  };
  make("3-0-1", "ended", 1003);
  make("1-0-1", "ended", 1001);
  make("2-0-1", "ended", 1002);
  make("4-0-1", "running", 1000);
  make("5-0-1", "ended", 1000);  // but not reported yet
  const auto has = [&](const char* name) {
    return std::filesystem::exists(place.path() + "/" + name + "/stdout.0");
  };
  const auto enough = [] { return false; };
  TrimOutput(place.path(), {"5-0-1"}, 4 * kMiB, enough);
  CHECK((has("1-0-1") && has("2-0-1") && has("3-0-1")));
  TrimOutput(place.path(), {"5-0-1"}, kMiB + kMiB / 2, enough);
  CHECK_FALSE((has("1-0-1") || has("2-0-1")));
  CHECK_FALSE(std::filesystem::exists(place.path() + "/1-0-1/times.stdout.0"));
  CHECK(has("3-0-1"));
  TrimOutput(place.path(), {"5-0-1"}, 4 * kMiB, [] { return true; });
  CHECK_FALSE(has("3-0-1"));
  CHECK((has("4-0-1") && has("5-0-1")));
}

constexpr char kManyFiles[] = "i=0; while : > f$i; do i=$((i+1)); done 2>/dev/null; sleep 1000";

TEST_CASE("where inodes are short, the task with the most files is ended") {
  const SmallDisk disk("size=64m,nr_inodes=2000");
  if (!disk.mounted()) return;
  DiskWorld world(disk.path(), 4 * kMiB);
  world.f.launch.set_scratch_bytes(32 * kMiB);
  world.Run(kOther, "i=0; while [ $i -lt 500 ]; do : > f$i; i=$((i+1)); done; echo; sleep 1000");
  REQUIRE(Eventually([&] { return world.f.Log(kOther) == "\n"; }));
  SECTION("that requested no scratch") { world.f.launch.set_scratch_bytes(0); }
  SECTION("whose share of the inodes is larger than its share of the bytes") {
    world.f.launch.set_scratch_bytes(8 * kMiB);
  }
  world.Run(kTask, std::string("bash -c '") + kManyFiles + "'");
  const TaskEvent exited = world.AwaitEnd(kTask);
  CHECK(absl::StrContains(exited.message, " free), and this task has the most files"));
  CHECK(exited.exit_code != 0);
  CHECK(world.Stays(kOther));
  CHECK(Eventually([&] { return !world.f.runner->DiskIsExhausted(); }));
}

// Like a supervisor from before reasons existed: it ends its task on any input and reports nothing.
std::string OldSupervisor(const std::string& directory) {
  const std::string path = directory + "/berth-supervisor";
  std::ofstream(path) << R"(#!/bin/bash
cd "$1"
printf 'phase=1\0supervisor_pid=%d\0pid=%d\0' $$ $$ > new; mv new status
dd if=/dev/zero of=work/f bs=1M count=12 2>/dev/null
read -r order < control
printf 'phase=3\0supervisor_pid=%d\0pid=%d\0exit_code=0\0' $$ $$ > new; mv new status
)";
  chmod(path.c_str(), 0755);
  return path;
}

TEST_CASE("the culprit fails by name even under a supervisor that accepts no reason") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  const TemporaryDirectory programs;
  DiskWorld world(disk.path(), kMiB);
  ProcessRunner::Options options = world.f.Options();
  options.supervisor = OldSupervisor(programs.path());
  world.f.runner = *ProcessRunner::Create(options);
  world.f.launch.set_scratch_bytes(8 * kMiB);
  world.Run(kTask, "exit 0");
  const TaskEvent exited = world.AwaitEnd(kTask);
  CHECK(absl::StrContains(exited.message, "MiB of its 8 MiB of scratch"));
  CHECK(exited.exit_code == 137);
  CHECK(exited.exit_signal == SIGKILL);
}

TEST_CASE("a blamed task that does not end is blamed again, then the next task is blamed") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  const std::string first = disk.path() + "/first", second = disk.path() + "/second";
  for (const std::string& directory : {first, second}) {
    std::filesystem::create_directory(directory);
    std::ofstream(directory + "/f") << std::string((directory == first ? 30 : 20) * kMiB, 'x');
  }
  DiskWatch watch({.tasks_directory = disk.path(),
                   .min_free_bytes = 16 * kMiB,
                   .interval = absl::Milliseconds(20),
                   .patience = absl::Milliseconds(100)},
                  [] {});
  watch.Add(kTask, {{.directories = {first}}}, "");
  watch.Add(kOther, {{.directories = {second}}}, "");
  std::vector<TaskId> blamed;
  REQUIRE(Eventually([&] {
    for (const DiskCulprit& culprit : watch.Take()) blamed.push_back(culprit.id);
    return !blamed.empty() && blamed.back() == kOther;
  }));
  CHECK(blamed.size() == kDiskBlames + 1);
  CHECK(std::count(blamed.begin(), blamed.end(), kTask) == kDiskBlames);
}

TEST_CASE("a full disk cordons the node, and drains it only if the operator configured that") {
  using Effect = v1::NodeCondition;
  config::v1::Health config;
  CHECK(EffectOfCheck(config, kDiskCheck) == Effect::CORDON);
  CHECK(EffectOfCheck(config, kDiskFullCheck) == Effect::EFFECT_UNSPECIFIED);
  config.set_drain_free_bytes(1);
  CHECK(EffectOfCheck(config, kDiskCheck) == Effect::CORDON);
  CHECK(EffectOfCheck(config, kDiskFullCheck) == Effect::DRAIN);
}

TEST_CASE("health checks include the disk of the scratch directory") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  const SmallDisk scratch;
  config::v1::Health config;
  config.set_min_free_bytes(16 * kMiB);
  config.mutable_interval()->set_nanos(20'000'000);
  absl::Mutex mutex;
  std::string message = "nothing yet";
  HealthChecks checks(config, {.state_directory = disk.path(), .scratch_directory = scratch.path()},
                      [&](const HealthRound& round) {
                        absl::MutexLock lock(&mutex);
                        for (const CheckResult& result : round.results) {
                          if (result.check == kDiskCheck) message = result.message;
                        }
                      });
  const auto reports = [&](const std::string& text) {
    return Eventually([&] {
      absl::MutexLock lock(&mutex);
      return text.empty() ? message.empty() : absl::StrContains(message, text);
    });
  };
  CHECK(reports(""));
  std::ofstream(scratch.path() + "/f") << std::string(60 * kMiB, 'x');
  CHECK(reports("the disk is nearly full: 4 MiB free in " + scratch.path()));
}

TEST_CASE("scratch offered to tasks is what other files leave free") {
  const SmallDisk disk;
  if (!disk.mounted()) return;
  std::ofstream(disk.path() + "/of-somebody-else") << std::string(20 * kMiB, 'x');
  config::v1::Agent config;
  config.set_node_name("n1");
  config.set_scratch_directory(disk.path());
  config.mutable_health()->set_min_free_bytes(4 * kMiB);
  const auto offered = [&] {
    config::v1::Agent own = config;
    SetAgentDefaults(&own);
    return own.scratch_bytes() / kMiB;
  };
  CHECK(offered() == 40);
  // A task that runs across a restart of its agent does not make the node smaller.
  std::filesystem::create_directory(disk.path() + "/n1-12-0-1.1795575600000");
  std::ofstream(disk.path() + "/n1-12-0-1.1795575600000/f") << std::string(10 * kMiB, 'x');
  CHECK(offered() == 40);
  std::filesystem::create_directory(disk.path() + "/n1-2-12-0-1");  // of another agent, n1-2
  std::ofstream(disk.path() + "/n1-2-12-0-1/f") << std::string(10 * kMiB, 'x');
  CHECK(offered() == 30);
  std::ofstream(disk.path() + "/more-of-somebody-else") << std::string(22 * kMiB, 'x');
  CHECK(offered() == 8);
  config.mutable_health()->set_min_free_bytes(60 * kMiB);
  CHECK(offered() == 0);
  config.set_scratch_bytes(7 * kMiB);
  CHECK(offered() == 7);
}

}  // namespace
}  // namespace berth
