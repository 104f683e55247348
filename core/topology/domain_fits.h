// DomainFits: how many tasks of a shape each node, and each domain of a tree, has room for now. So
// a question about a domain is one look, whatever the number of nodes.
//
//   rack a {n1 2 free, n2 5 free}, tasks of 2:   n1 1, n2 2, rack a 3
//
// Kept from cycle to cycle for the shapes asked for last. Counts follow the nodes that changed
// since they were last asked for, tried edits and undone ones alike: O(changed nodes * depth); all
// are counted anew if too many changes were missed, or when HyperNodes or nodes come, go or change.
//
// A node counts as many tasks as amounts, devices and filters grant. What only a try can tell is
// not in it: what reservations keep, tasks near or apart. So counts are an upper bound, and exact
// where none of these is in play.
//
// A cache: no decision, and no count of work, depends on what it held before. No thread safety.
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

// What is counted.
struct FitKey {
  ShapeId shape;
  bool one_per_node = false;  // its group keeps apart from itself
  bool empty = false;         // as if nothing ran anywhere, on nodes of any state
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
  // Tasks of the shape on that node, at most so many: NodeSearch says it.
  using Count = absl::FunctionRef<int64_t(NodeId node, int64_t bound)>;
  static constexpr size_t kMaxKept = 32;

  // `tree` is of the trees whose version that is.
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
