// What must hold of a job's refusals, wherever they come from.
#ifndef BERTH_CORE_MODEL_REFUSALS_H_
#define BERTH_CORE_MODEL_REFUSALS_H_

#include <algorithm>
#include <vector>

#include "core/model/job.h"

namespace berth {

// Their nodes are in order, each once, and not too many; nothing is negative.
inline bool WellFormed(const Refusals& refusals) {
  const std::vector<NodeId>& nodes = refusals.nodes;
  const auto not_before = [](NodeId a, NodeId b) { return !(a < b); };
  return nodes.size() <= kMaxRefusingNodes && refusals.own >= 0 && refusals.starts >= 0 &&
         refusals.spare >= 0 &&
         std::adjacent_find(nodes.begin(), nodes.end(), not_before) == nodes.end();
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_REFUSALS_H_
