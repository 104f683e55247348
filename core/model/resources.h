// Resources: an integer amount of every resource kind. DeviceSet: a set of devices of one node.
// DeviceUse: which of them are in use, completely or in part.
#ifndef BERTH_CORE_MODEL_RESOURCES_H_
#define BERTH_CORE_MODEL_RESOURCES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/model/ids.h"

namespace berth {

// The first kinds are fixed; device kinds and extended resources get the next ones in order of
// first appearance. No decision may depend on that order, as it differs between a fold and a load.
inline constexpr ResourceKind kCpu{0};      // milli-cores
inline constexpr ResourceKind kMemory{1};   // bytes
inline constexpr ResourceKind kScratch{2};  // bytes of the node's local disk
inline constexpr size_t kFixedKinds = 3;
// As a name in the model; the API and manifests have separate fields for these.
inline constexpr char kScratchName[] = "scratch";
inline constexpr size_t kMaxResourceKinds = 16;
// Device kinds and extended resources are counted in thousandths, as tasks may use part of a
// device.
inline constexpr int64_t kWhole = 1000;
constexpr int64_t UnitOf(ResourceKind kind) { return kind.value < kFixedKinds ? 1 : kWhole; }
inline bool IsFixedKind(absl::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == kScratchName;
}
inline int64_t UnitOf(absl::string_view resource) { return IsFixedKind(resource) ? 1 : kWhole; }
// In human units: milli-cores, bytes, devices.
inline double InUnits(int64_t amount, int64_t unit) {
  return static_cast<double>(amount) / static_cast<double>(unit);
}
// The same, exactly: "8", "2.5".
std::string AmountText(int64_t amount, int64_t unit);
inline constexpr int64_t kMaxAmount = int64_t{1}
                                      << 48;  // of one resource in one task, node or limit

// A sum, a capacity or a request. Amounts are >= 0 except in differences. Sums wrap around without
// loss: the limit keeps those of a job (up to 32,768 tasks) exact; only absurd requests make the
// displayed sum of pending tasks exceed int64.
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
  static DeviceSet Of(size_t index) {
    DeviceSet one;
    one.Add(index);
    return one;
  }
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
inline DeviceSet Difference(DeviceSet a, const DeviceSet& b) { return a -= b; }

// A shared device, with the sum of its shares in thousandths.
struct SharedDevice {
  uint8_t device = 0;  // index in Node::devices
  uint16_t tasks = 0;
  int32_t share = 0;
  bool operator==(const SharedDevice&) const = default;
};

// The devices of a node that tasks use. Whole devices are a set: adding one twice and removing it
// once leaves none. Shares add up.
//
//   {0, 1} whole, 2: 0.5     Full {0, 1}, InUse {0, 1, 2}, of 2 and 3 are 1,500 thousandths free
struct DeviceUse {
  DeviceSet whole;
  absl::InlinedVector<SharedDevice, 3> shared;  // by device

  DeviceUse& operator+=(const DeviceUse& more) {
    whole |= more.whole;
    if (!more.shared.empty()) AddShares(more, 1);
    return *this;
  }
  DeviceUse& operator-=(const DeviceUse& less) {
    whole -= less.whole;
    if (!less.shared.empty()) AddShares(less, -1);
    return *this;
  }
  friend DeviceUse operator+(DeviceUse a, const DeviceUse& b) { return a += b; }
  friend DeviceUse operator-(DeviceUse a, const DeviceUse& b) { return a -= b; }
  bool operator==(const DeviceUse&) const = default;

  // The maximum of both for each device.
  void Widen(const DeviceUse& other);

  // Devices that are in use at least in part; devices with nothing left.
  DeviceSet InUse() const;
  DeviceSet Full() const;
  // True if both fit in thousandths. HasRoom (core/model/node.h) also checks how many tasks may
  // share.
  bool HasRoomFor(const DeviceUse& more) const;
  // True if some device would be used whole by one task and in any way by another. Shares may add
  // up to more than a device if its terms changed after they were assigned.
  bool Clashes(const DeviceUse& more) const;
  const SharedDevice* SharesOf(size_t device) const;  // null: no task has a share of it
  // Thousandths.
  int64_t FreeOf(size_t device) const;
  int64_t FreeIn(const DeviceSet& devices) const;

 private:
  void AddShares(const DeviceUse& other, int sign);
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_RESOURCES_H_
