// Pauses and priority classes, for RandomValues.
#ifndef BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_
#define BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_

#include "core/model/job.h"
#include "core/model/priority_classes.h"

namespace berth {

template <class Values>
Pause RandomPause(Values& v) {
  if (v.Coin()) return {};
  return {.wanted = v.Coin(),
          .since = v.AnyTime(),
          .until = v.AnyTime(),
          .total = absl::Milliseconds(v.Count(1 << 30))};
}

template <class Values>
PriorityClassChange RandomPriorityClasses(Values& v) {
  return {.remove = v.Texts(), .set = v.List([&v] {
            return PriorityClass{.name = v.Text(),
                                 .value = v.Int32(),
                                 .preempts = v.Coin(),
                                 .global_default = v.Coin(),
                                 .description = v.Text()};
          })};
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_
