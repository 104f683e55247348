// Hello: which agent may register as which node, and how its tasks are reconciled with the state.
#include <catch2/catch.hpp>
#include <functional>

#include "absl/strings/str_cat.h"
#include "server/convert/node.h"
#include "server/validation/hello.h"
#include "server/validation/lifecycle.h"
#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

v1::Refused::Code RefusalOf(const Agent& agent) {
  const auto refusals = agent.link->Of(Message::kRefused);
  return refusals.empty() ? v1::Refused::CODE_UNSPECIFIED : refusals[0].refused().code();
}

TEST_CASE("registration: Welcome is sent when it is durable, with the epoch and the times") {
  World world;
  Agent agent(&world, "n1");
  world.committer.hold = true;
  agent.Connect();
  CHECK(agent.link->messages.empty());
  world.committer.Release();
  REQUIRE(agent.link->Of(Message::kWelcome).size() == 1);
  const v1::Welcome welcome = agent.link->Of(Message::kWelcome)[0].welcome();
  CHECK(welcome.epoch() == 1);
  CHECK(welcome.lease().seconds() == 15);
  CHECK(welcome.heartbeat_interval().seconds() == 5);
  const Node& node = world.node("n1");
  CHECK(node.status.agent_id == "agent-n1");
  CHECK(node.spec.cpu_millis == 8000);
  CHECK(node.spec.address == "n1.example");
}

TEST_CASE("registration: every message to an agent names the term of the server") {
  World world;
  world.term = 7;
  Agent agent(&world, "n1");
  agent.Connect();
  world.Submit("a");
  world.Run();
  agent.Heartbeat();
  world.gateway->Disconnect(world.node("n1").id, agent.epoch, v1::Refused::STALE_EPOCH, "enough");
  REQUIRE(agent.link->messages.size() >= 4);
  for (const Message& message : agent.link->messages) CHECK(message.term() == 7);
}

TEST_CASE("registration: the same agent takes over, and its old stream is closed") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const auto old_link = agent.link;
  const SessionId old_session = agent.session;
  agent.Connect();
  CHECK(agent.epoch == 2);
  REQUIRE(old_link->Of(Message::kRefused).size() == 1);
  CHECK(old_link->Of(Message::kRefused)[0].refused().code() == v1::Refused::SUPERSEDED);
  CHECK(old_link->closed);
  world.gateway->OnClosed(old_session);  // the old stream's end does not end the new session
  CHECK(world.gateway->CurrentSession(world.node("n1").id) == agent.session);
}

TEST_CASE("registration: a reboot removes only the cordon for refused starts") {
  for (const bool for_refusals : {true, false}) {
    for (const bool rebooted : {true, false}) {
      World world;
      Agent agent(&world, "n1");
      agent.Connect();
      const std::string why = for_refusals ? "5 jobs in a row" : "by an operator";
      const std::string reason = absl::StrCat(for_refusals ? kCordonedForRefusals : "", why);
      const NodeId node = world.node("n1").id;
      const auto cordon = [&](Turn& turn) {
        REQUIRE(turn.Emit(NodeSteered{node, true, false, reason}).ok());
      };
      REQUIRE(world.loop->Post(cordon).ok());
      world.Run();
      if (rebooted) agent.boot_id = "boot-2";
      agent.Connect();
      CHECK(world.node("n1").status.cordoned == !(for_refusals && rebooted));
    }
  }
}

TEST_CASE("registration: another agent cannot take a name that is in use") {
  World world;
  Agent first(&world, "n1"), second(&world, "n1", "other");
  first.Connect();
  second.Connect();
  CHECK(RefusalOf(second) == v1::Refused::NAME_IN_USE);
  CHECK(second.link->Of(Message::kRefused)[0].refused().retry_after().seconds() == 30);
  CHECK(second.link->closed);
  CHECK_FALSE(first.link->closed);
  CHECK(world.node("n1").status.epoch == 1);

  SECTION("not even while the node is silent") {
    world.Advance(absl::Seconds(18));
    REQUIRE(world.node("n1").status.state == NodeState::kSilent);
    second.Connect();
    CHECK(RefusalOf(second) == v1::Refused::NAME_IN_USE);
  }
  SECTION("it can take the name of a lost node") {
    world.Advance(absl::Seconds(40));
    REQUIRE(world.node("n1").status.state == NodeState::kLost);
    second.Connect();
    CHECK(second.epoch == 2);
    CHECK(world.node("n1").status.agent_id == "other");
  }
}

TEST_CASE("registration: messages of an old epoch are refused") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  SECTION("in a message") {
    agent.epoch = 77;
    agent.Report(agent.ReportFor(job, 0, 1, v1::TaskReport::EXITED));
  }
  SECTION("on a superseded stream that is still open") {
    Agent old = agent;
    agent.Connect();
    old.link->closed = false;
    old.Report(old.ReportFor(job, 0, 1, v1::TaskReport::EXITED));
    world.Run();
    CHECK(old.link->messages.back().refused().code() == v1::Refused::STALE_EPOCH);
    agent.link = old.link;
  }
  SECTION("a heartbeat") {
    agent.epoch = 2;
    agent.Heartbeat();
  }
  world.Run();
  CHECK(world.gateway->counters().stale_epochs == 1);
  CHECK(agent.link->messages.back().refused().code() == v1::Refused::STALE_EPOCH);
  CHECK(agent.link->closed);
  CHECK(world.task(job).state == TaskState::kRunning);
}

TEST_CASE("registration: messages before Hello are refused, and so is a second Hello") {
  World world;
  Agent agent(&world, "n1");
  agent.link = std::make_shared<testing::FakeLink>();
  agent.session = world.gateway->OnConnect(agent.link);
  agent.Heartbeat();
  CHECK(RefusalOf(agent) == v1::Refused::STALE_EPOCH);
  agent.Connect();
  v1::AgentMessage again;
  again.mutable_hello()->set_node("n1");
  agent.Send(again);
  CHECK(RefusalOf(agent) == v1::Refused::INVALID);
}

// Two GPUs of NUMA node 1 that NVLink connects, and a third that it does not connect.
v1::NodeInventory ThreeGpus() {
  v1::NodeInventory inventory;
  inventory.set_cpu_millis(16'000);
  inventory.set_memory_bytes(int64_t{64} << 30);
  for (const char* uuid : {"GPU-b", "GPU-c", "GPU-a"}) {
    v1::Device& device = *inventory.add_devices();
    device.set_kind("gpu");
    device.set_uuid(uuid);
    device.set_numa_node(1);
  }
  v1::DeviceTopology& topology = *inventory.mutable_topology();
  topology.add_links()->set_link(v1::LINK_CLASS_SYS);
  topology.add_links()->set_link(v1::LINK_CLASS_NVLINK);
  topology.mutable_links(1)->set_count(4);
  topology.set_between("\2\1\1");
  for (int id : {0, 1}) {
    v1::NumaNode& numa = *topology.add_numa_nodes();
    numa.set_id(id);
    numa.set_cpus(id == 0 ? "0-7" : "8-15");
    numa.set_memory_bytes(int64_t{32} << 30);
  }
  return inventory;
}

TEST_CASE("registration: device links are kept when devices are sorted") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory = ThreeGpus();
  agent.Connect();
  const NodeSpec& spec = world.node("n1").spec;
  REQUIRE(spec.devices.size() == 3);
  CHECK(spec.devices[0].uuid == "GPU-a");
  CHECK(LinkBetween(spec.topology, 3, 0, 1).link == LinkClass::kSys);
  CHECK(LinkBetween(spec.topology, 3, 1, 2).count == 4);
  CHECK(spec.topology.numa_nodes[1].cpus == "8-15");
  v1::Node shown;
  RenderNode(world.state(), world.node("n1"), /*devices=*/true, &shown);
  CHECK(shown.inventory().topology().between() == "\1\1\2");
  CHECK(shown.inventory().topology().numa_nodes(1).memory_bytes() == int64_t{32} << 30);
  RenderNode(world.state(), world.node("n1"), /*devices=*/false, &(shown = {}));
  CHECK_FALSE(shown.inventory().has_topology());
}

TEST_CASE("registration: a task receives the CPUs and memory near its devices") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory = ThreeGpus();
  agent.Connect();
  world.Submit("two", {.gpus = 2});
  REQUIRE(agent.link->Of(Message::kPrepare).size() == 1);
  const v1::TaskLaunch launch = agent.link->Of(Message::kPrepare)[0].prepare().launch();
  REQUIRE(launch.device_uuids_size() == 2);
  CHECK(launch.device_uuids(0) == "GPU-b");  // the two that NVLink connects
  CHECK(launch.device_uuids(1) == "GPU-c");
  CHECK(launch.cpuset() == "8-15");
  REQUIRE(launch.memory_nodes_size() == 1);
  CHECK(launch.memory_nodes(0) == 1);
}

TEST_CASE("registration: every error of a topology is reported") {
  const auto faults = [](const std::function<void(v1::DeviceTopology&)>& spoil) {
    v1::Hello hello;
    hello.set_node("n1");
    hello.set_agent_id("a");
    hello.set_boot_id("b");
    *hello.mutable_inventory() = ThreeGpus();
    spoil(*hello.mutable_inventory()->mutable_topology());
    return std::string(ValidateHello(hello, kFormatOfProgress).message());
  };
  using Topology = v1::DeviceTopology;
  CHECK(faults([](Topology&) {}) == "");
  const auto names = [](const std::string& text, const std::string& path) {
    INFO(text);
    CHECK(text.find("inventory.topology." + path) != std::string::npos);
  };
  names(faults([](Topology& t) { t.set_between("\1\1"); }), "between");
  names(faults([](Topology& t) { t.set_between("\1\1\3"); }), "between");
  names(faults([](Topology& t) { t.mutable_links(0)->set_count(-1); }), "links[0].count");
  names(faults([](Topology& t) { t.mutable_links(1)->set_mb_per_s(-1); }), "links[1].mb_per_s");
  names(faults([](Topology& t) {
          while (t.links_size() < 256) t.add_links();
        }),
        "links");
  names(faults([](Topology& t) { t.mutable_numa_nodes(1)->set_id(0); }), "numa_nodes[1].id");
  names(faults([](Topology& t) { t.mutable_numa_nodes(0)->set_cpus("8-"); }), "numa_nodes[0].cpus");
  names(faults([](Topology& t) {
          while (t.numa_nodes_size() < 65) t.add_numa_nodes();
        }),
        "numa_nodes");
}

TEST_CASE("registration: text from an agent must be one line") {
  v1::Hello hello;
  hello.set_node("n1");
  hello.set_agent_id("a\x1b[2J");
  hello.set_boot_id("b\nc");
  hello.set_agent_version(
      "\xe2\x80\xae"
      "1");
  hello.mutable_inventory()->set_address("10.0.0.1\r");
  hello.mutable_inventory()->set_os("\xc2\x9b");
  v1::Device& device = *hello.mutable_inventory()->add_devices();
  device.set_kind("gpu");
  device.set_uuid("u");
  device.set_model("A\tB");
  const absl::Status refused = ValidateHello(hello, kFormatOfProgress);
  std::string fields;
  for (const Violation& one : ViolationsOf(refused)) fields += one.field + " ";
  CHECK(fields ==
        "agent_id boot_id agent_version inventory.address inventory.os "
        "inventory.devices[0].model ");
  CHECK(refused.message().find('\x1b') == absl::string_view::npos);
}

TEST_CASE("registration: every error of a Hello is reported") {
  v1::Hello hello;
  hello.set_node("Bad_Name");
  hello.set_boot_id("b");
  v1::NodeInventory& inventory = *hello.mutable_inventory();
  inventory.set_cpu_millis(-1);
  inventory.set_memory_bytes(int64_t{1} << 62);
  for (int i = 0; i < 2; ++i) {
    v1::Device& device = *inventory.add_devices();
    device.set_kind(i == 0 ? "gpu" : "cpu");
    device.set_uuid("same");
  }
  (*inventory.mutable_extended())["gpu"] = 1;
  inventory.add_taints()->set_key("k");
  inventory.mutable_taints(0)->set_effect(v1::Taint::NO_EXECUTE);
  hello.add_tasks();
  const std::string text(ValidateHello(hello, kFormatOfProgress).message());
  for (const char* expected : {"node", "agent_id", "inventory.cpu_millis", "inventory.memory_bytes",
                               "inventory.devices[1].kind", "inventory.devices[1].uuid",
                               "inventory.extended", "tasks[0].state"}) {
    INFO(expected << " in " << text);
    CHECK(text.find(expected) != std::string::npos);
  }
  World world;
  Agent agent(&world, "Bad_Name");
  agent.Connect();
  CHECK(RefusalOf(agent) == v1::Refused::INVALID);
  CHECK(agent.link->closed);
  CHECK(world.state().nodes().empty());
}

TEST_CASE("registration: taints that evict need a store that can hold them") {
  World world;
  Agent agent(&world, "n1");
  agent.inventory.add_taints()->set_key("k");
  agent.inventory.mutable_taints(0)->set_effect(v1::Taint::NO_EXECUTE);
  agent.inventory.add_taints()->set_key("other");
  SECTION("a new one") {
    agent.Connect();
    const Node& node = world.node("n1");
    REQUIRE(node.spec.taints.size() == 2);
    CHECK(node.spec.taints[0].evicts);
    CHECK_FALSE(node.spec.taints[1].evicts);
    v1::Node shown;
    RenderNode(world.state(), node, /*devices=*/false, &shown);
    CHECK(shown.inventory().taints(0).effect() == v1::Taint::NO_EXECUTE);
    CHECK(shown.inventory().taints(1).effect() == v1::Taint::NO_SCHEDULE);
  }
  SECTION("an older one") {
    world.store_format = kFormatOfProgress - 1;
    agent.Connect();
    REQUIRE(RefusalOf(agent) == v1::Refused::INVALID);
    const std::string message = agent.link->Of(Message::kRefused)[0].refused().message();
    CHECK(message.find("inventory.taints[0].effect") != std::string::npos);
    CHECK(message.find("needs store format 8, and the store has 7") != std::string::npos);
    CHECK(world.state().nodes().empty());
  }
}

TEST_CASE("registration: returns busy when the loop takes no more commands") {
  LoopOptions options;
  options.pending_commands = 1;
  options.essential_commands = 0;
  World world(options);
  REQUIRE(world.loop->Post([](Turn&) {}).ok());
  Agent agent(&world, "n1");
  agent.Connect();
  CHECK(RefusalOf(agent) == v1::Refused::BUSY);
  CHECK(agent.link->Of(Message::kRefused)[0].refused().retry_after().seconds() == 2);
}

TEST_CASE("reconnect: running tasks continue, exits in the meantime count and are acked") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId stays = world.Submit("stays"), ends = world.Submit("ends");
  agent.Work();
  agent.Disconnect();
  agent.Exit(ends, 0, 3);
  agent.Connect();
  agent.Work();
  CHECK(world.task(stays).state == TaskState::kRunning);
  CHECK(world.task(ends).state == TaskState::kFailed);
  CHECK(world.task(ends).exit_code == 3);
  CHECK_FALSE(agent.Holds(ends, 0, 1));
  CHECK(agent.Runs(stays));
  CHECK(agent.executions.size() == 2);
}

TEST_CASE("reconnect: a lost Prepare is resent, and the task starts once") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  agent.mute = true;  // the stream breaks before the agent reads
  const JobId job = world.Submit("one");
  CHECK(agent.link->Of(Message::kPrepare).size() == 1);
  agent.mute = false;
  agent.Connect();
  CHECK(agent.link->Of(Message::kPrepare).size() == 1);
  agent.Work();
  CHECK(world.task(job).attempt == 1);
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(agent.executions[Agent::Key(job.value, 0, 1)] == 1);
}

TEST_CASE("reconnect: a Prepare that arrived is resent without a second start") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  world.committer.hold = true;
  agent.Work();  // started; the report never becomes durable
  world.committer.Drop();
  world.committer.hold = false;
  world.Restart();
  CHECK(world.task(job).state == TaskState::kBound);
  agent.Connect();  // Hello reports RUNNING
  agent.Work();
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(agent.executions[Agent::Key(job.value, 0, 1)] == 1);
}

TEST_CASE("reconnect: lost Start and Kill are resent") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId gang = world.Submit("gang", {.tasks = 2});
  agent.Work();
  const JobId other = world.Submit("other", {.tasks = 2});
  for (int i = 0; i < 2; ++i) {  // prepares, then stops reading
    agent.Work();
  }
  CHECK(world.job(other).status.state == JobState::kRunning);
  agent.mute = true;
  world.Cancel(gang);
  CHECK(agent.link->Of(Message::kKill).size() == 2);
  agent.mute = false;
  agent.Connect();
  CHECK(agent.link->Of(Message::kKill).size() == 2);
  agent.Work();
  CHECK(world.job(gang).status.state == JobState::kCancelled);
  CHECK(world.job(other).status.state == JobState::kRunning);
}

TEST_CASE("reconnect: a lost Start is resent") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId job = world.Submit("gang", {.tasks = 2, .cpu_millis = 8000});
  a.Work();
  b.Work();
  CHECK(b.link->Of(Message::kStart).size() <= 1);
  a.Connect();  // before the agent read its Start
  CHECK(a.link->Of(Message::kStart).size() == 1);
  a.Work();
  b.Work();
  CHECK(world.job(job).status.state == JobState::kRunning);
  for (Agent* agent : {&a, &b}) {
    for (const auto& [key, times] : agent->executions) CHECK(times == 1);
  }
}

TEST_CASE("reconnect: a task that the agent no longer has is gone, and a reboot is the reason") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one", {.max_retries = 0});
  agent.Work();
  agent.journal.clear();
  SECTION("same boot") {}
  SECTION("rebooted") { agent.boot_id = "boot-2"; }
  agent.Connect();
  agent.Work();
  // The node's fault: the job runs again without using a retry.
  CHECK(world.job(job).status.retries == 0);
  CHECK(world.task(job).attempt == 2);
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(agent.executions[Agent::Key(job.value, 0, 1)] == 1);
  CHECK(agent.executions[Agent::Key(job.value, 0, 2)] == 1);
}

TEST_CASE("reconnect: a superseded Hello ends no tasks") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  REQUIRE(agent.Runs(job));
  Agent before(&world, "n1");  // the same agent before it had any task
  before.Hello();
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(agent.link->closed);
  agent.Connect();
  agent.Work();
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(world.task(job).attempt == 1);
  CHECK(agent.Runs(job));
}

TEST_CASE("reconnect: a task missing from Hello is gone once its agent sends a message") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const JobId job = world.Submit("one");
  agent.Work();
  Agent empty(&world, "n1");
  empty.Hello();
  CHECK(world.task(job).state == TaskState::kRunning);
  CHECK(empty.link->Of(v1::ServerMessage::kPrepare).empty());
  empty.Heartbeat();
  empty.Work();
  CHECK(world.task(job).attempt == 2);
  CHECK(empty.executions.size() == 1);
}

TEST_CASE("reconnect: a bound task is not resent to an agent with another journal") {
  World world;
  Agent first(&world, "n1");
  first.mute = true;
  first.Connect();
  const JobId job = world.Submit("one", {.on_node_loss = NodeLossPolicy::kKeep});
  REQUIRE(world.task(job).state == TaskState::kBound);
  world.Advance(absl::Seconds(60));
  REQUIRE(world.node("n1").status.state == NodeState::kLost);
  REQUIRE(world.task(job).state == TaskState::kLost);  // KEEP waits
  Agent second(&world, "n1", "other");
  second.Connect();
  CHECK(world.task(job).attempt == 2);  // attempt 1 is abandoned, not repeated
  second.Work();
  CHECK(second.executions.count(Agent::Key(job.value, 0, 1)) == 0);
}

TEST_CASE("reconnect: the agent forgets tasks that the server does not know") {
  World world;
  Agent agent(&world, "n1");
  const Agent::Key ghost(55, 0, 1);
  agent.journal[ghost] = agent.ReportFor(JobId{55}, 0, 1, v1::TaskReport::RUNNING);
  agent.Connect();
  const v1::Welcome welcome = agent.link->Of(Message::kWelcome)[0].welcome();
  REQUIRE(welcome.forget_size() == 1);
  CHECK(welcome.forget(0).job_uid() == 55);
  CHECK(agent.link->Of(Message::kReportAck).size() == 1);
}

TEST_CASE("reconnect: a replaced attempt is forgotten, and the new one is kept") {
  World world;
  Agent a(&world, "n1");
  a.Connect();
  const JobId job = world.Submit("one", {.on_node_loss = NodeLossPolicy::kReplaceNow});
  a.Work();
  a.Disconnect();
  Agent b(&world, "n2");
  b.Connect();
  for (int i = 0; i < 20; ++i) {
    world.Advance(absl::Seconds(1));
    b.Heartbeat();
  }
  b.Work();
  CHECK(world.task(job).attempt == 2);
  a.Connect();
  REQUIRE(a.link->Of(Message::kWelcome)[0].welcome().forget_size() == 1);
  CHECK(a.link->Of(Message::kWelcome)[0].welcome().forget(0).attempt() == 1);
  CHECK(world.task(job).state == TaskState::kRunning);
}

TEST_CASE("sessions: a message for an earlier epoch is not delivered") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  agent.Connect();
  const NodeId node = world.node("n1").id;
  v1::ServerMessage kill;
  kill.mutable_kill();
  CHECK_FALSE(world.gateway->SendTo(node, 1, kill));
  CHECK(agent.link->Of(Message::kKill).empty());
  CHECK(world.gateway->SendTo(node, 2, kill));
  CHECK(world.gateway->counters().messages_dropped == 1);
}

TEST_CASE("sessions: a server that stops ends all sessions, including later ones") {
  World world;
  Agent before(&world, "n1");
  before.Connect();
  world.gateway->DisconnectAll(absl::UnavailableError("the server is stopping"));
  CHECK(before.link->closed);
  CHECK(absl::IsUnavailable(before.link->status));
  const auto late = std::make_shared<testing::FakeLink>();
  world.gateway->OnClosed(world.gateway->OnConnect(late));
  CHECK(late->closed);
  CHECK(absl::IsUnavailable(late->status));
}

TEST_CASE("restart: agents register again, running tasks are attached, ended tasks are finished") {
  World world;
  Agent a(&world, "n1"), b(&world, "n2");
  a.Connect();
  b.Connect();
  const JobId gang = world.Submit("gang", {.tasks = 2, .cpu_millis = 8000});
  a.Work();
  b.Work();
  a.Work();
  REQUIRE(world.job(gang).status.state == JobState::kRunning);
  world.Restart();
  CHECK(world.job(gang).status.state == JobState::kRunning);
  a.link->closed = b.link->closed = true;  // the streams to the old server
  const uint32_t at_a = world.node("n1").id == world.task(gang, 0).node ? 0 : 1;
  a.Exit(gang, at_a, 0);  // while no server was running
  a.Connect();
  b.Connect();
  CHECK(a.epoch == 2);
  CHECK(world.task(gang, at_a).state == TaskState::kSucceeded);
  CHECK(world.task(gang, 1 - at_a).state == TaskState::kRunning);
  b.Exit(gang, 1 - at_a, 0);
  CHECK(world.job(gang).status.state == JobState::kSucceeded);
  for (Agent* agent : {&a, &b}) {
    for (const auto& [key, times] : agent->executions) CHECK(times == 1);
  }
}

}  // namespace
}  // namespace berth
