#include "clients/agent/supervisor/id_swap.h"

#include <algorithm>

namespace berth {

std::vector<IdRange> SwapIds(uint32_t one, uint32_t other) {
  constexpr uint32_t kEnd = UINT32_MAX;  // the number that means none
  const uint32_t low = std::min(one, other), high = std::max(one, other);
  if (low == high) return {{0, 0, kEnd}};
  std::vector<IdRange> ranges;
  const auto add = [&](uint32_t inside, uint32_t outside, uint32_t count) {
    if (count > 0) ranges.push_back({inside, outside, count});
  };
  add(0, 0, low);
  add(low, high, 1);
  add(low + 1, low + 1, high - low - 1);
  add(high, low, 1);
  add(high + 1, high + 1, kEnd - high - 1);
  return ranges;
}

}  // namespace berth
