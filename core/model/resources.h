// Resources: an integer amount of every resource kind. DeviceSet: which devices of one node.
#ifndef BERTH_CORE_MODEL_RESOURCES_H_
#define BERTH_CORE_MODEL_RESOURCES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/model/ids.h"

namespace berth {

// Kinds 0 and 1 are fixed; device kinds and extended resources get the next ones in order of first
// appearance. No decision may depend on that order, as it differs between a fold and a load.
inline constexpr ResourceKind kCpu{0};     // milli-cores
inline constexpr ResourceKind kMemory{1};  // bytes
inline constexpr size_t kMaxResourceKinds = 16;
inline constexpr int64_t kMaxAmount = int64_t{1}
                                      << 48;  // of one resource in one task, node or limit

// A sum, a capacity or a request. Amounts are >= 0 except in differences. Sums wrap around and come
// back: the bound keeps those of a job (up to 32,768 tasks) exact; the display of all that waits
// may exceed int64 only by absurd asks.
struct Resources {
  std::array<int64_t, kMaxResourceKinds> amount{};

  int64_t& operator[](ResourceKind kind) { return amount[kind.value]; }
  int64_t operator[](ResourceKind kind) const { return amount[kind.value]; }

  Resources& operator+=(const Resources& other) {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      amount[i] = static_cast<int64_t>(static_cast<uint64_t>(amount[i]) +
                                       static_cast<uint64_t>(other.amount[i]));
    }
    return *this;
  }
  Resources& operator-=(const Resources& other) {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      amount[i] = static_cast<int64_t>(static_cast<uint64_t>(amount[i]) -
                                       static_cast<uint64_t>(other.amount[i]));
    }
    return *this;
  }
  friend Resources operator+(Resources a, const Resources& b) { return a += b; }
  friend Resources operator-(Resources a, const Resources& b) { return a -= b; }
  Resources Times(int64_t count) const {
    Resources product;
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      product.amount[i] =
          static_cast<int64_t>(static_cast<uint64_t>(amount[i]) * static_cast<uint64_t>(count));
    }
    return product;
  }
  bool operator==(const Resources&) const = default;

  // True if every amount is at most the other's.
  bool FitsIn(const Resources& other) const {
    bool fits = true;
    for (size_t i = 0; i < kMaxResourceKinds; ++i) fits &= amount[i] <= other.amount[i];
    return fits;
  }
  bool IsZero() const { return *this == Resources{}; }
};

// A set of device indexes (positions in Node::devices).
inline constexpr size_t kMaxDevicesPerNode = 128;
struct DeviceSet {
  std::array<uint64_t, 2> bits{};

  bool Has(size_t index) const { return (bits[index / 64] >> (index % 64)) & 1; }
  void Add(size_t index) { bits[index / 64] |= uint64_t{1} << (index % 64); }
  DeviceSet& operator|=(const DeviceSet& other) {
    bits[0] |= other.bits[0];
    bits[1] |= other.bits[1];
    return *this;
  }
  DeviceSet& operator-=(const DeviceSet& other) {
    bits[0] &= ~other.bits[0];
    bits[1] &= ~other.bits[1];
    return *this;
  }
  bool Overlaps(const DeviceSet& other) const {
    return ((bits[0] & other.bits[0]) | (bits[1] & other.bits[1])) != 0;
  }
  bool Empty() const { return (bits[0] | bits[1]) == 0; }
  int Count() const { return std::popcount(bits[0]) + std::popcount(bits[1]); }
  bool operator==(const DeviceSet&) const = default;
};

inline DeviceSet Intersection(const DeviceSet& a, const DeviceSet& b) {
  return {{a.bits[0] & b.bits[0], a.bits[1] & b.bits[1]}};
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RESOURCES_H_
