#include "offline/sim/scenario_runner.h"

#include <algorithm>
#include <utility>

#include "offline/sim/expectation.h"
#include "offline/sim/names.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/scenario_result.h"
#include "offline/sim/scenario_steps.h"
#include "offline/sim/specs.h"
#include "support/proto_time.h"
#include "support/random.h"

namespace berth {
namespace {

constexpr uint64_t kShuffles = 2;

template <class List>
void ShuffleList(List* list, Random* random) {
  for (int i = list->size(); i > 1; --i) {
    list->SwapElements(i - 1, static_cast<int>(random->Below(static_cast<uint64_t>(i))));
  }
}

sim::v1::Scenario Shuffled(const sim::v1::Scenario& scenario, uint64_t seed) {
  sim::v1::Scenario result = scenario;
  Random random(seed);
  ShuffleList(result.mutable_nodes(), &random);
  ShuffleList(result.mutable_hyper_nodes(), &random);
  ShuffleList(result.mutable_queues(), &random);
  ShuffleList(result.mutable_jobs(), &random);
  return result;
}

class Runner {
 public:
  Runner(const sim::v1::Scenario& scenario, const RunOptions& options, Policies policies)
      : scenario_(scenario),
        options_(options),
        cluster_(std::move(policies), ScenarioStart(), Simulated(scenario, options)) {}

  absl::StatusOr<ScenarioRun> Run() {
    if (auto status = LoadScenario(scenario_, &cluster_); !status.ok()) return status;
    // After a reload, the state knows better than an incremental one which jobs need no look. With
    // a budget this can change the cycle of a decision.
    if (options_.shuffle_seed != 0 && scenario_.budget() == 0) {
      if (auto status = cluster_.Reload(options_.shuffle_seed); !status.ok()) return status;
    }
    run_.result.set_name(scenario_.name());
    for (int i = 0; i < scenario_.steps_size(); ++i) {
      const std::string path = absl::StrCat("steps[", i, "]");
      if (auto status = Take(scenario_.steps(i), path); !status.ok()) return status;
    }
    if (scenario_.has_expect()) {
      if (auto status = Expect(scenario_.expect(), "expect"); !status.ok()) return status;
    }
    AddEnd(cluster_, &run_.result);
    return std::move(run_);
  }

 private:
  static SimOptions Simulated(const sim::v1::Scenario& scenario, const RunOptions& options) {
    SimOptions simulated;
    simulated.auto_start = !scenario.has_auto_start() || scenario.auto_start();
    simulated.release_delay = DurationFrom(scenario.release_delay());
    if (scenario.budget() > 0) simulated.budget = scenario.budget();
    simulated.check_consistency = options.check_consistency;
    return simulated;
  }

  absl::Status Take(const sim::v1::Step& step, const std::string& path) {
    using sim::v1::Step;
    switch (step.what_case()) {
      case Step::WHAT_NOT_SET:
        return Wrong(path, "an empty step");
      case Step::kCycle:
        for (int i = 0; i < step.cycle(); ++i) {
          if (auto status = Under(path, Cycle()); !status.ok()) return status;
        }
        return absl::OkStatus();
      case Step::kSettle:
        return Under(path, Settle(step.settle()));
      case Step::kAdvance:
        cluster_.Advance(DurationFrom(step.advance()));
        return absl::OkStatus();
      case Step::kRun:
        return Under(path, RunFor(DurationFrom(step.run())));
      case Step::kExpect:
        return Expect(step.expect(), absl::StrCat(path, ".expect"));
      case Step::kRefused:
        return Refused(step.refused(), absl::StrCat(path, ".refused"));
      default:
        return ApplyStep(step, path, &cluster_);
    }
  }

  absl::Status Cycle() {
    if (run_.result.cycles_size() >= kMaxScenarioCycles) {
      return absl::ResourceExhaustedError("too many cycles");
    }
    sim::v1::CycleResult& cycle = *run_.result.add_cycles();
    cycle.set_number(run_.result.cycles_size());
    ToProto(cluster_.now() - ScenarioStart(), cycle.mutable_time());
    const auto plan = cluster_.Cycle([&](const EventBody& decision) {
      for (sim::v1::Decision& one : DecisionMessages(cluster_.state(), decision, ScenarioStart())) {
        if (!one.text().empty()) decisions_.push_back(one.text());
        *cycle.add_decisions() = std::move(one);
      }
    });
    if (!plan.ok()) return plan.status();
    cycle.set_exhausted(plan->exhausted);
    if (options_.tasks_each_cycle) *cycle.mutable_tasks() = TasksOf(cluster_.state());
    return absl::OkStatus();
  }

  absl::Status Settle(int bound) {
    for (int i = 0; i < bound; ++i) {
      if (auto status = Cycle(); !status.ok()) return status;
      if (!cluster_.quiet()) continue;
      // A cycle without work is not shown, unless it is the only one.
      if (i > 0) run_.result.mutable_cycles()->RemoveLast();
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the state still changes after ", bound, " cycles"));
  }

  absl::Status RunFor(Duration duration) {
    constexpr int kCyclesAtOnce = 100;
    const Time end = cluster_.now() + duration;
    for (;;) {
      if (auto status = Settle(kCyclesAtOnce); !status.ok()) return status;
      const Time next = cluster_.NextDue();
      if (next > end && cluster_.now() == end) return absl::OkStatus();
      cluster_.Advance(std::min(next, end) - cluster_.now());
    }
  }

  absl::Status Expect(const sim::v1::Expectation& expected, const std::string& path) {
    sim::v1::ScenarioResult now;
    AddEnd(cluster_, &now);
    auto comparison = Compare(expected, now, decisions_);
    if (!comparison.ok()) return Under(path, comparison.status());
    for (const std::string& line : comparison->mismatches) {
      run_.result.add_mismatches(absl::StrCat(path, ": ", line));
    }
    run_.actual[path] = std::move(comparison->actual);
    if (expected.decisions_size() > 0 || expected.has_no_decisions()) decisions_.clear();
    return absl::OkStatus();
  }

  absl::Status Refused(const sim::v1::Refusal& refusal, const std::string& path) {
    const absl::Status status = Take(refusal.step(), absl::StrCat(path, ".step"));
    if (status.ok()) {
      run_.result.add_mismatches(absl::StrCat(path, ": expected a refusal"));
    } else if (status.message().find(refusal.because()) == absl::string_view::npos) {
      run_.result.add_mismatches(absl::StrCat(path, ": expected \"", refusal.because(),
                                              "\", got \"", status.message(), "\""));
    }
    return absl::OkStatus();
  }

  const sim::v1::Scenario& scenario_;
  const RunOptions options_;
  SimCluster cluster_;
  ScenarioRun run_;
  std::vector<std::string> decisions_;  // since the last expectation with decisions
};

std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t from = at < 60 ? 0 : at - 60;
  return absl::StrCat("...", a.substr(from, 160), "... versus ...", b.substr(from, 160), "...");
}

}  // namespace

absl::StatusOr<ScenarioRun> RunScenario(const sim::v1::Scenario& scenario,
                                        const RunOptions& options) {
  if (scenario.training_size() > 0) {
    return absl::InvalidArgumentError("training: is for berth-sim replay, in a --config");
  }
  const auto config = ToPolicyConfig(scenario.config(), "config");
  if (!config.ok()) return config.status();
  return Runner(scenario, options, *Policies::Create(*config)).Run();
}

absl::StatusOr<ScenarioRun> CheckScenario(const sim::v1::Scenario& scenario,
                                          const RunOptions& options) {
  RunOptions checked = options;
  checked.check_consistency = true;
  absl::StatusOr<ScenarioRun> first = RunScenario(scenario, checked);
  if (!first.ok()) return first.status();
  const std::string wanted = first->result.ShortDebugString();
  for (uint64_t seed = 0; seed <= kShuffles; ++seed) {
    checked.shuffle_seed = seed;
    const auto again = RunScenario(seed == 0 ? scenario : Shuffled(scenario, seed), checked);
    if (!again.ok()) return again.status();
    const std::string got = again->result.ShortDebugString();
    if (got == wanted) continue;
    return absl::InternalError(
        absl::StrCat(scenario.name(), ": different result ",
                     seed == 0 ? "in a second run" : "when declared in another order", ": ",
                     FirstDifference(wanted, got)));
  }
  return first;
}

}  // namespace berth
