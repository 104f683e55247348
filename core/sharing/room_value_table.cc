#include "core/sharing/room_value_table.h"

#include <algorithm>
#include <bitset>

#include "core/base/check.h"

namespace berth {
namespace {

constexpr size_t kMaxKnownValues = 1 << 20;

int32_t StepsUp(int64_t cpu_millis) {
  const int64_t steps = (cpu_millis + kCpuStepMillis - 1) / kCpuStepMillis;
  return static_cast<int32_t>(std::min<int64_t>(steps, kMaxCpuSteps + 1));
}

int32_t StepsDown(int64_t cpu_millis) {
  return static_cast<int32_t>(std::min<int64_t>(cpu_millis / kCpuStepMillis, kMaxCpuSteps));
}

}  // namespace

RoomValue::Table::Table(const std::vector<ValuedRequest>& requests,
                        const std::vector<size_t>& suits)
    : builder_(kMaxCpuSteps) {
  for (const size_t index : suits) {
    const auto& [request, value] = requests[index];
    const Item item{.size = request.share > 0 ? request.share : request.devices,
                    .cpu = StepsUp(request.cpu_millis),
                    .value = value,
                    .index = index};
    if (item.cpu <= kMaxCpuSteps) (request.share > 0 ? shares_ : wholes_).push_back(item);
  }
  FillDevice();
}

void RoomValue::Table::FillDevice() {
  std::bitset<kWholeDevice + 1> reached;
  reached.set(0);
  for (size_t amount = 0; amount < kWholeDevice; ++amount) {
    if (!reached[amount]) continue;
    for (const Item& item : shares_) {
      const size_t next = amount + static_cast<size_t>(item.size);
      if (next <= kWholeDevice) reached.set(next);
    }
  }
  for (size_t amount = 0; amount <= kWholeDevice; ++amount) {
    if (reached[amount]) sums_.push_back(static_cast<int32_t>(amount));
    sum_of_[amount] = static_cast<int16_t>(sums_.size() - 1);
  }
  device_.push_back({{}});
  for (size_t i = 1; i < sums_.size(); ++i) {
    builder_.Add(device_.back(), 0, 0);
    for (const Item& item : shares_) {
      if (item.size > sums_[i]) continue;
      const auto rest = static_cast<size_t>(sums_[i] - item.size);
      builder_.Add(device_[static_cast<size_t>(sum_of_[rest])], item.cpu, item.value);
    }
    device_.push_back(builder_.Take());
  }
  whole_.push_back({{}});
}

void RoomValue::Table::FillWhole(int32_t whole) {
  while (static_cast<int32_t>(whole_.size()) <= whole) {
    builder_.AddSums(whole_.back(), device_.back());
    for (const Item& item : wholes_) {
      const auto size = static_cast<size_t>(item.size);
      if (size <= whole_.size()) {
        builder_.Add(whole_[whole_.size() - size], item.cpu, item.value);
      }
    }
    whole_.push_back(builder_.Take());
  }
}

RoomValue::Table::Key RoomValue::Table::KeyOf(const NodeRoom& room) const {
  Key key;
  key.cpu = StepsDown(room.cpu_millis);
  key.whole = room.whole;
  for (const int16_t part : room.parts) {
    const int16_t sum = sum_of_[static_cast<size_t>(part)];
    if (sum > 0) key.sums.push_back(sum);
  }
  return key;
}

int64_t RoomValue::Table::Of(const NodeRoom& room) {
  const Key key = KeyOf(room);
  const auto it = known_.find(key);
  if (it != known_.end()) return it->second;
  if (known_.size() >= kMaxKnownValues) known_.clear();
  const int64_t value = Compute(key);
  known_.emplace(key, value);
  return value;
}

int64_t RoomValue::Table::Compute(const Key& key) {
  FillWhole(key.whole);
  const StepList& whole = whole_[static_cast<size_t>(key.whole)];
  if (key.sums.empty()) return StepAt(whole, key.cpu).value;
  StepList parts = device_[static_cast<size_t>(key.sums[0])];
  for (size_t i = 1; i < key.sums.size(); ++i) {
    builder_.AddSums(parts, device_[static_cast<size_t>(key.sums[i])]);
    parts = builder_.Take();
  }
  int64_t best = 0;
  for (const ValueStep& step : parts) {
    if (step.cpu > key.cpu) break;
    best = std::max(best, step.value + StepAt(whole, key.cpu - step.cpu).value);
  }
  return best;
}

}  // namespace berth
