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
  CHECK_THAT(cli.out(), !Contains("NUMA node 2"));  // no device is there
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

TEST_CASE("what runs on a node, with its devices") {
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

}  // namespace
}  // namespace berth
