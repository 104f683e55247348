// Computes the ring of a placed job: the links that it crosses, how often, and its speed inside
// nodes (docs/developers/network-model.md, "Links").
//
//   rack r {bandwidth 10, nodes a b}   rack s {bandwidth 10, node c}   spine {bandwidth 40, r s}
//   a job with ranks 0 on a, 1 on b, 2 on c:  a-b, b-c, c-a
//     the links of a, b and c: once each way, 10 Gb/s; those of r and s: once each way, 40 Gb/s
//
// Links are created when a ring first crosses them, and keep their bandwidth: the network of a
// replay does not change.
#ifndef BERTH_OFFLINE_REPLAY_NETWORK_MAP_H_
#define BERTH_OFFLINE_REPLAY_NETWORK_MAP_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/cluster_state.h"
#include "offline/replay/link_shares.h"
#include "offline/replay/network_model.h"

namespace berth::replay {

// Defaults for nodes and HyperNodes without figures.
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

// The devices of a task other than NICs; 1 for a task without devices.
int64_t WorkersOf(const Node& node, const Task& task);

class NetworkMap {
 public:
  explicit NetworkMap(const NetworkDefaults& defaults) : defaults_(defaults) {}

  // The ring of a job whose tasks all have a place. Adds new links to `links`.
  Ring RingOf(const ClusterState& state, const Job& job, LinkShares* links);
  // The origin of a link: "node", or the tier of its HyperNode, "tier 1" or by its name.
  const std::string& TierOf(LinkIndex link) const { return tiers_[link]; }

 private:
  // A step up a tree: the link of a node or a HyperNode to its parent.
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
  // By kind of tree, HyperNode, and, if there is none, node.
  std::map<std::pair<std::string, std::pair<HyperNodeId, NodeId>>, LinkIndex> index_;
  std::vector<std::string> tiers_;  // by link
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_NETWORK_MAP_H_
