// What scenario files cannot show: how they are read and refused, how differences are reported, and
// how expectations are rewritten.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "offline/sim/names.h"
#include "offline/sim/output.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"
#include "offline/sim/update.h"

namespace berth {
namespace {

const ScenarioDocument& Only(const absl::StatusOr<std::vector<ScenarioDocument>>& documents) {
  INFO(documents.status().message());
  REQUIRE(documents.ok());
  REQUIRE(documents->size() == 1);
  return documents->front();
}

ScenarioRun Ran(const std::string& text) {
  const auto documents = ReadScenarios(text, "f");
  auto run = RunScenario(Only(documents).scenario, {});
  INFO(run.status().message());
  REQUIRE(run.ok());
  return *std::move(run);
}

// The message that refuses the scenario, from the reader or from the run.
std::string Refusal(const std::string& text) {
  const auto documents = ReadScenarios(text, "f");
  if (!documents.ok()) return std::string(documents.status().message());
  const auto run = RunScenario(Only(documents).scenario, {});
  REQUIRE_FALSE(run.ok());
  return std::string(Located(Only(documents), run.status()).message());
}

TEST_CASE("an unknown key is refused with its place") {
  CHECK(absl::StartsWith(Refusal("nodes:\n- {name: n0, gpuz: 2}\n"), "f:2:14: unknown key"));
  CHECK(absl::StartsWith(Refusal("steps: [cycle, sycle]\n"), "f:1:16: unknown key"));
}

TEST_CASE("an unsupported value is refused by name") {
  CHECK(
      absl::StrContains(Refusal("jobs: [{name: j, resources: {npu: {count: 1, mig: 1g.10gb}}}]\n"),
                        "mig is a profile of a GPU"));
}

TEST_CASE("an invalid value is refused with its place") {
  CHECK(absl::StartsWith(Refusal("jobs:\n- {name: j, queue: nowhere}\n"), "f:2:20: "));
  const std::string twice =
      "nodes: [{name: n0, gpus: 1}]\n"
      "jobs:\n- {name: a, gpus: 1, on: n0}\n- {name: b, gpus: 1, on: n0}\n";
  CHECK(absl::StrContains(Refusal(twice), "too few left"));
  CHECK(absl::StrContains(Refusal("jobs: [{name: a, on: n9}]\n"), "no node \"n9\""));
  CHECK(absl::StrContains(Refusal("nodes: [{name: n0}]\njobs: [{name: a, on: n0*2}]\n"),
                          "2 nodes for 1 tasks"));
  CHECK(absl::StrContains(Refusal("queues: [{name: a, parent: b}, {name: b, parent: a}]\n"),
                          "a cycle"));
  CHECK(absl::StrContains(Refusal("config: {actions: [dance]}\n"), "unknown action"));
}

TEST_CASE("a scenario without a name is named after its place") {
  const auto documents = ReadScenarios("steps: [cycle]\n---\nname: second\n", "f");
  REQUIRE(documents.ok());
  REQUIRE(documents->size() == 2);
  CHECK(documents->at(0).scenario.name() == "f#1");
  CHECK(documents->at(1).scenario.name() == "second");
}

TEST_CASE("JSON is read as well") {
  const ScenarioRun run = Ran(
      R"({"nodes": [{"name": "n0", "gpus": 1}], "jobs": [{"name": "j", "gpus": 1}], "steps": ["settle"]})");
  REQUIRE(run.result.jobs_size() == 1);
  CHECK(run.result.jobs(0).state() == v1::JOB_RUNNING);
}

TEST_CASE("differences show both sides") {
  const ScenarioRun run =
      Ran("nodes: [{name: n0, gpus: 1}]\njobs: [{name: j, gpus: 1}]\nsteps: [settle]\n"
          "expect: {decisions: [bind j n1], jobs: {j: Pending, k: Running}, nodes: {n7: Ready}}\n");
  std::string all;
  for (const std::string& line : run.result.mismatches()) all += line + "\n";
  CHECK(absl::StrContains(all, "jobs.j.state: expected Pending, got Running"));
  CHECK(absl::StrContains(all, "jobs.k.state: expected Running"));
  CHECK(absl::StrContains(all, "nodes.n7: there is none"));
  CHECK(absl::StrContains(all, "bind j n0"));
}

// The order of maps of messages varies between runs. Four runs would hardly agree by chance.
TEST_CASE("differences are ordered by name, in every run") {
  std::string text = "steps: [cycle]\nexpect:\n  jobs: {";
  for (int i = 12; i > 0; --i) absl::StrAppend(&text, "j", i, ": Running, ");
  text += "j0: {tasks: {\"main-[0-9]\": Running}, count: {Running: 3, Pending: 2, Lost: 1}}}\n";
  const auto documents = ReadScenarios(text, "f");
  const auto run = CheckScenario(Only(documents).scenario, {});
  INFO(run.status().message());
  REQUIRE(run.ok());
  const auto& lines = run->result.mismatches();
  REQUIRE(lines.size() == 12 + 10 + 3);
  CHECK(lines[0] == "expect: jobs.j0.tasks.main-0: there is none");
  CHECK(lines[9] == "expect: jobs.j0.tasks.main-9: there is none");
  CHECK(absl::StrContains(lines[10], "jobs.j0.count.Lost"));
  CHECK(absl::StrContains(lines[13], "jobs.j1.state"));
  CHECK(absl::StrContains(lines[14], "jobs.j2.state"));
  CHECK(absl::StrContains(lines[24], "jobs.j12.state"));
}

// As in berthd when its configuration is reloaded. Otherwise the job would wait for a change of the
// rack's nodes.
TEST_CASE("a new configuration makes the engine re-evaluate blocked jobs") {
  const ScenarioRun run =
      Ran("config: {actions: [allocate], topology: {degraded: EXCLUDE}}\n"
          "nodes: [{name: \"n[0-1]\", gpus: 1}]\n"
          "hyperNodes: [{name: rack, tierName: rack, nodes: \"n[0-1]\", health: Degraded}]\n"
          "jobs: [{name: j, replicas: 2, gpus: 1, topology: {mode: Hard, highestTierName: rack}}]\n"
          "steps:\n- settle\n- expect: {jobs: {j: Pending}}\n"
          "- set: {config: {actions: [allocate], topology: {degraded: AVOID}}}\n- cycle\n"
          "expect: {decisions: [\"bind j n[0-1]\"]}\n");
  CHECK(run.result.mismatches().empty());
}

TEST_CASE("a step that is not refused is a difference") {
  const ScenarioRun run = Ran("steps:\n- refused: {submit: {name: j, gpus: 1}, because: x}\n");
  REQUIRE(run.result.mismatches_size() == 1);
  CHECK(absl::StrContains(run.result.mismatches(0), "expected a refusal"));
}

TEST_CASE("an update rewrites only expectations, and then they hold") {
  const std::string text =
      "# A comment.\nname: u\nnodes: [{name: n0, gpus: 1}]\njobs: [{name: j, gpus: 1}]\n"
      "steps:\n- cycle\n- expect:\n    jobs: {j: Running}\n- settle\n\n# Another.\n"
      "expect:\n  decisions: [bind j n7]\n  jobs: {j: {state: Pending}}\n";
  const auto documents = ReadScenarios(text, "f");
  const auto run = RunScenario(Only(documents).scenario, {});
  REQUIRE(run.ok());
  Updates updates;
  updates.Add(Only(documents), *run);
  const auto updated = updates.Apply(text);
  REQUIRE(updated.ok());
  CHECK(absl::StartsWith(*updated, "# A comment.\nname: u\n"));
  CHECK(absl::StrContains(*updated, "\n- settle\n\n# Another.\n"));
  CHECK(Ran(*updated).result.mismatches().empty());
}

TEST_CASE("results are printed in every format") {
  const ScenarioRun run =
      Ran("nodes: [{name: n0, gpus: 1}]\njobs: [{name: j, gpus: 1}]\nsteps: [cycle]\n");
  CHECK(absl::StrContains(Printed(run.result, "table"), "bind j n0"));
  CHECK(absl::StrContains(Printed(run.result, "json"), "\"kind\": \"BIND\""));
  CHECK(absl::StrContains(Printed(run.result, "yaml"), "kind: Bind"));
}

TEST_CASE("every task is listed after every cycle, unless disabled") {
  const auto documents = ReadScenarios("jobs: [{name: j, replicas: 3}]\nsteps: [cycle]\n", "f");
  RunOptions options;
  CHECK(RunScenario(Only(documents).scenario, options)->result.cycles(0).tasks_size() == 3);
  options.tasks_each_cycle = false;
  CHECK(RunScenario(Only(documents).scenario, options)->result.cycles(0).tasks_size() == 0);
}

TEST_CASE("names are in natural order") {
  CHECK(NaturalLess("n2", "n10"));
  CHECK_FALSE(NaturalLess("n10", "n2"));
  CHECK(NaturalLess("n01", "n1"));
  CHECK(NaturalLess("a9", "b1"));
  CHECK_FALSE(NaturalLess("a", "a"));
}

TEST_CASE("places are expanded and compressed again") {
  const auto places = ExpandPlaces({"n[0-1]*2", "n5"});
  REQUIRE(places.ok());
  CHECK(*places == std::vector<std::string>{"n0", "n0", "n1", "n1", "n5"});
  CHECK(CompressPlaces(*places) == std::vector<std::string>{"n0*2", "n1*2", "n5"});
  CHECK_FALSE(ExpandPlaces({"n0*0"}).ok());
  CHECK_FALSE(ExpandPlaces({"n[0"}).ok());
}

}  // namespace
}  // namespace berth
