// A running gang in a few lines, for tables of reactions to reports and policies.
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_RUNNING_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_RUNNING_H_

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/testing/cluster.h"

namespace berth::testing {

inline constexpr Duration kSecond = absl::Seconds(1);

inline JobShape Gang(int tasks) {
  return {.groups = {{.name = "worker", .replicas = tasks, .cpu = 40}}};
}

inline LifecyclePolicy On(PolicyEvent event, PolicyAction action, std::vector<int32_t> codes = {},
                          Duration after = absl::ZeroDuration()) {
  return {.event = event, .exit_codes = std::move(codes), .action = action, .after = after};
}

// A running gang on nodes n1..nN, one task a node.
struct Running {
  explicit Running(JobShape shape, int nodes = 4) {
    cluster.AddNodes("n", nodes);
    job = cluster.Submit("j", shape);
    cluster.RunAll(job);
    REQUIRE(cluster.StateOf(job) == "Running");
  }
  std::string Tasks() const { return cluster.Tasks(job); }
  std::string State() const { return cluster.StateOf(job); }
  const std::string& Message() const { return cluster.status(job).message; }

  TestCluster cluster;
  JobId job;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_RUNNING_H_
