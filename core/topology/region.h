// Region: where tasks may go: of some trees, one domain each; the nodes that are in all of them.
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
  absl::InlinedVector<Part, 2> parts;  // of each tree at most one, the innermost constraint's last

  // In the domain too, which is below that of the same tree.
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
  // Nothing but that tree says where.
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
