// berth node describe: the devices of a node, and how they are connected.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::Node TwoGpusAndNic() {
  v1::Node node;
  node.set_name("n1");
  const auto add = [&](const char* kind, const char* uuid, int numa) {
    v1::Device& device = *node.mutable_inventory()->add_devices();
    device.set_kind(kind);
    device.set_uuid(uuid);
    device.set_numa_node(numa);
  };
  add("gpu", "GPU-a", 0);
  add("gpu", "GPU-b", 1);
  add("nic", "mlx5_0", 1);
  node.mutable_status()->add_devices_in_use("GPU-b");
  return node;
}

TEST_CASE("node describe shows how devices are connected, and which are free") {
  Cli cli;
  v1::Node node = TwoGpusAndNic();
  v1::DeviceTopology& topology = *node.mutable_inventory()->mutable_topology();
  topology.add_links()->set_link(v1::LINK_CLASS_NVLINK);
  topology.mutable_links(0)->set_count(18);
  topology.add_links()->set_link(v1::LINK_CLASS_PIX);
  topology.set_between(std::string("\1\0\2", 3));
  for (int id : {0, 1, 2}) {
    v1::NumaNode& numa = *topology.add_numa_nodes();
    numa.set_id(id);
    numa.set_cpus(id == 0 ? "0-7" : "8-15");
  }
  cli.script.Answer("GetNode", node);
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(cli.Run({"node", "describe", "n1"}) == 0);
  INFO(cli.out());
  CHECK_THAT(cli.out(), Contains("NUMA node 0") && Contains("CPUs 8-15") && Contains("in use"));
  CHECK_THAT(cli.out(), !Contains("NUMA node 2"));  // it has no device
  CHECK_THAT(cli.out(), Contains("Links between devices:\n"
                                 "        gpu0  gpu1  nic0  STATE\n"
                                 "  gpu0  X     NV18  ?     free\n"
                                 "  gpu1  NV18  X     PIX   in use\n"));
  (*node.mutable_status()->mutable_shares_in_use())["GPU-b"] = 0.75;
  Cli shared;
  shared.script.Answer("GetNode", node);
  shared.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(shared.Run({"node", "describe", "n1"}) == 0);
  CHECK_THAT(shared.out(), Contains("0.75 in use"));
}

TEST_CASE("node describe without links is a list of devices") {
  Cli cli;
  cli.script.Answer("GetNode", TwoGpusAndNic());
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(cli.Run({"node", "describe", "n1"}) == 0);
  CHECK_THAT(cli.out(), Contains("gpu1    GPU-b") && !Contains("Links between"));
}

TEST_CASE("node drain takes a mode, a deadline and devices") {
  Cli cli;
  v1::Node node = TwoGpusAndNic();
  cli.script.Answer("DrainNode", node);
  CHECK(cli.Run({"node", "drain", "n1", "--mode", "checkpoint", "--deadline", "30m", "--device",
                 "GPU-a", "--device", "GPU-b"}) == 0);
  CHECK(cli.Run({"node", "drain", "n1", "--mode", "wait"}) == 0);
  CHECK(cli.Run({"node", "drain", "n1", "--mode", "later"}) == 2);
  CHECK(cli.Run({"node", "drain", "n1", "--deadline", "soon"}) == 2);
  const auto sent = cli.script.Requests<v1::DrainNodeRequest>("DrainNode");
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].mode() == v1::NodeDrain::CHECKPOINT);
  CHECK(sent[0].deadline().seconds() == 1800);
  REQUIRE(sent[0].devices_size() == 2);
  CHECK(sent[0].devices(1) == "GPU-b");
  CHECK(sent[1].mode() == v1::NodeDrain::WAIT);
  CHECK_FALSE(sent[1].has_deadline());
}

TEST_CASE("node list and describe show drains, also of devices") {
  Cli cli;
  v1::Node node = TwoGpusAndNic();
  node.mutable_status()->set_state(v1::NODE_READY);
  v1::NodeDrain& drain = *node.mutable_status()->mutable_drain();
  drain.set_mode(v1::NodeDrain::CHECKPOINT);
  drain.mutable_begin_time()->set_seconds(1'795'003'600);
  drain.mutable_deadline()->set_seconds(1'795'003'600 + 600);
  for (const char* uuid : {"GPU-a", "GPU-b"}) drain.add_devices(uuid);
  cli.script.Answer("GetNode", node);
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(cli.Run({"node", "describe", "n1"}) == 0);
  INFO(cli.out());
  CHECK_THAT(cli.out(), Contains("Checkpoint since 20") && Contains(", until 20") &&
                            Contains("; only GPU-a, GPU-b") && Contains("Ready,DrainingDevices"));
  CHECK_THAT(cli.out(), Contains("drained") && Contains("in use, drained"));
}

v1::ListTasksResponse TwoTasks() {
  v1::ListTasksResponse tasks;
  for (const char* job : {"bert", "llama"}) {
    v1::Task& task = *tasks.add_tasks();
    task.set_job(job);
    task.set_group("worker");
    task.set_state(v1::TASK_RUNNING);
    task.set_node("n1");
    task.add_devices(job == std::string("bert") ? "GPU-a" : "GPU-b");
    task.mutable_start_time()->set_seconds(1'795'003'600 - 60);
  }
  return tasks;
}

TEST_CASE("node describe lists the tasks on a node, with their devices") {
  Cli cli;
  cli.script.Answer("ListTasks", TwoTasks());
  CHECK(cli.Run({"node", "tasks", "node/n1"}) == 0);
  CHECK(cli.out() ==
        "JOB    TASK      STATE    AGE  DEVICES\n"
        "bert   worker-0  Running   1m  GPU-a\n"
        "llama  worker-0  Running   1m  GPU-b\n");
  CHECK(cli.script.Requests<v1::ListTasksRequest>("ListTasks")[0].node() == "n1");
  CHECK(cli.Run({"node", "tasks", "n1", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/bert/worker-0\njob/llama/worker-0\n");
  CHECK(cli.Run({"node", "tasks", "n1", "-o", "json"}) == 0);
  CHECK_THAT(cli.out(), Contains("\"index\": 0") && Contains("\"rank\": 0"));
  cli.script.Answer("GetNode", TwoGpusAndNic());
  CHECK(cli.Run({"node", "describe", "n1"}) == 0);
  CHECK_THAT(cli.out(), Contains("Tasks:\n  JOB    TASK") && Contains("llama  worker-0"));
  CHECK(cli.Run({"node", "describe", "n1", "-o", "json"}) == 0);
  CHECK_THAT(cli.out(), Contains("\"inventory\": {") && Contains("\"job\": \"llama\""));
}

std::vector<std::string> Drained(Cli& cli) {
  std::vector<std::string> names;
  for (const auto& request : cli.script.Requests<v1::DrainNodeRequest>("DrainNode"))
    names.push_back(request.name());
  return names;
}

TEST_CASE("node verbs accept names, patterns and labels") {
  using Names = std::vector<std::string>;
  Cli cli;
  v1::ListNodesResponse nodes;
  for (const char* name : {"n1", "n2", "x9"}) nodes.add_nodes()->set_name(name);
  cli.script.Answer("ListNodes", nodes);
  cli.script.Answer("DrainNode", v1::Node());
  CHECK(cli.Run({"node", "drain", "n7"}) == 0);
  CHECK(cli.script.Requests<v1::ListNodesRequest>("ListNodes").empty());
  CHECK(cli.Run({"node", "drain", "n7", "node/n[0-3]*", "--reason", "fans"}) == 0);
  CHECK(Drained(cli) == Names{"n7", "n7", "n1", "n2"});
  CHECK(cli.err() == "berth: drain: 3 nodes\n");
  CHECK(cli.script.Requests<v1::DrainNodeRequest>("DrainNode").back().reason() == "fans");
  CHECK(cli.Run({"node", "drain", "-l", "rack=r1", "x*"}) == 0);
  CHECK(Drained(cli).back() == "x9");
  const auto list = cli.script.Requests<v1::ListNodesRequest>("ListNodes").back();
  CHECK(list.filter().labels().at("rack") == "r1");
  CHECK(Drained(cli).size() == 5);
  CHECK(cli.Run({"node", "drain", "y*"}) == 3);
  CHECK(cli.err() == "berth: no node matches \"y*\"\n");
  CHECK(cli.Run({"node", "drain"}) == 2);
  cli.script.Answer("CordonNode", v1::Node());
  CHECK(cli.Run({"node", "cordon", "n*"}) == 0);
  CHECK(cli.script.Requests<v1::CordonNodeRequest>("CordonNode").size() == 2);
  cli.script.Answer("UncordonNode", v1::Node());
  CHECK(cli.Run({"node", "uncordon", "--label", "rack=r1"}) == 0);
  CHECK(cli.script.Requests<v1::UncordonNodeRequest>("UncordonNode").size() == 3);
}

TEST_CASE("more than one matched node needs confirmation, and all nodes need --yes") {
  Cli cli;
  v1::ListNodesResponse nodes;
  for (const char* name : {"n1", "n2"}) nodes.add_nodes()->set_name(name);
  cli.script.Answer("ListNodes", nodes);
  cli.script.Answer("DrainNode", v1::Node());
  CHECK(cli.Run({"node", "drain", "*"}) == 2);
  CHECK(cli.err() == "berth: drain '*' of 2 nodes needs --yes in a script\n");
  cli.in_terminal = true;
  cli.answer = "n\n";
  CHECK(cli.Run({"node", "drain", "n*"}) == 2);
  CHECK(cli.err() == "drain 2 nodes (n1, n2)? [y/N] berth: nothing was done\n");
  CHECK(Drained(cli).empty());
  CHECK(cli.Run({"node", "drain", "n*", "--yes"}) == 0);
  cli.answer = "yes\n";
  CHECK(cli.Run({"node", "drain", "-l", "a=b"}) == 0);
  CHECK(Drained(cli).size() == 4);
}

}  // namespace
}  // namespace berth
