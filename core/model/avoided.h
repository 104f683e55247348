// Nodes that one job is kept out of for a while, although others may use them: a device failed
// there while a task of the job had it. The device itself is not given to anybody while it is
// unhealthy; this is for devices that look healthy again soon, and for their neighbours.
#ifndef BERTH_CORE_MODEL_AVOIDED_H_
#define BERTH_CORE_MODEL_AVOIDED_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "core/model/ids.h"

namespace berth {

struct AvoidedNode {
  NodeId node;
  Time until = absl::InfinitePast();
  bool operator==(const AvoidedNode&) const = default;
};
using AvoidedNodes = std::vector<AvoidedNode>;  // by node, each once

inline constexpr size_t kMaxAvoidedNodes = 64;  // of one job; beyond, the earliest end is dropped
inline constexpr Duration kAvoidFor = absl::Hours(24);

inline bool Avoids(const AvoidedNodes& avoided, NodeId node) {
  const auto at =
      std::lower_bound(avoided.begin(), avoided.end(), node,
                       [](const AvoidedNode& entry, NodeId before) { return entry.node < before; });
  return at != avoided.end() && at->node == node;
}

// True if they are in order, each once, and not too many.
inline bool WellFormed(const AvoidedNodes& avoided) {
  const auto not_before = [](const AvoidedNode& a, const AvoidedNode& b) {
    return !(a.node < b.node);
  };
  return avoided.size() <= kMaxAvoidedNodes &&
         std::adjacent_find(avoided.begin(), avoided.end(), not_before) == avoided.end();
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_AVOIDED_H_
