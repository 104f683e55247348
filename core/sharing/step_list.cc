#include "core/sharing/step_list.h"

#include <algorithm>

namespace berth {

const ValueStep& StepAt(const StepList& steps, int32_t cpu) {
  const auto it =
      std::upper_bound(steps.begin(), steps.end(), cpu,
                       [](int32_t most, const ValueStep& step) { return most < step.cpu; });
  return *(it - 1);
}

StepListBuilder::StepListBuilder(int32_t most_cpu) : best_(static_cast<size_t>(most_cpu) + 1) {}

void StepListBuilder::Offer(int32_t cpu, int64_t value) {
  int64_t& best = best_[static_cast<size_t>(cpu)];
  best = std::max(best, value);
  touched_ = std::max(touched_, cpu);
}

void StepListBuilder::Add(const StepList& list, int32_t cpu, int64_t value) {
  const auto bound = static_cast<int32_t>(best_.size()) - 1;
  for (const ValueStep& step : list) {
    if (step.cpu > bound - cpu) break;
    Offer(step.cpu + cpu, step.value + value);
  }
}

void StepListBuilder::AddSums(const StepList& a, const StepList& b) {
  for (const ValueStep& step : b) Add(a, step.cpu, step.value);
}

StepList StepListBuilder::Take() {
  StepList steps = {{}};
  for (int32_t cpu = 0; cpu <= touched_; ++cpu) {
    int64_t& best = best_[static_cast<size_t>(cpu)];
    if (best > steps.back().value) {
      if (cpu == 0) steps.pop_back();
      steps.push_back({cpu, best});
    }
    best = 0;
  }
  touched_ = 0;
  return steps;
}

}  // namespace berth
