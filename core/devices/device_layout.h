// DeviceLayout: how the devices of a node are connected, computed once for all equal nodes.
//
// Thousands of nodes are equal: the same kinds of devices at the same positions, the same links and
// NUMA nodes. They share one layout (Interner::AcquireLayout), which includes the table of best
// device sets (core/devices/best_set.h). UUIDs, models and health are not part of it: a device that
// is unhealthy or in use is not a candidate.
#ifndef BERTH_CORE_DEVICES_DEVICE_LAYOUT_H_
#define BERTH_CORE_DEVICES_DEVICE_LAYOUT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/devices/link_score.h"
#include "core/model/ids.h"
#include "core/model/node.h"

namespace berth {

// The key by which layouts are shared.
struct LayoutKey {
  std::vector<std::pair<std::string, int32_t>> devices;  // kind and NUMA node, by position
  DeviceTopology topology;
  bool operator==(const LayoutKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LayoutKey& v) {
    return H::combine(std::move(h), v.devices, v.topology);
  }
};
LayoutKey LayoutKeyOf(const NodeSpec& spec);

// A set of devices of one kind: bit i is the kind's i-th device.
using KindMask = uint64_t;
inline constexpr size_t kMaxLaidOut = 64;  // devices of one kind

// The devices of one kind, which are adjacent in NodeSpec::devices, starting at `first`.
struct KindLayout {
  std::string kind;
  size_t first = 0;
  size_t count = 0;
  std::vector<LinkScore> scores;    // [a * count + b]; 0 for a device to itself
  std::vector<int64_t> mb_per_s;    // likewise
  std::vector<uint8_t> numa;        // by device: its NUMA node as a small number
  std::vector<LinkScore> nic_near;  // by device: to the nearest NIC of the node; 0 without NICs
  size_t nics = 0;                  // of the node, starting at `first_nic`
  size_t first_nic = 0;
  std::vector<LinkScore> nic_scores;    // [device * nics + nic]
  std::vector<KindMask> earlier_twins;  // by device: interchangeable devices before it
  // The best set by candidates and size, for up to kMaxTabled devices: [(size - 1) << count |
  // candidates]; 0: none.
  static constexpr size_t kMaxTabled = 8;
  std::vector<uint8_t> best;

  LinkScore Score(size_t a, size_t b) const { return scores[a * count + b]; }
  int64_t MbPerS(size_t a, size_t b) const { return mb_per_s[a * count + b]; }
  KindMask MaskOf(const DeviceSet& devices) const;
  DeviceSet SetOf(KindMask mask) const;
  KindMask NicMaskOf(const DeviceSet& devices) const;
  DeviceSet NicSetOf(KindMask mask) const;
};

class DeviceLayout {
 public:
  explicit DeviceLayout(LayoutKey key);
  DeviceLayout(const DeviceLayout&) = delete;
  DeviceLayout& operator=(const DeviceLayout&) = delete;

  // Null if the node has no devices of that kind, or more than kMaxLaidOut, or their links are
  // unknown.
  const KindLayout* Of(const std::string& kind) const;
  const LayoutKey& key() const { return key_; }

 private:
  const LayoutKey key_;
  std::vector<KindLayout> kinds_;
};

// The kind of device to which proximity of others is measured.
inline constexpr char kNicKind[] = "nic";

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_DEVICE_LAYOUT_H_
