// The small parts: environment, ports, name patterns, configuration, simulated nodes.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/environment.h"
#include "clients/agent/port_allocator.h"
#include "clients/agent/sim_node.h"
#include "clients/agent/supervisor/expand.h"
#include "support/name_pattern.h"
#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

v1::TaskLaunch Launch() {
  v1::TaskLaunch launch;
  launch.set_job("train");
  launch.set_group("worker");
  launch.set_index(3);
  launch.set_rank(4);
  launch.set_world_size(8);
  launch.set_node_rank(2);
  launch.set_node_count(4);
  launch.set_local_rank(1);
  launch.set_local_world_size(2);
  launch.set_group_size(7);
  launch.set_restart_count(5);
  launch.set_queue("research");
  return launch;
}

EnvironmentContext Context() {
  return {.node = "n1",
          .address = "10.0.0.1",
          .has_gpus = true,
          .user = "ada",
          .home = "/home/ada",
          .task_directory = "/t"};
}

TEST_CASE("a share of a GPU, and the limits that MPS enforces") {
  v1::TaskLaunch launch;
  launch.add_device_uuids("GPU-a");
  launch.add_device_kinds("gpu");
  launch.add_device_shares(250);
  EnvironmentContext context;
  context.has_gpus = true;
  context.device_memory["GPU-a"] = int64_t{80} << 30;
  Environment env = BuildEnvironment({1, 0, 1}, launch, {}, context);
  CHECK(env.at("BERTH_DEVICE_SHARE") == "0.250");
  CHECK(env.at("CUDA_VISIBLE_DEVICES") == "GPU-a");
  CHECK_FALSE(env.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  context.mps_pipe_directory = "/run/mps";
  env = BuildEnvironment({1, 0, 1}, launch, {}, context);
  CHECK(env.at("CUDA_MPS_PIPE_DIRECTORY") == "/run/mps");
  CHECK(env.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") == "25");
  CHECK(env.at("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == "0=20480M");
  launch.set_device_shares(0, 1000);
  env = BuildEnvironment({1, 0, 1}, launch, {}, context);
  CHECK_FALSE(env.contains("BERTH_DEVICE_SHARE"));
  CHECK_FALSE(env.contains("BERTH_DEVICE_MEMORY_BYTES"));
  launch.add_device_memory_shares(500);  // by memory: compute is not limited
  env = BuildEnvironment({1, 0, 1}, launch, {}, context);
  CHECK_FALSE(env.contains("BERTH_DEVICE_SHARE"));
  CHECK(env.at("BERTH_DEVICE_MEMORY_SHARE") == "0.500");
  CHECK(env.at("BERTH_DEVICE_MEMORY_BYTES") == "42949672960");
  CHECK_FALSE(env.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  CHECK(env.at("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == "0=40960M");
}

TEST_CASE("variables of an image are overridden, except its PATH") {
  v1::TaskLaunch launch = Launch();
  EnvironmentContext context = Context();
  context.image = {
      {"PATH", "/opt/bin"}, {"RANK", "9"}, {"HOME", "/x"}, {"OF", "image"}, {"A", "b"}};
  launch.add_env()->set_name("OF");
  launch.mutable_env(launch.env_size() - 1)->set_value("job");
  Environment env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("PATH") == "/opt/bin");
  CHECK(env.at("RANK") != "9");
  CHECK(env.at("HOME") != "/x");
  CHECK(env.at("OF") == "job");
  CHECK(env.at("A") == "b");
  context.image.erase("PATH");
  env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(absl::StrContains(env.at("PATH"), "/usr/bin"));
}

TEST_CASE("NOTIFY_SOCKET is the agent's, or the job's, and never an image's") {
  v1::TaskLaunch launch = Launch();
  EnvironmentContext context = Context();
  context.image = {{"NOTIFY_SOCKET", "/image"}, {"WATCHDOG_USEC", "1"}};
  Environment env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK_FALSE(env.contains("NOTIFY_SOCKET"));
  CHECK_FALSE(env.contains("WATCHDOG_USEC"));
  context.notify_socket = "/t/notify";
  env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("NOTIFY_SOCKET") == "/t/notify");
  CHECK_FALSE(env.contains("WATCHDOG_USEC"));
  launch.mutable_watchdog()->mutable_timeout()->set_seconds(600);
  env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("WATCHDOG_USEC") == "600000000");
  launch.add_env()->set_name("NOTIFY_SOCKET");
  launch.mutable_env(0)->set_value("/job");
  env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("NOTIFY_SOCKET") == "/job");
}

TEST_CASE("torchrun finds its options: one task is one of its nodes") {
  v1::TaskLaunch launch = Launch();
  launch.set_rigid(true);
  launch.set_epoch(3);
  v1::Start start;
  start.set_master_address("10.0.0.9");
  start.set_master_port(20005);
  const auto environment = [&] { return BuildEnvironment({12, 6, 2}, launch, start, Context()); };
  Environment env = environment();
  CHECK(env.at("BERTH_EPOCH") == "3");
  CHECK(env.at("PET_NNODES") == "8");
  CHECK(env.at("PET_NPROC_PER_NODE") == "1");
  CHECK(env.at("PET_NODE_RANK") == "4");
  CHECK(env.at("PET_MASTER_ADDR") == "10.0.0.9");
  CHECK(env.at("PET_MASTER_PORT") == "20005");
  CHECK(env.at("PET_RDZV_BACKEND") == "c10d");
  CHECK(env.at("PET_RDZV_ENDPOINT") == "10.0.0.9:20005");
  CHECK(env.at("PET_RDZV_ID") == "train-12");
  CHECK(env.at("PET_RDZV_CONF") == "is_host=false");
  SECTION("processes are the task's GPUs, and rank 0 hosts the rendezvous") {
    for (const char* kind : {"gpu", "gpu", "nic"}) {
      launch.add_device_kinds(kind);
      launch.add_device_uuids(kind);
    }
    launch.set_rank(0);
    env = environment();
    CHECK(env.at("PET_NPROC_PER_NODE") == "2");
    CHECK(env.at("PET_RDZV_CONF") == "is_host=true");
  }
  SECTION("with a coordinator, no worker hosts it") {
    launch.set_rank(0);
    launch.set_elsewhere(true);
    CHECK(environment().at("PET_RDZV_CONF") == "is_host=false");
  }
  SECTION("gangs that may be incomplete name their bounds, whatever the size of the moment") {
    launch.set_rigid(false);
    launch.set_least_world(3);
    launch.set_most_world(4);
    CHECK(environment().at("PET_NNODES") == "3:4");
    launch.set_least_world(4);
    CHECK(environment().at("PET_NNODES") == "4");
  }
  SECTION("a coordinator has no rank") {
    launch.set_coordinator(true);
    env = environment();
    CHECK_FALSE(env.contains("RANK"));
    CHECK_FALSE(env.contains("PET_NODE_RANK"));
    CHECK(env.at("WORLD_SIZE") == "8");
    CHECK(env.at("MASTER_PORT") == "20005");
  }
}

TEST_CASE("the environment contract") {
  v1::TaskLaunch launch = Launch();
  for (const char* uuid : {"GPU-a", "GPU-b"}) {
    launch.add_device_uuids(uuid);
    launch.add_device_kinds("gpu");
  }
  launch.add_device_uuids("mlx5_0");
  launch.add_device_kinds("nic");
  v1::Start start;
  start.set_master_address("10.0.0.9");
  start.set_master_port(20005);
  for (const char* node : {"n9", "n1"}) start.add_nodes(node);
  const Environment env = BuildEnvironment({12, 6, 2}, launch, start, Context());
  const Environment expected = {
      {"BERTH_ATTEMPT", "2"},
      {"BERTH_DEVICES_GPU", "GPU-a,GPU-b"},
      {"BERTH_DEVICES_NIC", "mlx5_0"},
      {"BERTH_GROUP", "worker"},
      {"BERTH_GROUP_INDEX", "3"},
      {"BERTH_GROUP_SIZE", "7"},
      {"BERTH_HOSTFILE", "/t/hostfile"},
      {"BERTH_JOB", "train"},
      {"BERTH_JOB_UID", "12"},
      {"BERTH_NODE", "n1"},
      {"BERTH_NODES", "n9,n1"},
      {"BERTH_QUEUE", "research"},
      {"BERTH_TASK", "worker-3"},
      {"BERTH_TASK_DIR", "/t"},
      {"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"},
      {"GROUP_RANK", "2"},
      {"HOME", "/home/ada"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"LOGNAME", "ada"},
      {"MASTER_ADDR", "10.0.0.9"},
      {"MASTER_PORT", "20005"},
      {"NCCL_IB_HCA", "=mlx5_0"},
      {"NODE_RANK", "2"},
      {"NVIDIA_VISIBLE_DEVICES", "GPU-a,GPU-b"},
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"PET_MASTER_ADDR", "10.0.0.9"},
      {"PET_MASTER_PORT", "20005"},
      {"PET_NNODES", "8"},
      {"PET_NODE_RANK", "4"},
      {"PET_NPROC_PER_NODE", "2"},
      {"PET_RDZV_BACKEND", "c10d"},
      {"PET_RDZV_CONF", "is_host=false"},
      {"PET_RDZV_ENDPOINT", "10.0.0.9:20005"},
      {"PET_RDZV_ID", "train-12"},
      {"RANK", "4"},
      {"TORCHELASTIC_RESTART_COUNT", "5"},
      {"TORCHELASTIC_RUN_ID", "train-12"},
      {"USER", "ada"},
      {"WORLD_SIZE", "8"}};
  CHECK(env == expected);
}

TEST_CASE("GPUs are hidden from tasks that have none, but the user's variables win") {
  v1::TaskLaunch launch = Launch();
  launch.add_env()->set_name("RANK");
  launch.mutable_env(0)->set_value("mine");
  launch.add_env()->set_name("BERTH_TASK_DIR");
  launch.mutable_env(1)->set_value("fake");
  Environment env = BuildEnvironment({12, 6, 2}, launch, {}, Context());
  CHECK(env.at("CUDA_VISIBLE_DEVICES").empty());
  CHECK(env.at("NVIDIA_VISIBLE_DEVICES") == "void");
  CHECK(env.at("RANK") == "mine");
  CHECK(env.at("BERTH_TASK_DIR") == "/t");
  CHECK(env.at("MASTER_ADDR") == "10.0.0.1");
  EnvironmentContext plain = Context();
  plain.has_gpus = false;
  CHECK_FALSE(BuildEnvironment({12, 6, 2}, launch, {}, plain).contains("CUDA_VISIBLE_DEVICES"));
  launch.clear_device_uuids();
  launch.clear_device_kinds();
  launch.add_device_uuids("MIG-a");
  launch.add_device_kinds("mig");
  env = BuildEnvironment({12, 6, 2}, launch, {}, plain);
  CHECK(env.at("CUDA_VISIBLE_DEVICES") == "MIG-a");
  CHECK(env.at("NVIDIA_VISIBLE_DEVICES") == "MIG-a");
  CHECK(env.at("BERTH_DEVICES_MIG") == "MIG-a");
}

TEST_CASE("members of gangs get the network interface to use") {
  v1::TaskLaunch launch = Launch();
  EnvironmentContext context = Context();
  context.socket_interface = "eth7";
  launch.set_world_size(1);
  CHECK_FALSE(BuildEnvironment({12, 6, 2}, launch, {}, context).contains("NCCL_SOCKET_IFNAME"));
  launch.set_world_size(2);
  Environment env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("NCCL_SOCKET_IFNAME") == "=eth7");
  CHECK(env.at("GLOO_SOCKET_IFNAME") == "eth7");
  v1::EnvVar& own = *launch.add_env();
  own.set_name("NCCL_SOCKET_IFNAME");
  own.set_value("ib");
  CHECK(BuildEnvironment({12, 6, 2}, launch, {}, context).at("NCCL_SOCKET_IFNAME") == "ib");
  context.socket_interface.clear();
  CHECK_FALSE(BuildEnvironment({12, 6, 2}, launch, {}, context).contains("GLOO_SOCKET_IFNAME"));

  config::v1::Agent config;
  config.set_address("127.0.0.1");
  CHECK(SocketInterface(config) == "lo");
  config.set_address("192.0.2.77");  // assigned to no interface
  CHECK(SocketInterface(config).empty());
  config.set_address("a-host-name");
  CHECK(SocketInterface(config).empty());
  config.set_socket_interface("eth7");
  CHECK(SocketInterface(config) == "eth7");
}

TEST_CASE("NCCL gets the task's NICs, and the node's topology with the task's GPUs") {
  v1::TaskLaunch launch = Launch();
  EnvironmentContext context = Context();
  context.nccl_topo_file = "/etc/topology.xml";
  Environment env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK_FALSE(env.contains("NCCL_IB_HCA"));
  CHECK_FALSE(env.contains("NCCL_TOPO_FILE"));
  for (const char* kind : {"gpu", "nic", "nic"}) {
    launch.add_device_kinds(kind);
    launch.add_device_uuids(absl::StrCat(kind, launch.device_kinds_size()));
  }
  env = BuildEnvironment({12, 6, 2}, launch, {}, context);
  CHECK(env.at("NCCL_IB_HCA") == "=nic2,nic3");
  CHECK(env.at("NCCL_TOPO_FILE") == "/etc/topology.xml");
}

TEST_CASE("a very long node list is only in the host file") {
  v1::Start start;
  for (int i = 0; i < 10000; ++i) {
    start.add_nodes(absl::StrCat("node-with-a-long-name-", i));
    start.add_node_addresses(absl::StrCat("10.0.", i / 256, ".", i % 256));
  }
  const Environment env = BuildEnvironment({1, 0, 1}, Launch(), start, Context());
  CHECK_FALSE(env.contains("BERTH_NODES"));
  const std::string text = HostfileText(start, Context());
  CHECK(std::count(text.begin(), text.end(), '\n') == 10000);
  CHECK(text.substr(0, 18) == "10.0.0.0\n10.0.0.1\n");
}

TEST_CASE("variables in commands") {
  const Environment env = {{"RANK", "3"}, {"A_1", "x"}, {"EMPTY", ""}};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"$RANK", "3"},
      {"--r=${RANK}!", "--r=3!"},
      {"$A_1.$RANK", "x.3"},
      {"${EMPTY}", ""},
      {"$UNKNOWN ${UNKNOWN}", "$UNKNOWN ${UNKNOWN}"},
      {"$$RANK $${RANK}", "$RANK ${RANK}"},
      {"$$", "$$"},
      {"$", "$"},
      {"${RANK", "${RANK"},
      {"$1 $?", "$1 $?"},
      {"${}", "${}"},
      {"a$", "a$"},
      {"$RANKS", "$RANKS"}};
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(ExpandVariables(text, env) == expected);
  }
}

TEST_CASE("ports are unique, released, adopted, and probed") {
  std::set<int> busy = {20001};
  PortAllocator ports(20000, 20003, [&](int port) { return !busy.contains(port); });
  CHECK(*ports.Reserve({1, 0, 1}) == 20000);
  CHECK(*ports.Reserve({1, 0, 1}) == 20000);
  CHECK(*ports.Reserve({2, 0, 1}) == 20002);
  ports.Adopt({3, 0, 1}, 20003);
  CHECK(absl::IsResourceExhausted(ports.Reserve({4, 0, 1}).status()));
  ports.Release({1, 0, 1});
  CHECK(*ports.Reserve({4, 0, 1}) == 20000);
}

TEST_CASE("a preferred port is taken if it is free, and in the range") {
  std::set<int> busy = {20001};
  PortAllocator ports(20000, 20003, [&](int port) { return !busy.contains(port); });
  CHECK(*ports.Reserve({1, 0, 1}, 20002) == 20002);
  CHECK(*ports.Reserve({2, 0, 1}, 20002) == 20000);  // held
  CHECK(*ports.Reserve({3, 0, 1}, 20001) == 20003);  // busy
  ports.Release({1, 0, 1});
  CHECK(*ports.Reserve({1, 0, 2}, 20002) == 20002);
  ports.Release({2, 0, 1});
  CHECK(*ports.Reserve({4, 0, 1}, 80) == 20000);  // not ours to give
}

TEST_CASE("a port with a listener is not bindable") {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(fd, 1) == 0);
  socklen_t length = sizeof address;
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  CHECK_FALSE(IsPortBindable(ntohs(address.sin_port)));
  close(fd);
  CHECK(IsPortBindable(ntohs(address.sin_port)));
}

TEST_CASE("name patterns") {
  const auto expand = [](absl::string_view pattern) -> std::string {
    const auto names = ExpandNamePattern(pattern);
    return names.ok() ? absl::StrJoin(*names, " ") : std::string(names.status().message());
  };
  CHECK(expand("node") == "node");
  CHECK(expand("n[01-03]") == "n01 n02 n03");
  CHECK(expand("r[1-2]-n[8-10]") == "r1-n8 r1-n9 r1-n10 r2-n8 r2-n9 r2-n10");
  CHECK(expand("n[1,3,5-6].local") == "n1.local n3.local n5.local n6.local");
  CHECK(expand("n[3-1]") == "name pattern \"n[3-1]\": \"3-1\" runs backwards");
  CHECK(expand("n[1") == "name pattern \"n[1\": \"[\" without \"]\"");
  CHECK(expand("n1]") == "name pattern \"n1]\": \"]\" without \"[\"");
  CHECK(expand("n[a-b]") == "name pattern \"n[a-b]\": \"a-b\" is not a number or range");
  CHECK(expand("n[]") == "name pattern \"n[]\": \"\" is not a number or range");
  CHECK(expand("n[1-]") == "name pattern \"n[1-]\": \"1-\" is not a number or range");
  CHECK(expand("n[0-999999999]") == "name pattern \"n[0-999999999]\": too many names");
  CHECK(expand("").find("empty") != std::string::npos);
}

TEST_CASE("configuration: defaults and invalid values") {
  config::v1::Agent config;
  SetAgentDefaults(&config);
  CHECK(config.server() == "127.0.0.1:7070");
  CHECK(config.cpu_millis() >= 1000);
  CHECK(config.memory_bytes() > 0);
  CHECK(CheckAgentConfig(config, 1000).ok());
  CHECK(std::string(CheckAgentConfig(config, 0).message()).find("taskUser: required") == 0);
  config.set_allow_root_tasks(true);
  CHECK(CheckAgentConfig(config, 0).ok());
  config.set_server("nope");
  config.set_state_directory("var/agent");
  const std::string places(CheckAgentConfig(config, 1000).message());
  CHECK(places.find("server: must be HOST:PORT, as in nope:7070 or") != std::string::npos);
  CHECK(places.find("stateDirectory: must be an absolute path") != std::string::npos);
  config.set_server("[::1]:7070");
  config.set_state_directory("/var/agent");
  CHECK(CheckAgentConfig(config, 1000).ok());
  config.set_allow_root_tasks(false);
  config.set_task_user("no-such-user");
  config.set_last_port(config.first_port() - 1);
  for (int i = 0; i < 2; ++i) {
    config.add_devices()->set_kind("gpu");
    config.mutable_devices(i)->set_uuid("same");
  }
  config.mutable_images()->set_cache("images");
  config.mutable_images()->set_max_image_files(-1);
  config.mutable_images()->mutable_unpack_timeout()->set_seconds(25 * 3600);
  const std::string problems(CheckAgentConfig(config, 0).message());
  for (const char* part : {"no such user: no-such-user", "firstPort", "uuid same is listed twice",
                           "images.cache: must be", "images.unpackTimeout: 1s..24h",
                           "images.maxImageFiles: must not be negative"}) {
    CAPTURE(problems);
    CHECK(problems.find(part) != std::string::npos);
  }
  config.set_task_user("root");
  CHECK(std::string(CheckAgentConfig(config, 0).message()).find("root requires allowRootTasks") !=
        std::string::npos);
}

TEST_CASE("simulated nodes have the devices that the file declares") {
  config::v1::SimulatedNodes nodes;
  nodes.set_cpu_millis(64000);
  (*nodes.mutable_devices())["gpu"] = 2;
  (*nodes.mutable_devices())["nic"] = 1;
  (*nodes.mutable_models())["gpu"] = "H100";
  nodes.set_gpu_memory_bytes(int64_t{80} << 30);
  nodes.set_compute_capability("9.0");
  nodes.set_tasks_per_gpu(4);
  const v1::NodeInventory inventory = SimInventory("n07", nodes).value();
  REQUIRE(inventory.devices_size() == 3);
  CHECK(inventory.devices(1).memory_bytes() == int64_t{80} << 30);
  CHECK(inventory.devices(1).compute_capability() == "9.0");
  CHECK(inventory.devices(1).max_tasks() == 4);
  CHECK(inventory.devices(2).kind() == "nic");
  CHECK(inventory.devices(2).memory_bytes() == 0);
  CHECK(inventory.devices(1).uuid() == "n07-gpu-1");
  CHECK(inventory.devices(1).model() == "H100");
}

TEST_CASE("simulated nodes have the interconnect of a known machine") {
  config::v1::SimulatedNodes nodes;
  nodes.set_cpu_millis(64000);
  (*nodes.mutable_devices())["gpu"] = 8;
  nodes.set_device_topology("dgx-1");
  const v1::NodeInventory inventory = SimInventory("n07", nodes).value();
  CHECK(inventory.topology().between().size() == 28);
  CHECK(inventory.devices(7).numa_node() == 1);
  CHECK(inventory.topology().numa_nodes(1).cpus() == "32-63");
  nodes.set_device_topology("dgx-9");
  CHECK(absl::IsNotFound(SimInventory("n07", nodes).status()));
  nodes.set_device_topology("ac922");
  CHECK(absl::IsInvalidArgument(SimInventory("n07", nodes).status()));
  (*nodes.mutable_devices())["gpu"] = 4;
  (*nodes.mutable_devices())["fpga"] = 1;
  CHECK(absl::IsInvalidArgument(SimInventory("n07", nodes).status()));
}

TEST_CASE("simulated tasks run for their time, fail and are refused at the given rates") {
  SimBehaviour behaviour;
  behaviour.failure_rate = 0.25;
  behaviour.refusal_rate = 0.5;
  Random random(1);
  SimCounters counters;
  std::vector<std::pair<absl::Duration, TaskEvent>> events;
  SimRunner runner(behaviour, random, counters, [&](absl::Duration delay, TaskEvent event) {
    events.push_back({delay, event});
  });
  int refused = 0;
  int failed = 0;
  v1::TaskLaunch launch;
  launch.add_env()->set_name("BERTH_SIM_RUN_TIME");
  launch.mutable_env(0)->set_value("5s");
  for (uint64_t uid = 1; uid <= 2000; ++uid) {
    events.clear();
    runner.Prepare({uid, 0, 1}, launch, true);
    REQUIRE(runner.Accept(events.at(0).second));
    refused += events.at(0).second.kind == TaskEvent::Kind::kRefused;
    if (events.at(0).second.kind == TaskEvent::Kind::kRefused) continue;
    events.clear();
    runner.Start({uid, 0, 1}, launch, {});
    REQUIRE(events.size() == 2);
    CHECK(events[1].first == absl::Seconds(5));
    CHECK(runner.Accept(events[0].second));
    failed += events[1].second.exit_code;
    if (uid % 2 == 0) {  // killed: ends once
      runner.Kill({uid, 0, 1}, "SIGTERM", absl::Seconds(1), v1::TaskReport::KILLED);
      CHECK(runner.Accept(events.at(2).second));
      CHECK_FALSE(runner.Accept(events[1].second));
    } else {
      CHECK(runner.Accept(events[1].second));
    }
  }
  CHECK(refused > 900);
  CHECK(refused < 1100);
  CHECK(failed > 200);
  CHECK(failed < 300);
  CHECK(counters.running == 0);
}

}  // namespace
}  // namespace berth
