// Whose fault a refused start is: one test for each row of the table in docs/operators/nodes.md,
// "Refused starts". Refusals that only the agent's logic decides are in logic_test.cc; images that
// cannot be unpacked are in tests/unit/images.
#include "clients/agent/fault.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/images.h"
#include "clients/agent/supervisor/child.h"
#include "clients/agent/task_users.h"
#include "tests/unit/agent/logic_world.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT
using v1::TaskReport;

constexpr auto kJob = v1::TaskReport::JOB;
constexpr auto kNode = v1::TaskReport::NODE;
constexpr auto kNobody = v1::TaskReport::NOBODY;

std::string DirectoryOf(const Fixture& f, const TaskId& id) {
  return absl::StrCat(f.state.path(), "/tasks/", ToString(id));
}

// ---- The job is at fault

TEST_CASE("fault: a working directory that is missing or not accessible is the job's") {
  Fixture f;
  f.launch.add_command("true");
  f.launch.set_working_dir("/no/such/directory");
  f.StartLaunch(kTask);
  const TaskEvent missing = f.Await(kTask, Kind::kRefused);
  CHECK(missing.fault == kJob);
  CHECK(missing.message == "cannot enter directory /no/such/directory: No such file or directory");
  CHECK_FALSE(missing.has_output);
  f.launch.set_working_dir("/etc/passwd");
  f.StartLaunch({2, 0, 1});
  CHECK(f.Await({2, 0, 1}, Kind::kRefused).fault == kJob);
}

TEST_CASE("fault: a user that the job requests is the job's, the node's own user the node's") {
  const TaskUsers users("berth-no-such-user", {{"x", "berth-no-such-user"}}, false);
  CHECK(FaultOf(users.Find("x").status()) == kJob);
  CHECK(FaultOf(users.Find("stranger").status()) == kJob);
  CHECK(FaultOf(users.Find("").status()) == kNode);
}

TEST_CASE("fault: the name of an image is the job's") {
  TemporaryDirectory store("/tmp");
  for (const char* name : {"team/tyop", "team/tyop:1", "../etc", ""}) {
    CHECK(FaultOf(FindImage(store.path(), name).status()) == kJob);
  }
  CHECK(FaultOf(FindImage("", "any").status()) == kJob);  // this node has no images
  Fixture f;
  f.launch.set_image("team/tyop");
  f.runner->Prepare(kTask, f.launch, false);
  CHECK(f.Await(kTask, Kind::kRefused).fault == kJob);
  CHECK_FALSE(std::filesystem::exists(DirectoryOf(f, kTask)));
}

TEST_CASE("fault: an image that berth-image rejects is the job's, lack of space the node's") {
  Fixture f;
  if (geteuid() != 0) return;
  TemporaryDirectory store("/tmp");
  std::filesystem::create_directories(store.path() + "/broken");
  std::ofstream(store.path() + "/broken/oci-layout") << R"({"imageLayoutVersion":"1.0.0"})";
  f.config.mutable_images()->set_directory(store.path());
  f.Restart();
  f.launch.set_image("broken");
  f.runner->Prepare(kTask, f.launch, false);
  const TaskEvent refused = f.Await(kTask, Kind::kRefused);
  INFO(refused.message);
  CHECK(refused.fault == kJob);
}

TEST_CASE("fault: the exit code of berth-image decides, no space for an image is nobody's") {
  TemporaryDirectory store("/tmp");
  std::filesystem::create_directories(store.path() + "/large");
  std::ofstream(store.path() + "/large/oci-layout") << R"({"imageLayoutVersion":"1.0.0"})";
  Fixture f;
  f.config.mutable_images()->set_directory(store.path());
  f.launch.set_image("large");
  uint64_t job = 1;
  for (const auto& [code, fault] : {std::pair(3, kJob), {4, kNobody}, {1, kNode}, {2, kNode}}) {
    const std::string program = absl::StrCat(store.path(), "/image-program-", code);
    std::ofstream(program) << "#!/bin/sh\necho only 1 MiB are free\nexit " << code << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ProcessRunner::Options options = f.Options();
    options.image_program = program;
    f.runner = *ProcessRunner::Create(std::move(options));
    const TaskId id = {job++, 0, 1};
    f.runner->Prepare(id, f.launch, false);
    const TaskEvent refused = f.Await(id, Kind::kRefused);
    INFO(code << ": " << refused.message);
    CHECK(refused.fault == fault);
    CHECK(absl::StrContains(refused.message, "only 1 MiB are free"));
  }
}

TEST_CASE(
    "fault: a command that is missing or not executable ends the task, the start is not refused") {
  Fixture f;
  f.launch.add_command("berth-no-such-program");
  f.StartLaunch(kTask);
  CHECK(f.Await(kTask, Kind::kExited).exit_code == 127);
  f.launch.set_command(0, "/etc/passwd");
  f.StartLaunch({2, 0, 1});
  CHECK(f.Await({2, 0, 1}, Kind::kExited).exit_code == 126);
}

TEST_CASE("fault: limits too small for the program end the task, the start is not refused") {
  config::v1::Agent config;
  config.mutable_cgroups()->set_mode(config::v1::ControlGroups::OFF);
  Fixture f("/tmp", config);
  f.launch.set_memory_bytes(4096);  // becomes RLIMIT_DATA
  f.Start(kTask, "true");
  const TaskEvent exited = f.Await(kTask, Kind::kExited);
  CHECK(exited.exit_code != 0);
}

// ---- The node is at fault

TEST_CASE("fault: a directory that cannot be made (full or broken disk) is the node's") {
  Fixture f;
  std::filesystem::remove_all(f.state.path() + "/tasks");
  std::ofstream(f.state.path() + "/tasks") << "no directory";
  f.runner->Prepare(kTask, f.launch, false);
  const TaskEvent refused = f.Await(kTask, Kind::kRefused);
  CHECK(refused.fault == kNode);
  CHECK(absl::StartsWith(refused.message, "create "));
}

TEST_CASE("fault: a supervisor that cannot be forked is the node's") {
  Fixture f;
  TemporaryDirectory programs("/tmp");
  const std::string supervisor = programs.path() + "/supervisor";
  std::filesystem::create_symlink("/bin/true", supervisor);
  ProcessRunner::Options options = f.Options();
  options.supervisor = supervisor;
  f.runner = *ProcessRunner::Create(std::move(options));
  std::filesystem::remove(supervisor);
  f.Start(kTask, "true");
  const TaskEvent refused = f.Await(kTask, Kind::kRefused);
  CHECK(refused.fault == kNode);
  CHECK(absl::StartsWith(refused.message, "spawn "));
}

TEST_CASE("fault: a container runtime that is missing or not executable is the node's") {
  SupervisorSpec spec;
  spec.container = true;
  spec.directory = "/";
  for (const char* runtime : {"/no/such/crun", "/etc/passwd"}) {
    spec.argv = {runtime, "run", "berth-1-0-1"};
    const ChildResult child = StartChild(spec, STDOUT_FILENO, STDERR_FILENO);
    CHECK(child.refused);
    CHECK_FALSE(child.own_fault);
    CHECK(child.exit_code == 0);
    CHECK(absl::StrContains(child.message, runtime));
    CHECK(absl::StrContains(child.message, "container runtime"));
  }
}

TEST_CASE("fault: no free port is the node's") {
  Fixture f;
  ProcessRunner::Options options = f.Options();
  options.first_port = options.last_port = 26500;
  f.runner = *ProcessRunner::Create(std::move(options));
  f.runner->Prepare(kTask, f.launch, true);
  f.Await(kTask, Kind::kPrepared);
  f.runner->Prepare({2, 0, 1}, f.launch, true);
  CHECK(f.Await({2, 0, 1}, Kind::kRefused).fault == kNode);
}

TEST_CASE("fault: a prolog that failed is the node's, and its output is kept") {
  config::v1::Agent config;
  for (const char* word : {"/bin/sh", "-c", "echo no disk; exit 1"})
    config.mutable_hooks()->add_prolog(word);
  Fixture f("/tmp", config);
  f.Start(kTask, "true");
  const TaskEvent refused = f.Await(kTask, Kind::kRefused);
  CHECK(refused.fault == kNode);
  CHECK(refused.has_output);
  CHECK(f.Log(kTask, v1::STDERR) == "no disk\n");
}

TEST_CASE("fault: a supervisor that ends before the command starts is the node's") {
  Fixture f;
  ProcessRunner::Options options = f.Options();
  options.supervisor = "/bin/true";
  f.runner = *ProcessRunner::Create(std::move(options));
  f.Start(kTask, "true");
  const TaskEvent refused = f.Await(kTask, Kind::kRefused);
  CHECK(refused.fault == kNode);
  CHECK(absl::StrContains(refused.message, "before the command began"));
}

// An agent that is killed after it journaled STARTING leaves what the sections say.
TEST_CASE(
    "fault: an agent that was killed reports a refusal if the command never started, else a loss") {
  Fixture f;
  f.launch.add_command("true");
  f.runner->Prepare(kTask, f.launch, true);
  f.port = f.Await(kTask, Kind::kPrepared).port;
  f.Restart();
  const auto record = f.Record(kTask, agent::v1::TaskRecord::STARTING);
  const std::string directory = DirectoryOf(f, kTask);
  SupervisorSpec spec;
  spec.argv = {"true"};
  spec.marks_beginning = true;
  const auto refused = [&] {
    f.runner->Adopt(record);
    const TaskEvent event = f.Await(kTask, Kind::kRefused);
    CHECK(event.fault == kNode);
    CHECK_FALSE(absl::StrContains(event.node_problem, "epilog"));
  };
  const auto lost = [&](const agent::v1::TaskRecord& of) {
    f.runner->Adopt(of);
    CHECK(f.Await(kTask, Kind::kExited).cause == v1::TaskReport::SUPERVISOR_LOST);
  };
  SECTION("nothing") { refused(); }
  SECTION("not even a directory") {
    std::filesystem::remove_all(directory);
    refused();
  }
  SECTION("a spec, whole or torn, with an epilog that is not due") {
    spec.epilog = {"/bin/false"};
    std::string text = EncodeSpec(spec);
    const int cut = GENERATE(0, 1, 2);  // whole, torn, not yet written
    text.resize(cut == 2 ? 0 : text.size() - static_cast<size_t>(cut));
    std::ofstream(directory + "/spec", std::ios::binary) << text;
    refused();
  }
  SECTION("a supervisor that had not started the command") {
    std::ofstream(directory + "/spec", std::ios::binary) << EncodeSpec(spec);
    SupervisorStatus status;
    status.supervisor_pid = 1 << 22;  // no such process
    REQUIRE(ReplaceFile(directory, "status", EncodeStatus(status)) == 0);
    refused();
  }
  SECTION("a supervisor that had started the command") {
    std::ofstream(directory + "/spec", std::ios::binary) << EncodeSpec(spec);
    SupervisorStatus status;
    status.phase = SupervisorStatus::kBeginning;
    REQUIRE(ReplaceFile(directory, "status", EncodeStatus(status)) == 0);
    lost(record);
  }
  SECTION("an older supervisor, which does not record the start of the command") {
    spec.marks_beginning = false;
    std::ofstream(directory + "/spec", std::ios::binary) << EncodeSpec(spec);
    lost(record);
  }
  SECTION("a task that was running already, in any state") {
    lost(f.Record(kTask, agent::v1::TaskRecord::RUNNING));
  }
}

TEST_CASE("a supervisor records that it starts the command before it does") {
  Fixture f;
  f.Start(kTask, absl::StrCat("tr '\\0' '\\n' < ", DirectoryOf(f, kTask), "/status | grep phase; ",
                              "sleep 0.2"));
  f.Await(kTask, Kind::kExited);
  const std::string seen = f.Log(kTask);
  CHECK((seen == "phase=4\n" || seen == "phase=1\n"));
  CHECK(f.Status(kTask).phase == SupervisorStatus::kExited);
}

TEST_CASE("fault: a refusal above the agent's limit of live tasks is nobody's") {
  Agent agent;
  agent.Register();
  for (uint64_t uid = 1; uid <= kMaxLiveTasks; ++uid) agent.Prepare(Key(uid), true);
  CHECK(SentReports(agent).empty());
  agent.Prepare(Key(kMaxLiveTasks + 1), true);
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == TaskReport::REFUSED);
  CHECK(reports[0].fault() == TaskReport::NOBODY);
  CHECK(reports[0].message() == "the node already has 4096 tasks");
  CHECK(MakeInventory({}).max_tasks() == static_cast<int32_t>(kMaxLiveTasks));
}

TEST_CASE("the fault of a refusal is sent to the server, and its directory is removed") {
  Agent agent;
  agent.Register();
  for (uint64_t uid = 1; uid <= 2; ++uid) {
    agent.Prepare(Key(uid), true);
    agent.Event(Id(uid), TaskEvent::Kind::kPrepared);
    agent.runner.Take();
    SentReports(agent);
    TaskEvent refused;
    refused.id = Id(uid);
    refused.kind = TaskEvent::Kind::kRefused;
    refused.fault = uid == 1 ? TaskReport::JOB : TaskReport::NODE;
    refused.has_output = uid == 2;  // from a prolog: kept, as for a task that ran
    agent.logic->OnTaskEvent(agent.Now(), refused);
    const auto reports = SentReports(agent);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].state() == TaskReport::REFUSED);
    CHECK(reports[0].fault() == refused.fault);
    CHECK(agent.journal.state.tasks.at(Id(uid)).report().fault() == refused.fault);
    CHECK(agent.runner.Take() ==
          (uid == 1 ? std::vector<std::string>{"remove 1-0-1"} : std::vector<std::string>{}));
  }
}

}  // namespace
}  // namespace berth
