// Jobs with random groups and policies, for long random runs.
#ifndef BERTH_TESTS_PROPERTY_RANDOM_JOBS_H_
#define BERTH_TESTS_PROPERTY_RANDOM_JOBS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/pauses.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {

inline std::vector<LifecyclePolicy> RandomPolicies(Dice& dice) {
  std::vector<LifecyclePolicy> policies;
  for (int i = dice.Below(3); i > 0; --i) {
    LifecyclePolicy policy;
    policy.event = static_cast<PolicyEvent>(dice.Below(8));  // nothing hangs here
    policy.action = static_cast<PolicyAction>(dice.Below(7));
    if (policy.event == PolicyEvent::kTaskFailed && dice.Chance(50)) policy.exit_codes = {1};
    const bool waits = policy.event == PolicyEvent::kTaskPending;
    if (waits || dice.Chance(40)) policy.after = absl::Seconds(dice.Between(1, 20));
    policies.push_back(policy);
  }
  return policies;
}

inline testing::JobShape RandomJob(const testing::TestCluster& cluster, Dice& dice) {
  const char* queues[] = {"a", "b", "c"};
  testing::JobShape shape{.queue = queues[dice.Below(3)], .priority = dice.Below(3)};
  shape.saves_before_drain = shape.priority > 0;
  shape.groups.clear();
  const int groups = dice.Between(1, 3);
  int minimum = 0, replicas = 0;
  bool chained = false;
  for (int g = 0; g < groups; ++g) {
    testing::GroupShape group{.name = absl::StrCat("g", g), .replicas = dice.Between(1, 3)};
    group.gpus = dice.Below(2);
    if (dice.Chance(30)) group.min_available = dice.Chance(30) ? 0 : 1;
    group.policies = RandomPolicies(dice);
    if (g > 0 && dice.Chance(30)) {
      group.depends_on = {{static_cast<uint32_t>(dice.Below(g)), dice.Chance(50)
                                                                     ? GroupCondition::kRunning
                                                                     : GroupCondition::kCompleted}};
    }
    minimum += group.min_available < 0 ? group.replicas : group.min_available;
    replicas += group.replicas;
    chained |= !group.depends_on.empty();
    shape.groups.push_back(group);
  }
  shape.min_available = std::max(minimum, 1);
  if (!chained && dice.Chance(30))
    shape.min_available = dice.Between(shape.min_available, replicas);
  shape.policies = RandomPolicies(dice);
  shape.max_retries = dice.Below(4);
  shape.on_node_loss = static_cast<NodeLossPolicy>(dice.Below(3));
  shape.suspended = dice.Chance(5);
  if (dice.Chance(30)) shape.walltime = absl::Seconds(dice.Between(30, 200));
  if (dice.Chance(30)) shape.ttl = absl::Seconds(dice.Below(60));
  if (dice.Chance(10)) shape.start_after = cluster.now() + absl::Seconds(dice.Below(60));
  const uint64_t next = cluster.state().next_job_id().value;
  const JobId before{static_cast<uint64_t>(dice.Between(1, static_cast<int>(next)))};
  if (dice.Chance(20) && cluster.state().jobs().Find(before) != nullptr) {
    shape.dependencies = {{before, static_cast<DependencyCondition>(dice.Below(3))}};
  }
  return shape;
}

// The task was told to pause: it is frozen, and often lends its devices if it may.
inline void ReportPaused(testing::TestCluster& cluster, Dice& dice, TaskKey key) {
  const Job& job = cluster.job(key.job);
  cluster.Must(
      TaskReported{.task = key,
                   .attempt = job.tasks[key.task].attempt,
                   .state = ReportState::kPaused,
                   .devices_lent = MayLend(cluster.state(), job, key.task) && dice.Chance(70)});
}

}  // namespace berth

#endif  // BERTH_TESTS_PROPERTY_RANDOM_JOBS_H_
