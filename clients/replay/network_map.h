// From a placed job to its ring: which links it crosses, how often, and how fast it is inside its
// nodes (docs/network-model.md, "Links").
//
//   rack r {bandwidth 10, nodes a b}   rack s {bandwidth 10, node c}   spine {bandwidth 40, r s}
//   a job with ranks 0 on a, 1 on b, 2 on c:  a-b, b-c, c-a
//     the links of a, b and c: once each way, 10 Gb/s; those of r and s: once each way, 40 Gb/s
//
// Links are made as rings first cross them and keep their bandwidth: the network of a replay does
// not change.
#ifndef BERTH_CLIENTS_REPLAY_NETWORK_MAP_H_
#define BERTH_CLIENTS_REPLAY_NETWORK_MAP_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "clients/replay/link_shares.h"
#include "clients/replay/network_model.h"
#include "core/model/cluster_state.h"

namespace berth::replay {

// Where nodes and HyperNodes do not tell.
struct NetworkDefaults {
  double node_gbps = 10;
  double uplink_gbps = kUnboundedGbps;
  double device_gbps = 96;
};

struct Ring {
  int64_t workers = 0;
  double device_gbps =
      kUnboundedGbps;               // the slowest inside a node; nothing crosses inside: infinite
  std::vector<Crossing> crossings;  // by link
};

// A task's devices other than NICs; 1 of one without.
int64_t WorkersOf(const Node& node, const Task& task);

class NetworkMap {
 public:
  explicit NetworkMap(const NetworkDefaults& defaults) : defaults_(defaults) {}

  // Of a job all of whose tasks have a place. New links are added to `links`.
  Ring RingOf(const ClusterState& state, const Job& job, LinkShares* links);
  // What a link leaves: "node", or the tier of its HyperNode, "tier 1" or by its name.
  const std::string& TierOf(LinkIndex link) const { return tiers_[link]; }

 private:
  // Of a way up a tree, from a node or a HyperNode: its link to what is above it.
  struct Up {
    HyperNodeId from;  // 0: the node
    HyperNodeId to;    // 0: the root
  };
  struct Count {
    int32_t out = 0, in = 0;
  };
  using Counts = std::map<LinkIndex, Count>;

  double InsideOf(const Node& node, const DeviceSet& devices, int64_t workers) const;
  double InsideOfKind(const Node& node, const std::string& kind, const DeviceSet& devices) const;
  void Cross(const ClusterState& state, const Node& from, const Node& to, LinkShares* links,
             Counts* counts);
  LinkIndex LinkOf(const ClusterState& state, const Node& node, const std::string& kind,
                   const Up& up, LinkShares* links);

  const NetworkDefaults defaults_;
  // By kind of tree, HyperNode, and, where that is none, node.
  std::map<std::pair<std::string, std::pair<HyperNodeId, NodeId>>, LinkIndex> index_;
  std::vector<std::string> tiers_;  // by link
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_NETWORK_MAP_H_
