// The real stream, against a server that the test controls; and the real program, killed and
// restarted.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/agent_loop.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/discovery/wire.h"
#include "clients/agent/simulation.h"
#include "tests/unit/agent/fakes.h"
#include "tests/unit/agent/process_world.h"
#include "tests/unit/agent/scripted_server.h"

namespace berth {
namespace {

using testing::AgentConfig;
using testing::kPatience;
using testing::PrepareMessage;
using testing::ProgramBeside;
using testing::ScriptedServer;
using testing::StateDirectory;
using v1::TaskReport;

TEST_CASE("a link changes its channel while a stream is open") {
  struct Events final : LinkEvents {
    void OnMessage(uint64_t, v1::ServerMessage message) override {
      welcomes += message.has_welcome() ? 1 : 0;
    }
    void OnDisconnected(uint64_t, const std::string&) override {}
    std::atomic<int> welcomes = 0;
  };
  ScriptedServer server;
  const auto channel = [&] {
    return MakeAgentChannels(server.address(), grpc::InsecureChannelCredentials());
  };
  Events events;
  GrpcLink link(channel(), events);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node("n1");
  for (int i = 1; i <= 50; ++i) {
    link.Connect();
    link.Send(hello);
    for (int j = 0; j < 2000 && events.welcomes < i; ++j) absl::SleepFor(absl::Milliseconds(5));
    REQUIRE(events.welcomes == i);
    link.SetChannels(channel());
    if (i % 2 == 0) link.SetChannels(channel());
    if (i % 3 != 0) continue;
    link.Disconnect();
    absl::SleepFor(absl::Milliseconds(20));  // the stream ends before the next one begins
  }
}

TEST_CASE("an agent over a real stream: two-step start, reports, logs") {
  StateDirectory state;
  ScriptedServer server;
  auto loop = AgentLoop::Create(
      AgentConfig(state.path(), server.address()), ProgramBeside("berth-supervisor"),
      AgentChannels{.own =
                        MakeAgentChannels(server.address(), grpc::InsecureChannelCredentials())});
  REQUIRE(loop.ok());
  std::thread thread([&] { CHECK((*loop)->Run().ok()); });
  const v1::Hello hello =
      server.Await([](const v1::AgentMessage& m) { return m.has_hello(); }).hello();
  CHECK(hello.node() == "n1");
  CHECK(hello.agent_id().size() == 32);
  CHECK(hello.boot_id().size() == 36);
  server.Await([](const v1::AgentMessage& m) { return m.has_heartbeat() && m.epoch() == 1; });

  server.Send("n1", PrepareMessage(1, "echo port $MASTER_PORT at $MASTER_ADDR; exit 4", false));
  const int port = server.AwaitReport(1, TaskReport::PREPARED).reserved_port();
  CHECK(port >= 27000);
  v1::ServerMessage start;
  start.mutable_start()->mutable_key()->set_job_uid(1);
  start.mutable_start()->mutable_key()->set_attempt(1);
  start.mutable_start()->set_master_address("127.0.0.1");
  start.mutable_start()->set_master_port(port);
  server.Send("n1", start);
  server.AwaitReport(1, TaskReport::RUNNING);
  CHECK(server.AwaitReport(1, TaskReport::EXITED).exit_code() == 4);

  v1::ServerMessage read;
  read.mutable_read_log()->set_request(5);
  read.mutable_read_log()->mutable_key()->set_job_uid(1);
  read.mutable_read_log()->mutable_key()->set_attempt(1);
  read.mutable_read_log()->set_follow(true);
  server.Send("n1", read);
  const auto chunk = server.Await(
      [](const v1::AgentMessage& m) { return m.has_log() && !m.log().data().empty(); });
  CHECK(chunk.log().data() == absl::StrCat("port ", port, " at 127.0.0.1\n"));
  server.Await([](const v1::AgentMessage& m) {
    return m.has_log() && m.log().end() && m.log().error().empty();
  });

  auto second = AgentLoop::Create(
      AgentConfig(state.path(), server.address()), ProgramBeside("berth-supervisor"),
      AgentChannels{.own =
                        MakeAgentChannels(server.address(), grpc::InsecureChannelCredentials())});
  CHECK(absl::IsFailedPrecondition(second.status()));  // the state directory is in use
  (*loop)->Stop();
  thread.join();
}

// What a probe would find.
discovery::Machine MachineOf(int64_t numa_memory, int nics) {
  discovery::Machine machine;
  machine.packages.push_back({});
  discovery::NumaNode numa;
  numa.os_index = 0;
  numa.cpus = "0-1";
  numa.memory_bytes = numa_memory;
  machine.numa_nodes.push_back(numa);
  for (int i = 0; i < nics; ++i) {
    discovery::Nic nic;
    nic.name = absl::StrCat("mlx5_", i);
    nic.pci.bus = static_cast<uint8_t>(i + 1);
    machine.nics.push_back(nic);
  }
  return machine;
}

TEST_CASE("an agent keeps its registered memory while a host lends and takes back some") {
  constexpr int64_t kMemory = int64_t{24} << 30;
  StateDirectory state;
  ScriptedServer server;
  const std::string answer = state.path() + "/machine";
  const std::string probe = state.path() + "/probe";
  std::ofstream(probe) << "#!/bin/sh\ntest $# -eq 0 && exec cat " << answer << "\n";
  chmod(probe.c_str(), 0755);
  const auto show = [&](int64_t memory, int nics) {
    std::ofstream(answer + ".new") << discovery::EncodeMachine(MachineOf(memory, nics));
    std::filesystem::rename(answer + ".new", answer);
  };
  config::v1::Agent config = AgentConfig(state.path(), server.address());
  AgentDevices devices = {.probe = probe, .declared = config};
  show(kMemory, 1);
  devices.found = DiscoverInto(probe, &config);
  REQUIRE(devices.found.read);
  auto loop = AgentLoop::Create(
      config, ProgramBeside("berth-supervisor"),
      AgentChannels{.own = MakeAgentChannels(server.address(), grpc::InsecureChannelCredentials())},
      std::move(devices));
  REQUIRE(loop.ok());
  std::thread thread([&] { CHECK((*loop)->Run().ok()); });
  // Waits for the next registration, with this many NICs.
  const auto memory_with = [&](int nics) {
    const v1::Hello hello =
        server
            .Await([&](const v1::AgentMessage& m) {
              return m.has_hello() && m.hello().inventory().devices_size() == nics;
            })
            .hello();
    server.Forget();
    REQUIRE(hello.inventory().topology().numa_nodes_size() == 1);
    return hello.inventory().topology().numa_nodes(0).memory_bytes();
  };
  CHECK(memory_with(1) == kMemory);
  show(kMemory - (int64_t{1} << 30), 2);
  (*loop)->LookAgain();
  CHECK(memory_with(2) == kMemory);
  show(kMemory - (int64_t{2} << 30), 2);  // more than a sixteenth of the registered memory
  (*loop)->LookAgain();
  CHECK(memory_with(2) == kMemory - (int64_t{2} << 30));
  (*loop)->Stop();
  thread.join();
}

pid_t SpawnAgent(const std::string& state, const std::string& server) {
  std::ofstream(state + "/agent.yaml")
      << "allowRootTasks: true\nfirstPort: 27000\nlastPort: 27999\ncgroups: {parent: "
      << testing::GroupParentOf(state) << "}\n";
  const std::vector<std::string> arguments = {ProgramBeside("berth-agent"),
                                              "--config",
                                              state + "/agent.yaml",
                                              "--state-dir",
                                              state + "/state",
                                              "--server",
                                              server,
                                              "--node-name",
                                              "n1"};
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, (state + "/agent.log").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  // ThreadSanitizer does not understand absl::Mutex in these programs (tests/tsan_annotations.cc):
  // no reports.
  setenv("TSAN_OPTIONS", "report_bugs=0", 1);
  pid_t pid = 0;
  REQUIRE(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

TEST_CASE("kill -9 of the agent: the task survives, is adopted, and its exit code arrives") {
  StateDirectory state;
  ScriptedServer server;
  const std::string gate = state.path() + "/gate";
  const std::string starts = state.path() + "/starts";
  pid_t agent = SpawnAgent(state.path(), server.address());
  server.Await([](const v1::AgentMessage& m) { return m.has_hello(); });
  server.ack_reports = false;
  const v1::ServerMessage prepare = PrepareMessage(
      3, "echo x >> " + starts + "; while [ ! -e " + gate + " ]; do sleep 0.02; done; exit 42",
      true);
  server.Send("n1", prepare);
  const uint64_t running = server.AwaitReport(3, TaskReport::RUNNING).report_id();
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  server.Forget();
  agent = SpawnAgent(state.path(), server.address());
  const v1::Hello hello =
      server.Await([](const v1::AgentMessage& m) { return m.has_hello(); }).hello();
  REQUIRE(hello.tasks_size() == 1);
  CHECK(hello.tasks(0).state() == TaskReport::RUNNING);
  CHECK(server.AwaitReport(3, TaskReport::RUNNING).report_id() ==
        running);  // not acked: reported again
  server.ack_reports = true;
  server.Send("n1", prepare);  // at most once
  std::ofstream(gate).put('x');
  const v1::TaskReport exited = server.AwaitReport(3, TaskReport::EXITED);
  CHECK(exited.exit_code() == 42);
  CHECK(exited.report_id() > running);
  std::string text;
  ReadWholeFile(starts, &text);
  CHECK(text == "x\n");
  kill(agent, SIGTERM);
  int status = 0;
  waitpid(agent, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a simulation runs its nodes over real streams") {
  ScriptedServer server;
  config::v1::Simulation config;
  config.set_server(server.address());
  config::v1::SimulatedNodes& nodes = *config.add_nodes();
  nodes.set_name("r[1-2]-n[01-20]");
  nodes.set_cpu_millis(8000);
  (*nodes.mutable_devices())["gpu"] = 8;
  nodes.mutable_run_time()->set_nanos(50'000'000);
  auto simulation = Simulation::Create(config, grpc::InsecureChannelCredentials());
  REQUIRE(simulation.ok());
  const absl::Time end = absl::Now() + kPatience;
  while ((*simulation)->counters().registered < 40 && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(10));
  REQUIRE((*simulation)->counters().registered == 40);
  for (uint64_t uid = 1; uid <= 40; ++uid) {
    const std::string node =
        absl::StrCat("r", 1 + uid % 2, "-n", uid % 20 + 1 < 10 ? "0" : "", uid % 20 + 1);
    server.Send(node, PrepareMessage(uid, "", true));
  }
  while (server.Count(TaskReport::EXITED) < 40 && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(10));
  CHECK(server.Count(TaskReport::EXITED) == 40);
  CHECK(server.Count(TaskReport::RUNNING) == 40);
  CHECK((*simulation)->counters().started == 40);
  CHECK((*simulation)->counters().running == 0);
}

TEST_CASE("a simulated task reports through its NOTIFY_SOCKET") {
  ScriptedServer server;
  config::v1::Simulation config;
  config.set_server(server.address());
  config.add_nodes()->set_name("n[1-3]");
  config.mutable_nodes(0)->mutable_run_time()->set_seconds(1000);
  auto simulation = Simulation::Create(config, grpc::InsecureChannelCredentials());
  REQUIRE(simulation.ok());
  server.Await([](const v1::AgentMessage& m) { return m.has_hello() && m.hello().node() == "n2"; });
  const TaskId id = {1, 0, 1};
  CHECK_FALSE((*simulation)->Tell(id, "READY=1"));
  server.Send("n2", PrepareMessage(1, "", true));
  server.AwaitReport(1, TaskReport::RUNNING);
  CHECK((*simulation)->Tell(id, "READY=1\nX_BERTH_STEP=5"));
  const v1::Progress progress =
      server.Await([](const v1::AgentMessage& m) { return m.has_progress(); }).progress();
  REQUIRE(progress.tasks_size() == 1);
  CHECK(ToTaskId(progress.tasks(0).key()) == id);
  CHECK(progress.tasks(0).step() == 5);
}

TEST_CASE("errors in a simulation file are refused") {
  config::v1::Simulation config;
  const auto message = [&] {
    return std::string(
        Simulation::Create(config, grpc::InsecureChannelCredentials()).status().message());
  };
  CHECK(message() == "no nodes");
  config.add_nodes()->set_name("n[1-2]");
  config.add_nodes()->set_name("n2");
  CHECK(message() == "node n2 is listed twice");
  config.mutable_nodes(1)->set_name("m");
  config.mutable_nodes(1)->set_failure_rate(1.5);
  CHECK(message() == "m: rates must be within 0..1");
  config.mutable_nodes(1)->set_failure_rate(0);
  config.mutable_nodes(1)->set_gpu_memory_bytes(-1);
  CHECK(message() == "m: gpuMemory must be 0 or more");
}

}  // namespace
}  // namespace berth
