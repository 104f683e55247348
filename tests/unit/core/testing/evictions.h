// Clusters in which some jobs must be evicted for others.
//
//   Contest contest({"allocate", "preempt"});
//   const JobId low = contest.Run("low", Gang(1, 8));
//   contest.Submit("high", Gang(1, 8, "", 5));
//   CHECK(contest.Evictions() == "release low: 0 for high\nnominate high: 0@n1\n");
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_EVICTIONS_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_EVICTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/testing/cluster.h"

namespace berth::testing {

// No protection, unless the test requests it.
inline EvictionParameters Unprotected() {
  EvictionParameters parameters;
  parameters.cooldown = absl::ZeroDuration();
  return parameters;
}

inline Policies Evicting(std::vector<std::string> actions,
                         EvictionParameters eviction = Unprotected()) {
  PolicyConfig config;
  config.actions = std::move(actions);
  config.eviction = eviction;
  auto policies = Policies::Create(config);
  REQUIRE(policies.ok());
  return *std::move(policies);
}

// Preemptible; no cpu, so that only GPUs are contended.
inline JobShape Gang(int tasks, int gpus, const std::string& queue = "", int priority = 0) {
  JobShape shape{.queue = queue, .priority = priority};
  shape.groups = {{.replicas = tasks, .cpu = 0, .gpus = gpus}};
  shape.preemptible = true;
  return shape;
}
inline JobShape Elastic(int least, int most, int gpus, const std::string& queue = "",
                        int priority = 0) {
  JobShape shape = Gang(most, gpus, queue, priority);
  shape.groups[0].min_available = least;
  return shape;
}
inline JobShape Firm(JobShape shape) {
  shape.preemptible = false;
  return shape;
}

class Contest : public TestCluster {
 public:
  explicit Contest(std::vector<std::string> actions, EvictionParameters eviction = Unprotected())
      : TestCluster(Evicting(std::move(actions), eviction)) {}

  // Submits the job and takes it to Running, including all its growth.
  JobId Run(const std::string& name, const JobShape& shape) {
    const JobId id = Submit(name, shape);
    Settle();
    for (size_t i = 0; i < job(id).tasks.size() + 1; ++i) RunAll(id);
    INFO(name);
    REQUIRE(StateOf(id) == "Running");
    return id;
  }

  // Evictions and nominations of the next cycles, one line each, in order.
  std::string Evictions() {
    std::string text;
    for (const EventBody& decision : Settle()) {
      const auto* released = std::get_if<TasksReleased>(&decision);
      const bool eviction =
          released != nullptr &&
          (IsEviction(released->reason) || released->reason == ReleaseReason::kGangExpired);
      if (eviction || std::holds_alternative<TasksNominated>(decision)) {
        absl::StrAppend(&text, Describe(state(), decision), "\n");
      }
    }
    return text;
  }

  // Reports all tasks being released as gone, and runs cycles, until no task is being released.
  void Leave() {
    for (int i = 0; i < 100 && !state().releasing().empty(); ++i) {
      const TaskKey key = *state().releasing().begin();
      Report(key.job, key.task, ReportState::kExited, 143, ExitCause::kKilled);
      Settle();
    }
  }
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_EVICTIONS_H_
