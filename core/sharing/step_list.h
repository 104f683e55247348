// StepList: the best value that can be had for so much CPU, as steps.
//
//   {0: 0, 4: 300, 9: 500}   for 4 to 8 units of CPU 300, from 9 on 500
#ifndef BERTH_CORE_SHARING_STEP_LIST_H_
#define BERTH_CORE_SHARING_STEP_LIST_H_

#include <cstdint>
#include <vector>

namespace berth {

struct ValueStep {
  int32_t cpu = 0;
  int64_t value = 0;
  bool operator==(const ValueStep&) const = default;
};

// Ascending by both; begins with {0, 0}.
using StepList = std::vector<ValueStep>;

// The last step that so much CPU pays for. CPU 0 or more.
const ValueStep& StepAt(const StepList& steps, int32_t cpu);

// Makes a list out of candidates. Those that take more CPU than the bound are left out.
class StepListBuilder {
 public:
  explicit StepListBuilder(int32_t most_cpu);
  // All steps of the list, each with so much added.
  void Add(const StepList& list, int32_t cpu, int64_t value);
  // Every sum of a step of either.
  void AddSums(const StepList& a, const StepList& b);
  // The best of all that was added since the last call.
  StepList Take();

 private:
  void Offer(int32_t cpu, int64_t value);

  std::vector<int64_t> best_;  // by CPU; 0: nothing offered
  int32_t touched_ = 0;        // the greatest CPU offered
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_STEP_LIST_H_
