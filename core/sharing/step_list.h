// StepList: the best attainable value by CPU, as a step function.
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

// The last step that this much CPU reaches. CPU 0 or more.
const ValueStep& StepAt(const StepList& steps, int32_t cpu);

// Builds a list from candidates. Those that take more CPU than the limit are dropped.
class StepListBuilder {
 public:
  explicit StepListBuilder(int32_t most_cpu);
  // Adds all steps of the list, each increased by `cpu` and `value`.
  void Add(const StepList& list, int32_t cpu, int64_t value);
  // Adds every sum of a step of `a` and one of `b`.
  void AddSums(const StepList& a, const StepList& b);
  // The best of everything added since the last call.
  StepList Take();

 private:
  void Offer(int32_t cpu, int64_t value);

  std::vector<int64_t> best_;  // by CPU; 0: none added
  int32_t touched_ = 0;        // the greatest CPU added
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_STEP_LIST_H_
