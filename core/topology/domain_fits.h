// DomainFits: how many tasks of a shape each node, and each domain of a tree, currently has room
// for. A question about a domain costs one lookup, whatever the number of nodes.
//
//   rack a {n1 2 free, n2 5 free}, tasks of 2:   n1 1, n2 2, rack a 3
//
// Kept across cycles for the most recently used shapes. Counts are updated for the nodes that
// changed since their last use, by tried and undone edits alike: O(changed nodes * depth). All are
// recounted if too many changes were missed, or when HyperNodes or nodes are added, removed or
// changed.
//
// A node counts as many tasks as amounts, devices and filters allow. Reservations and affinity,
// which only a trial placement can check, are not included. Counts are therefore an upper bound,
// and exact if neither applies.
//
// A cache: no decision, and no counted work, depends on its earlier content. Not thread-safe.
#ifndef BERTH_CORE_TOPOLOGY_DOMAIN_FITS_H_
#define BERTH_CORE_TOPOLOGY_DOMAIN_FITS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/model/state_editor.h"
#include "core/topology/tree.h"

namespace berth {

// Identifies a set of counts.
struct FitKey {
  ShapeId shape;
  bool one_per_node = false;  // at most one task of the group per node
  bool empty = false;         // as if no tasks ran anywhere, on nodes in any state
  auto operator<=>(const FitKey&) const = default;
};

// Valid until the next question, edit or change of the state.
struct FitView {
  const TopologyTree* tree = nullptr;
  absl::Span<const int32_t> of_node;    // by NodeId::value
  absl::Span<const int64_t> of_domain;  // by DomainIndex
};

class DomainFits {
 public:
  // Returns how many tasks of the shape fit on the node, at most `bound`; NodeSearch implements it.
  using Count = absl::FunctionRef<int64_t(NodeId node, int64_t bound)>;
  static constexpr size_t kMaxKept = 32;

  // `version` is that of the trees that contain `tree`.
  FitView Of(StateEditor& editor, const ClusterState& state, const TopologyTree& tree,
             uint64_t trees_version, const FitKey& key, Count count);

 private:
  struct Sums {
    const TopologyTree* tree = nullptr;
    std::vector<int64_t> of_domain;
  };
  struct Counts {
    uint64_t position = 0;  // in the log of changed nodes
    uint64_t trees_version = 0;
    uint64_t last_asked = 0;
    std::vector<int32_t> of_node;
    std::map<std::string, Sums> by_kind;
  };

  void CountAll(const ClusterState& state, const FitKey& key, Count count, Counts* counts);
  void Recount(const ClusterState& state, const FitKey& key, NodeId node, Count count,
               Counts* counts);
  void DropOldest();

  std::map<FitKey, Counts> counts_;
  std::vector<NodeId> changed_;
  uint64_t asked_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_DOMAIN_FITS_H_
