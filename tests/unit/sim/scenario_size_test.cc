// A scenario as a converter may write it: every object of a whole cluster listed separately. The
// test checks that it is read and runs correctly, not how long that takes.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

constexpr int kNodes = 1'000, kGpus = 8;

// The cluster is full of one-GPU jobs of a queue that borrows. A gang of a hundred whole nodes is
// entitled to a tenth of the cluster.
std::string FullCluster() {
  std::string text =
      "name: a thousand nodes\n"
      "config: {actions: [allocate, backfill, reclaim]}\n"
      "queues:\n"
      "- {name: borrower, deserved: {gpu: 4000}}\n"
      "- {name: owner, deserved: {gpu: 2000}}\n"
      "nodes:\n";
  for (int n = 0; n < kNodes; ++n) {
    absl::StrAppend(&text, "- {name: n", n, ", cpu: 128, memory: 1Ti, labels: {rack: r", n / 16,
                    "}, devices: [{kind: gpu, count: ", kGpus, ", model: H100, memory: 80Gi}]}\n");
  }
  absl::StrAppend(&text, "jobs:\n");
  for (int j = 0; j < kNodes * kGpus; ++j) {
    absl::StrAppend(&text, "- {name: r", j, ", queue: borrower, user: u", j % 40,
                    ", resources: {cpu: 8, memory: 64Gi, gpu: 1}, preemptible: true, on: n",
                    j / kGpus, ", age: ", 10 + (kNodes * kGpus - j) / 100, "m}\n");
  }
  absl::StrAppend(&text,
                  "- {name: gang, queue: owner, replicas: 100, resources: {cpu: 96, gpu: 8}}\n"
                  "steps:\n"
                  "- cycle\n"
                  "- expect: {jobs: {gang: {count: {Nominated: 100}}}}\n"
                  "- settle\n"
                  "expect:\n"
                  "  jobs: {gang: {state: Running, starts: 1, count: {Running: 100}}}\n"
                  "  queues: {owner: {allocated: {gpu: 800}}, borrower: {allocated: {gpu: 7200}}}\n"
                  "  nodes: {n0: {free: {gpu: 0}}}\n");
  return text;
}

TEST_CASE("a scenario of 1,000 nodes and 8,100 tasks is read and runs") {
  const TempDirectory directory;
  const std::string path = directory / "large.yaml";
  std::ofstream(path) << FullCluster();
  const auto documents = ReadScenarioFile(path);
  INFO(documents.status().message());
  REQUIRE(documents.ok());
  REQUIRE(documents->size() == 1);
  RunOptions options;
  options.tasks_each_cycle = false;
  const auto run = RunScenario(documents->front().scenario, options);
  INFO(run.status().message());
  REQUIRE(run.ok());
  std::string mismatches;
  for (const std::string& line : run->result.mismatches()) mismatches += line + "\n";
  CHECK(mismatches.empty());
  CHECK(run->result.nodes_size() == kNodes);
  CHECK(run->result.tasks_size() == kNodes * kGpus + 100);
}

}  // namespace
}  // namespace berth
