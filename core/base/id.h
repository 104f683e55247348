// Strong ids: numbers whose kinds cannot be mixed up.
#ifndef BERTH_CORE_BASE_ID_H_
#define BERTH_CORE_BASE_ID_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace berth {

// No arithmetic and no conversion. Ordered, so that every comparator can use an id as tie-breaker.
template <class Tag, class Number = uint32_t>
struct Id {
  using Value = Number;
  Number value = 0;

  auto operator<=>(const Id&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Id& id) {
    return H::combine(std::move(h), id.value);
  }
};

}  // namespace berth

#endif  // BERTH_CORE_BASE_ID_H_
