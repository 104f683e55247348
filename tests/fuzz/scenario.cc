// Scenario files. Small ones are also run, and checked like `berth-sim run --check`.
#include <cstdio>
#include <cstdlib>

#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"
#include "support/name_pattern.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

constexpr size_t kMostNames = 20;
constexpr int kMostTasks = 20;
constexpr int64_t kMostSeconds = 600;
constexpr uint64_t kBudget = 20'000;

template <class Items>
bool FewNames(const Items& items) {
  size_t names = 0;
  for (const auto& item : items) {
    const auto expanded = ExpandNamePattern(item.name());
    names += expanded.ok() ? expanded->size() : 1;
  }
  return names <= kMostNames;
}

bool Small(const sim::v1::Job& job) {
  int64_t tasks = job.replicas();
  for (const auto& group : job.groups()) tasks += group.replicas();
  return tasks <= kMostTasks && job.groups_size() <= 4;
}

bool Small(const sim::v1::Step& step) {
  return step.cycle() <= kMostTasks && step.settle() <= kMostTasks &&
         step.run().seconds() <= kMostSeconds && FewNames(step.submit().jobs()) &&
         FewNames(step.set().nodes()) && FewNames(step.set().queues()) &&
         std::all_of(step.submit().jobs().begin(), step.submit().jobs().end(),
                     [](const auto& job) { return Small(job); });
}

// Excludes inputs that request minutes of work, which is not a bug.
bool Small(const sim::v1::Scenario& scenario) {
  return FewNames(scenario.nodes()) && FewNames(scenario.jobs()) && FewNames(scenario.queues()) &&
         FewNames(scenario.hyper_nodes()) && scenario.steps_size() <= 10 &&
         std::all_of(scenario.jobs().begin(), scenario.jobs().end(),
                     [](const auto& job) { return Small(job); }) &&
         std::all_of(scenario.steps().begin(), scenario.steps().end(),
                     [](const auto& step) { return Small(step); });
}

}  // namespace

void FuzzOne(absl::string_view input) {
  const auto documents = ReadScenarios(input, "f");
  if (!documents.ok()) return;
  for (const ScenarioDocument& one : *documents) {
    if (!Small(one.scenario)) continue;
    sim::v1::Scenario scenario = one.scenario;
    if (scenario.budget() == 0 || scenario.budget() > kBudget) scenario.set_budget(kBudget);
    const auto run = CheckScenario(scenario, {.check_consistency = true});
    if (run.ok() || !absl::IsInternal(run.status())) continue;
    std::fprintf(stderr, "%s\n", run.status().ToString().c_str());
    std::abort();
  }
}

}  // namespace berth::fuzz
