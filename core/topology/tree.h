// TopologyTree: the HyperNodes of one kind and their nodes, laid out depth first, so that
// everything below a domain is one range of domains and one range of nodes.
//
//   spine s { rack a {n1 n2}  rack b {n3} }   n4 in no HyperNode of the kind
//
//   domains   0 root   1 s   2 a   3 b            below s: domains 1 to 3, nodes n1 n2 n3
//   nodes     n4 n1 n2 n3                         a node's position is its place in this list
//
// Order: first the nodes that joined a domain directly, by name, then its child domains, by name.
// This is the order of ranks, and the same after a load as after a fold. Index 0 is the implicit
// root, above every tier: it contains what is in no HyperNode of the kind. A tier above the highest
// existing one means the root.
//
// A cache of the state at one topology_version(). Not thread-safe.
#ifndef BERTH_CORE_TOPOLOGY_TREE_H_
#define BERTH_CORE_TOPOLOGY_TREE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"

namespace berth {

// Index of a domain in its tree; 0 is the root. Depth first: a domain precedes those below it.
using DomainIndex = uint32_t;
inline constexpr DomainIndex kRootDomain = 0;
inline constexpr int32_t kRootTier = std::numeric_limits<int32_t>::max();

struct Domain {
  HyperNodeId id;  // 0: the root
  int32_t tier = kRootTier;
  DomainIndex parent = kRootDomain;  // for the root: itself
  DomainIndex end = 0;               // [own index, end): the domain and those below it
  // Positions of nodes: [first_node, own_end) joined it directly, [first_node, end_node) all below.
  uint32_t first_node = 0, own_end = 0, end_node = 0;
  bool degraded = false;  // it, or a domain above it

  uint32_t size() const { return end_node - first_node; }
  bool leaf(DomainIndex own) const { return end == own + 1; }
};

class TopologyTree {
 public:
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

  TopologyTree(const ClusterState& state, absl::string_view kind);

  const std::string& kind() const { return kind_; }
  const std::vector<Domain>& domains() const { return domains_; }
  const Domain& At(DomainIndex domain) const { return domains_[domain]; }
  // All nodes of the cluster.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  absl::Span<const NodeId> NodesBelow(DomainIndex domain) const {
    return {nodes_.data() + At(domain).first_node, At(domain).size()};
  }
  absl::Span<const NodeId> NodesOf(DomainIndex domain) const {  // joined it directly
    return {nodes_.data() + At(domain).first_node, At(domain).own_end - At(domain).first_node};
  }
  // kNowhere: not a node of the cluster.
  uint32_t PositionOf(NodeId node) const {
    return node.value < positions_.size() ? positions_[node.value] : kNowhere;
  }
  // The lowest domain that contains the node.
  DomainIndex LowestOf(NodeId node) const { return lowest_[PositionOf(node)]; }
  bool Holds(DomainIndex domain, NodeId node) const {
    const uint32_t at = PositionOf(node);
    return at >= At(domain).first_node && at < At(domain).end_node;
  }
  bool Holds(DomainIndex domain, DomainIndex below) const {
    return below >= domain && below < At(domain).end;
  }
  // The lowest domain that contains both.
  DomainIndex Common(DomainIndex a, DomainIndex b) const;
  // The highest domain of at most that tier that contains the node; the root if the tier is above
  // the highest. nullopt if there is none.
  std::optional<DomainIndex> DomainAt(NodeId node, int32_t tier) const;
  std::optional<DomainIndex> Find(HyperNodeId id) const;

  // Ascending, unique, without the root's. Empty: no HyperNode has the kind.
  const std::vector<int32_t>& tiers() const { return tiers_; }
  std::optional<int32_t> TierOf(absl::string_view tier_name) const;
  // "rack" or "tier 1"; "the cluster" for the root's.
  std::string TierName(int32_t tier) const;
  bool any_degraded() const { return any_degraded_; }

 private:
  struct Members;  // which objects joined which domain
  void Add(const ClusterState& state, const Members& members, HyperNodeId id, DomainIndex parent);
  void AddNodes(const ClusterState& state, std::vector<NodeId> nodes, DomainIndex domain);

  const std::string kind_;
  std::vector<Domain> domains_;
  std::vector<NodeId> nodes_;
  std::vector<DomainIndex> lowest_;                      // by position
  std::vector<uint32_t> positions_;                      // by node id
  absl::flat_hash_map<HyperNodeId, DomainIndex> index_;  // never iterated
  std::vector<int32_t> tiers_;
  std::map<std::string, int32_t, std::less<>> tier_names_;
  bool any_degraded_ = false;
};

// The trees of all kinds. Each is built on first use and kept until HyperNodes or nodes are added,
// removed or changed.
class TopologyTrees {
 public:
  // Null if no HyperNode has the kind. Valid until the state's topology or nodes change.
  const TopologyTree* Of(const ClusterState& state, absl::string_view kind);
  // Changes whenever trees are rebuilt.
  uint64_t version() const { return version_; }

 private:
  std::map<std::string, std::unique_ptr<TopologyTree>, std::less<>> trees_;
  uint64_t version_ = 0;
  uint64_t topology_version_ = 0;
  NodeId next_node_;
  size_t nodes_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_TREE_H_
