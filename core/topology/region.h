// Region: where tasks may go. It is the intersection of domains, at most one per tree.
#ifndef BERTH_CORE_TOPOLOGY_REGION_H_
#define BERTH_CORE_TOPOLOGY_REGION_H_

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "core/topology/tree.h"

namespace berth {

struct Region {
  struct Part {
    const TopologyTree* tree = nullptr;
    DomainIndex domain = kRootDomain;
  };
  absl::InlinedVector<Part, 2> parts;  // at most one per tree, that of the innermost constraint

  // Also restricts it to the domain, which is below the region's domain of the same tree.
  Region With(const TopologyTree& tree, DomainIndex domain) const {
    Region narrowed;
    for (const Part& part : parts) {
      if (part.tree != &tree) narrowed.parts.push_back(part);
    }
    narrowed.parts.push_back({&tree, domain});
    return narrowed;
  }
  DomainIndex In(const TopologyTree& tree) const {
    for (const Part& part : parts) {
      if (part.tree == &tree) return part.domain;
    }
    return kRootDomain;
  }
  // True if only that tree restricts the region.
  bool OnlyOf(const TopologyTree& tree) const {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return part.tree == &tree; });
  }
  bool Holds(NodeId node) const {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Part& part) { return part.tree->Holds(part.domain, node); });
  }
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_REGION_H_
