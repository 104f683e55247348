// Reconstructs which requests give a value, by decomposing the sums of the tables. Every step of a
// list is the sum of two known ones, or of one and an item; the first decomposition found will do.
#include <algorithm>

#include "core/base/check.h"
#include "core/sharing/room_value_table.h"

namespace berth {
namespace {

// True if the list contains this step.
bool Has(const StepList& list, const ValueStep& step) {
  return step.cpu >= 0 && step.value >= 0 && StepAt(list, step.cpu) == step;
}

ValueStep Less(const ValueStep& a, const ValueStep& b) {
  return {a.cpu - b.cpu, a.value - b.value};
}

// The step of `b` that adds up to `sum` with one of `a`.
ValueStep PartIn(const StepList& b, const StepList& a, const ValueStep& sum) {
  const auto it = std::find_if(b.begin(), b.end(),
                               [&](const ValueStep& step) { return Has(a, Less(sum, step)); });
  BERTH_CHECK(it != b.end());
  return *it;
}

}  // namespace

void RoomValue::Table::TraceDevice(size_t sum, ValueStep step, std::vector<size_t>* placed) const {
  while (step.value > 0) {
    while (Has(device_[sum - 1], step)) --sum;
    const auto it = std::find_if(shares_.begin(), shares_.end(), [&](const Item& item) {
      if (item.size > sums_[sum]) return false;
      const auto rest = static_cast<size_t>(sums_[sum] - item.size);
      return Has(device_[static_cast<size_t>(sum_of_[rest])], Less(step, {item.cpu, item.value}));
    });
    BERTH_CHECK(it != shares_.end());
    placed->push_back(it->index);
    sum = static_cast<size_t>(sum_of_[static_cast<size_t>(sums_[sum] - it->size)]);
    step = Less(step, {it->cpu, it->value});
  }
}

void RoomValue::Table::TraceWhole(size_t whole, ValueStep step, std::vector<size_t>* placed) const {
  while (step.value > 0) {
    const auto it = std::find_if(wholes_.begin(), wholes_.end(), [&](const Item& item) {
      return static_cast<size_t>(item.size) <= whole &&
             Has(whole_[whole - static_cast<size_t>(item.size)],
                 Less(step, {item.cpu, item.value}));
    });
    if (it != wholes_.end()) {
      placed->push_back(it->index);
      whole -= static_cast<size_t>(it->size);
      step = Less(step, {it->cpu, it->value});
    } else {
      const ValueStep part = PartIn(device_.back(), whole_[whole - 1], step);
      TraceDevice(sums_.size() - 1, part, placed);
      step = Less(step, part);
      --whole;
    }
  }
}

std::vector<size_t> RoomValue::Table::Best(const NodeRoom& room) {
  const Key key = KeyOf(room);
  FillWhole(key.whole);
  std::vector<StepList> lists = {whole_[static_cast<size_t>(key.whole)]};
  for (const int16_t sum : key.sums) {
    builder_.AddSums(lists.back(), device_[static_cast<size_t>(sum)]);
    lists.push_back(builder_.Take());
  }
  std::vector<size_t> placed;
  ValueStep step = StepAt(lists.back(), key.cpu);
  for (size_t i = key.sums.size(); i > 0; --i) {
    const auto sum = static_cast<size_t>(key.sums[i - 1]);
    const ValueStep part = PartIn(device_[sum], lists[i - 1], step);
    TraceDevice(sum, part, &placed);
    step = Less(step, part);
  }
  TraceWhole(static_cast<size_t>(key.whole), step, &placed);
  return placed;
}

}  // namespace berth
