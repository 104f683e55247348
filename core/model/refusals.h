// Validity of a job's refusals, from any source.
#ifndef BERTH_CORE_MODEL_REFUSALS_H_
#define BERTH_CORE_MODEL_REFUSALS_H_

#include <algorithm>
#include <vector>

#include "core/model/job.h"

namespace berth {

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
