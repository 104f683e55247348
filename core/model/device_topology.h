// How the devices of one node are connected, as its agent reports it. Devices are identified by
// their position in NodeSpec::devices. Planning derives core/devices/device_layout.h from it.
#ifndef BERTH_CORE_MODEL_DEVICE_TOPOLOGY_H_
#define BERTH_CORE_MODEL_DEVICE_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/fields.h"

namespace berth {

// Distance classes, best first; numbered as in the API. kNvlink includes XGMI.
enum class LinkClass : uint8_t { kUnknown, kNvlink, kPix, kPxb, kPhb, kNode, kSys };

// A link between two devices.
struct DeviceLink {
  LinkClass link = LinkClass::kUnknown;
  int32_t count = 0;          // number of NVLinks; 0 = unknown
  int64_t mb_per_s = 0;       // one direction, all links; 0 = the usual value for the class
  bool same_package = false;  // SYS within one socket is better than between two
  bool operator==(const DeviceLink&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceLink& v) {
    return HashFields(std::move(h), v);
  }
};

struct NumaNode {
  int32_t id = 0;
  int32_t package = -1;  // -1 = unknown
  std::string cpus;      // "0-15,32-47"
  int64_t memory_bytes = 0;
  bool operator==(const NumaNode&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const NumaNode& v) {
    return HashFields(std::move(h), v);
  }
};

inline constexpr size_t kMaxDeviceLinks = 255;
inline constexpr size_t kMaxNumaNodes = 64;

// There are few distinct links. `between` has a byte for each pair of devices: 1 + the index of its
// link in `links`, or 0 if it is unknown. Pairs are in the order (0,1) (0,2) ... (1,2) (1,3) ...
//
//   4 GPUs, two NVLink pairs:   links {NV4, SYS}   between 1 2 2 2 2 1
struct DeviceTopology {
  std::vector<DeviceLink> links;     // at most kMaxDeviceLinks
  std::string between;               // empty, or one byte per pair
  std::vector<NumaNode> numa_nodes;  // by id, at most kMaxNumaNodes
  bool Empty() const { return between.empty() && numa_nodes.empty(); }
  bool operator==(const DeviceTopology&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DeviceTopology& v) {
    return HashFields(std::move(h), v);
  }
};

constexpr size_t PairsOf(size_t devices) { return devices < 2 ? 0 : devices * (devices - 1) / 2; }
// The index of the pair a < b in DeviceTopology::between.
constexpr size_t PairIndex(size_t a, size_t b, size_t devices) {
  return a * (2 * devices - a - 1) / 2 + (b - a - 1);
}

// The link between two of `devices` devices; unknown if they are the same or it was not reported.
DeviceLink LinkBetween(const DeviceTopology& topology, size_t devices, size_t a, size_t b);

// The same for reordered devices: device i was device `from[i]` of `before`; -1: it is new, and its
// links are unknown.
DeviceTopology Reordered(const DeviceTopology& topology, size_t before, absl::Span<const int> from);

// The number of CPUs in a list such as "0-15,32-47", at most 65,536; -1 if it is malformed.
int64_t CountCpus(const std::string& cpus);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_DEVICE_TOPOLOGY_H_
