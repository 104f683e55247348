// How the capacity of one node is divided at a moment, so that the parts add up exactly:
//   total + overcommitted = held + reserved + free + fragmented + cordoned + down + unhealthy
//
//   8 GPUs, 2 held, 1 nominated, 1 unhealthy; the node has tasks
//   total 8, held 2, reserved 1, unhealthy 1, fragmented 4
//   the same node, silent                     total 8, held 2, down 6
#ifndef BERTH_CORE_HISTORY_CAPACITY_SPLIT_H_
#define BERTH_CORE_HISTORY_CAPACITY_SPLIT_H_

#include <vector>

#include "absl/types/span.h"
#include "core/history/meter.h"
#include "core/history/usage_keys.h"
#include "core/model/node.h"
#include "core/model/resources.h"

namespace berth {

struct DeviceKey {
  ResourceKind kind;
  ModelId model;
  auto operator<=>(const DeviceKey&) const = default;
};

struct CapacityShare {
  DeviceKey of;
  CapacityParts parts{};
  bool operator==(const CapacityShare&) const = default;
};
using CapacitySplit = std::vector<CapacityShare>;  // by kind and model

// Uses of the node its spec, status and sums, its tasks, and of its capacity what is not devices.
// `devices`: parallel to Node::spec.devices.
CapacitySplit SplitCapacity(const Node& node, absl::Span<const DeviceKey> devices);

// What some amounts of a node are: those of devices by model. `use` is the part that is devices.
struct DividedAmount {
  DeviceKey of;
  int64_t amount = 0;
};
std::vector<DividedAmount> DivideAmounts(const Resources& amounts, const DeviceUse& use,
                                         absl::Span<const DeviceKey> devices);

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_CAPACITY_SPLIT_H_
