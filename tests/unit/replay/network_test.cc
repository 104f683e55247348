// The network model, compared with figures that were calculated by hand.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "offline/replay/csv_workload.h"
#include "offline/replay/link_shares.h"
#include "offline/replay/network_file.h"
#include "offline/replay/network_map.h"
#include "offline/replay/network_model.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/sim_cluster.h"
#include "support/yaml_proto.h"

namespace berth::replay {
namespace {

TEST_CASE("ring all-reduce: every worker sends everything but its own part twice") {
  CHECK(RingBytes(100e6, 1) == 0);
  CHECK(RingBytes(100e6, 2) == 100e6);
  CHECK(RingBytes(100e6, 4) == 150e6);
  CHECK(RingBytes(100e6, 8) == 175e6);
}

TEST_CASE("an iteration computes, and waits for communication that does not overlap") {
  // 150 MB at 10 Gb/s, which is 1.25 GB/s, take 0.12 s.
  Training training{
      .compute_s = 0.2, .bytes = 100e6, .overlap = 0, .reference_gbps = kUnboundedGbps};
  CHECK(IterationSeconds(training, 4, 10) == Approx(0.32));
  training.overlap = 0.5;
  CHECK(IterationSeconds(training, 4, 10) == Approx(0.22));
  training.overlap = 1;
  CHECK(IterationSeconds(training, 4, 10) == Approx(0.2));
  CHECK(IterationSeconds(training, 1, 10) == Approx(0.2));
  CHECK(IterationSeconds(training, 4, kUnboundedGbps) == Approx(0.2));
}

TEST_CASE("a rate is relative to the bandwidth that run times assume") {
  Training training{
      .compute_s = 0.2, .bytes = 100e6, .overlap = 0, .reference_gbps = kUnboundedGbps};
  CHECK(RateOf(training, 4, 10) == Approx(0.2 / 0.32));
  training.reference_gbps = 10;
  CHECK(RateOf(training, 4, 10) == 1);
  CHECK(RateOf(training, 4, 5) == Approx(0.32 / 0.44));
  CHECK(RateOf(training, 4, 20) == Approx(0.32 / 0.26));
}

TEST_CASE("a link is divided among the jobs that cross it, and each part among its crossings") {
  LinkShares links;
  const LinkIndex a = links.AddLink(10), b = links.AddLink(40);
  CHECK(links.Join(JobId{1}, {{a, 1}, {b, 1}}).empty());
  CHECK(links.Gbps(JobId{1}) == 10);
  CHECK(links.Join(JobId{2}, {{a, 2}}) == std::set<JobId>{JobId{1}});
  CHECK(links.Gbps(JobId{1}) == 5);
  CHECK(links.Gbps(JobId{2}) == 2.5);
  CHECK(links.Join(JobId{3}, {{b, 1}}) == std::set<JobId>{JobId{1}});
  CHECK(links.Gbps(JobId{1}) == 5);
  CHECK(links.Gbps(JobId{3}) == 20);
  CHECK(links.Join(JobId{4}, {}).empty());
  CHECK(links.Gbps(JobId{4}) == kUnboundedGbps);
  CHECK(links.Leave(JobId{2}) == std::set<JobId>{JobId{1}});
  CHECK(links.Gbps(JobId{1}) == 10);
  CHECK(links.Leave(JobId{1}) == std::set<JobId>{JobId{3}});
  CHECK(links.Gbps(JobId{3}) == 40);
}

// A cluster from a scenario, and the ring of a job in it.
struct Placed {
  explicit Placed(const std::string& text)
      : cluster(*Policies::Create(PolicyConfig{}), ScenarioStart(), SimOptions{}) {
    const auto documents = ReadScenarios(text, "cluster.yaml");
    INFO(documents.status().ToString());
    REQUIRE(documents.ok());
    const absl::Status status = LoadScenario(documents->front().scenario, &cluster);
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  Ring RingOf(const std::string& job) {
    const Job* found = cluster.state().FindJob(job);
    REQUIRE(found != nullptr);
    return map.RingOf(cluster.state(), *found, &links);
  }
  // "node 1, node 1, rack 2": the crossed tiers, and how often each is crossed.
  std::string Text(const Ring& ring) const {
    std::string text;
    for (const Crossing& crossing : ring.crossings) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", map.TierOf(crossing.link), " ",
                      crossing.times);
    }
    return text;
  }
  // The bandwidth if the ring is alone on its links.
  double GbpsOf(const Ring& ring) {
    links.Join(JobId{99}, ring.crossings);
    const double gbps = links.Gbps(JobId{99});
    links.Leave(JobId{99});
    return gbps;
  }

  SimCluster cluster;
  LinkShares links;
  NetworkMap map{NetworkDefaults{.node_gbps = 10, .uplink_gbps = 200, .device_gbps = 96}};
};

TEST_CASE("a ring crosses the links between the lowest HyperNodes that hold its nodes") {
  Placed placed(
      "nodes: [{name: 'n[0-4]', gpus: 2}]\n"
      "hyperNodes:\n"
      "- {name: r0, tierName: rack, nodes: ['n[0-1]'], bandwidthGbps: 20}\n"
      "- {name: r1, tierName: rack, nodes: ['n2', 'n3'], bandwidthGbps: 20}\n"
      "- {name: s, tier: 2, hyperNodes: ['r[0-1]'], bandwidthGbps: 5}\n"
      "jobs:\n"
      "- {name: one, gpus: 2, on: [n4]}\n"
      "- {name: rack, replicas: 2, gpus: 1, on: [n0, n1]}\n"
      "- {name: spine, replicas: 3, gpus: 1, on: [n0, n1, n2]}\n"
      "- {name: out, replicas: 2, gpus: 1, on: [n3, n2]}\n");
  const Ring one = placed.RingOf("one");
  CHECK(one.workers == 2);
  CHECK(one.device_gbps == 96);
  CHECK(one.crossings.empty());
  const Ring rack = placed.RingOf("rack");
  CHECK(rack.workers == 2);
  CHECK(rack.device_gbps == kUnboundedGbps);
  CHECK(placed.Text(rack) == "node 1, node 1");
  CHECK(placed.GbpsOf(rack) == 20);
  // n0-n1 and n1-n2, and back from n2 to n0: every node and rack is left once.
  const Ring spine = placed.RingOf("spine");
  CHECK(placed.Text(spine) == "node 1, node 1, rack 1, node 1, rack 1");
  CHECK(placed.GbpsOf(spine) == 5);
  CHECK(placed.GbpsOf(placed.RingOf("out")) == 20);
}

TEST_CASE("nodes without HyperNodes have the default link, HyperNodes without a parent their own") {
  Placed placed(
      "nodes: [{name: 'n[0-2]', gpus: 1}]\n"
      "hyperNodes: [{name: r, nodes: [n0, n1], bandwidthGbps: 400}]\n"
      "jobs:\n"
      "- {name: j, replicas: 2, gpus: 1, on: [n0, n1]}\n"
      "- {name: k, replicas: 1, gpus: 1, on: [n2]}\n");
  CHECK(placed.GbpsOf(placed.RingOf("j")) == 400);
  Placed across(
      "nodes: [{name: 'n[0-2]', gpus: 1}]\n"
      "hyperNodes: [{name: r, nodes: [n0, n1], bandwidthGbps: 400}]\n"
      "jobs: [{name: j, replicas: 2, gpus: 1, on: [n0, n2]}]\n");
  const Ring ring = across.RingOf("j");
  // n2 is in no HyperNode and has the first rank.
  CHECK(across.Text(ring) == "node 1, node 1, tier 1 1");
  CHECK(across.GbpsOf(ring) == 10);
}

TEST_CASE("nodes of one NVLink domain use it if its bandwidth is known") {
  const std::string nodes =
      "nodes: [{name: 'n[0-1]', gpus: 1}]\n"
      "jobs: [{name: j, replicas: 2, gpus: 1, on: [n0, n1]}]\n";
  Placed known(nodes +
               "hyperNodes: [{name: d, kind: nvlink, nodes: ['n[0-1]'], bandwidthGbps: 7200}]\n");
  CHECK(known.Text(known.RingOf("j")) == "nvlink node 1, nvlink node 1");
  CHECK(known.GbpsOf(known.RingOf("j")) == 7200);
  Placed unknown(nodes + "hyperNodes: [{name: d, kind: nvlink, nodes: ['n[0-1]']}]\n");
  CHECK(unknown.Text(unknown.RingOf("j")) == "node 1, node 1");
  CHECK(unknown.GbpsOf(unknown.RingOf("j")) == 10);
}

TEST_CASE("inside a node the slowest link of the best ring counts") {
  // 0-1 and 2-3 are connected by two NVLinks each, 25 GB/s a link; the others across sockets, 6
  // GB/s.
  Placed placed(
      "nodes:\n"
      "- name: n\n"
      "  devices: [{kind: gpu, count: 4}]\n"
      "  deviceLinks: [X NV2 SYS SYS, NV2 X SYS SYS, SYS SYS X NV2, SYS SYS NV2 X]\n"
      "jobs:\n"
      "- {name: a, gpus: 2, tasks: [{name: main-0, node: n, devices: [gpu0, gpu1]}]}\n"
      "- {name: b, gpus: 2, tasks: [{name: main-0, node: n, devices: [gpu2, gpu3]}]}\n");
  CHECK(placed.RingOf("a").device_gbps == 400);
  Placed across(
      "nodes:\n"
      "- name: n\n"
      "  devices: [{kind: gpu, count: 4}]\n"
      "  deviceLinks: [X NV2 SYS SYS, NV2 X SYS SYS, SYS SYS X NV2, SYS SYS NV2 X]\n"
      "jobs: [{name: a, replicas: 4, gpus: 1, on: ['n*4']}]\n");
  CHECK(across.RingOf("a").workers == 4);
  CHECK(across.RingOf("a").device_gbps == 48);
}

sim::v1::NetworkModel Model(const std::string& text) {
  sim::v1::NetworkModel model;
  const absl::Status status = ReadYaml(text, "network.yaml", &model);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return model;
}

TEST_CASE("errors in a network are reported with their place") {
  const auto wrong = [](const std::string& text) {
    return std::string(CheckNetwork(Model(text)).message());
  };
  const std::string good = "{name: a, computeSeconds: 1, bytes: 1M}";
  CHECK(wrong("classes: [" + good + "]").empty());
  CHECK(wrong("nodeGbps: 10") == "classes: must not be empty");
  CHECK(wrong("nodeGbps: 0\nclasses: [" + good + "]") == "node_gbps: must be above 0");
  CHECK(wrong("requestedFactor: 0.5\nclasses: [" + good + "]") ==
        "requested_factor: is not 1 to 1000");
  CHECK(wrong("classes: [" + good + ", " + good + "]") == "classes[1].name: is repeated");
  CHECK(wrong("classes: [{name: a, bytes: 1M}]") == "classes[0].compute_seconds: must be above 0");
  CHECK(wrong("classes: [{name: a, computeSeconds: 1}]") == "classes[0].bytes: must be above 0");
  CHECK(wrong("classes: [{name: a, computeSeconds: 1, bytes: 1, overlap: 1.5}]") ==
        "classes[0].overlap: is not 0 to 1");
  CHECK(wrong("classes: [{name: a, computeSeconds: 1, bytes: 1, maxWorkers: 1}]") ==
        "classes[0].max_workers: must be at least min_workers");
}

TEST_CASE("a job has the class that it names, otherwise the first class that fits") {
  const sim::v1::NetworkModel model = Model(
      "classes:\n"
      "- {name: big, minWorkers: 8, computeSeconds: 1, bytes: 1000}\n"
      "- {name: q, queues: [q], users: [u, v], computeSeconds: 1, bytes: 2000}\n"
      "- {name: single, minWorkers: 1, maxWorkers: 1, queues: [one], computeSeconds: 1, bytes: "
      "3000}\n");
  const auto read = ReadCsv(
      "submit,run,n,gpus,queue,user,class\n"
      "0,1,8,1,q,u,\n"    // big
      "0,1,2,4,,,\n"      // big: eight devices
      "0,1,2,1,q,v,\n"    // q
      "0,1,2,1,q,w,\n"    // none: another user
      "0,1,1,1,q,u,\n"    // none: one worker
      "0,1,1,1,one,,\n"   // single
      "0,1,8,1,q,u,q\n",  // q, named explicitly
      "jobs.csv",
      {{"submit", "submit"},
       {"run", "run"},
       {"tasks", "n"},
       {"gpus", "gpus"},
       {"queue", "queue"},
       {"user", "user"},
       {"class", "class"}});
  REQUIRE(read.ok());
  const auto network = NetworkFor(model, *read);
  REQUIRE(network.ok());
  CHECK(network->class_of == std::vector<int>{0, 0, 1, -1, -1, 2, 1});
  CHECK(network->TrainingOf(3) == nullptr);
  CHECK(network->TrainingOf(2)->bytes == 2000);

  Workload odd = *read;
  odd.jobs[1].training = "bid";
  CHECK(NetworkFor(model, odd).status().message() ==
        "job-2: the network has no class \"bid\"; did you mean \"big\"?");
}

}  // namespace
}  // namespace berth::replay
