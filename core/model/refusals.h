// A job's refused starts.
#ifndef BERTH_CORE_MODEL_REFUSALS_H_
#define BERTH_CORE_MODEL_REFUSALS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "core/model/ids.h"

namespace berth {

// Refused starts of the job since it last ran completely. Problems that the job brings along (a
// directory, a user, an image) do not heal: it fails after kMaxOwnRefusals. Faults of nodes, and
// refusals that are nobody's fault, are retried, up to kMaxRefusedStarts. Refusals of tasks beyond
// the minimum only slow its growth.
struct Refusals {
  int32_t own = 0;                    // incidents: by the job's fault
  int32_t starts = 0;                 // incidents: by the node's or nobody's fault
  int32_t spare = 0;                  // incidents of tasks beyond the minimum, by any fault
  std::vector<NodeId> nodes;          // that refused without being at fault, ascending
  Time until = absl::InfinitePast();  // `nodes` get none of its tasks before
  bool rests = false;                 // and, while it runs, it requests no place at all
  bool operator==(const Refusals&) const = default;
};
inline constexpr int32_t kMaxOwnRefusals = 2;     // incidents, or nodes in one incident
inline constexpr int32_t kMaxRefusedStarts = 16;  // in a row
inline constexpr size_t kMaxRefusingNodes = 8;    // remembered of one job

// They make the job avoid the node now.
inline bool Avoids(const Refusals& refusals, NodeId node) {
  return refusals.until != absl::InfinitePast() &&
         std::binary_search(refusals.nodes.begin(), refusals.nodes.end(), node);
}

// True if their nodes are sorted, unique and not too many, and no number is negative.
inline bool WellFormed(const Refusals& refusals) {
  const std::vector<NodeId>& nodes = refusals.nodes;
  const auto not_before = [](NodeId a, NodeId b) { return !(a < b); };
  return nodes.size() <= kMaxRefusingNodes && refusals.own >= 0 && refusals.starts >= 0 &&
         refusals.spare >= 0 &&
         std::adjacent_find(nodes.begin(), nodes.end(), not_before) == nodes.end();
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_REFUSALS_H_
