// Runs the example of docs/examples/network through the command, as docs/developers/benchmarks.md
// shows it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "offline/replay/replay_command.h"
#include "offline/replay/replay_result.h"

namespace berth::replay {
namespace {

ReplayArguments Example() {
  const std::string folder = std::string(BERTH_EXAMPLES) + "/network/";
  ReplayArguments arguments;
  arguments.trace = folder + "testbed.csv";
  arguments.columns =
      "name=name,submit=submit,run=run,requested=requested,tasks=workers,gpus=gpus,class=class";
  arguments.cluster = folder + "testbed.yaml";
  arguments.network = folder + "network.yaml";
  for (const char* name :
       {"spread", "binpack", "gang-binpack", "colocate", "default", "topology-8h"}) {
    arguments.configs.push_back(folder + "strategies/" + name + ".yaml");
  }
  return arguments;
}

TEST_CASE(
    "the testbed: near workers end sooner than under all other strategies, without longer waits") {
  const auto result = RunReplay(Example());
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  std::map<std::string, sim::v1::PolicyResult> by_name;
  double least_wait = 1e18, least_completion = 1e18;
  for (const sim::v1::PolicyResult& policy : result->policies()) {
    CHECK(policy.finished() == 10);
    CHECK(policy.network().stopped() == 0);
    by_name[policy.name()] = policy;
    if (policy.name() == "default" || policy.name() == "topology-8h") continue;
    least_wait = std::min(least_wait, policy.wait().mean());
    least_completion = std::min(least_completion, policy.completion().mean());
  }
  for (const char* name : {"default", "topology-8h"}) {
    CHECK(by_name.at(name).completion().mean() <= least_completion * 1.000001);
    CHECK(by_name.at(name).wait().mean() <= 1.1 * least_wait);
  }
  // All workers of a job are on one server: no traffic leaves it, and no job is slowed down.
  const sim::v1::NetworkFigures& near = by_name.at("topology-8h").network();
  CHECK(near.traffic().empty());
  CHECK(near.jobs() == 8);
  CHECK(near.slowdown().max() == Approx(1));
  CHECK(near.useful() == Approx(1));
  CHECK(by_name.at("spread").network().slowdown().mean() > 2);
  const std::string table = Printed(*result, "table");
  const auto row = [&table](const std::string& name) {  // of six strategies, as printed
    const size_t begin = table.find("\n" + name);
    INFO(name);
    REQUIRE(begin != std::string::npos);
    const size_t at = table.find_first_not_of(" %TB", begin + 1 + name.size());
    return table.substr(at, table.find('\n', at) - at);
  };
  CHECK(row("jobs that communicate") ==
        "8              8              8              8              8              8");
  CHECK(absl::EndsWith(row("useful device time"), " 100.00"));
  CHECK(absl::EndsWith(row("traffic out of server"), " -"));
  CHECK(absl::EndsWith(row("run / alone, mean"), " 1.00"));
}

TEST_CASE("options and keys of a network are refused without one") {
  ReplayArguments arguments = Example();
  arguments.network.clear();
  CHECK(RunReplay(arguments).status().message() ==
        "--columns: class needs --network, or \"training\" in each --config");
  arguments = Example();
  arguments.fill = 1.3;
  CHECK_FALSE(RunFill(arguments).ok());
  arguments.network.clear();
  arguments.columns = "tasks=workers,gpus=gpus";
  CHECK(RunFill(arguments).status().message() ==
        "spread: --fill takes no \"jobs\" and no \"training\"");
  arguments = Example();
  arguments.configs = {std::string(BERTH_EXAMPLES) + "/network/testbed.yaml"};
  CHECK(RunReplay(arguments).status().message() ==
        arguments.configs[0] + ": only \"config\", \"jobs\" and \"training\" are allowed");
}

}  // namespace
}  // namespace berth::replay
