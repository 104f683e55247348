// A fabric as cables between hosts and switches and between switches. Computes groups of hosts that
// are near each other.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_FABRIC_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_FABRIC_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "clients/cli/topology/source.h"

namespace berth {

inline constexpr size_t kMaxSwitches = 20'000;

// Switches are identified by persistent ids (GUIDs, names), hosts by names of nodes.
class Fabric {
 public:
  // `gbps` of one cable; 0 = unknown. Adding a cable twice does no harm.
  void AddHost(const std::string& host, const std::string& leaf_switch, int64_t gbps);
  void AddCable(const std::string& one_switch, const std::string& other_switch, int64_t gbps);
  // A host at a switch that belongs to no group. If such hosts alone outnumber the neighbour
  // switches of the switch, the switch is still a leaf switch, not a spine. A few hosts that are
  // plugged into a spine do not make it a leaf switch.
  void AddForeignHost(const std::string& at_switch);
  // The name of a switch in messages.
  void SetTitle(const std::string& id, const std::string& title);
  size_t hosts() const { return hosts_.size(); }
  size_t switches() const { return switches_.size(); }

  // Adds the groups, all opaque. Their ids are "leaf-", "spine-" .. and the smallest id of their
  // switches, or without `prefix_ids` only that id.
  //
  // Tier 1, leaf groups: hosts that share a leaf switch are in one group, and so are hosts at
  // different leaf switches if some host is at both. So a rail-optimized group, whose hosts have a
  // cable to each of its leaf switches, is one group.
  //
  // Tier k+1: switches are processed by their distance from the nearest leaf switch. Groups of tier
  // k that reach a common switch of the next distance form one group; if no two groups do, there is
  // no such tier.
  //
  // Example: hosts a, b at leaves 1 and 2; c at leaf 3; leaves 1, 2, 3 at spine 9
  //   -> leaf-1{a,b}, leaf-3{c}, spine-9{leaf-1, leaf-3}.
  //
  // The result is a tree if any two groups that form one group share a switch. Where they do not,
  // or where switches of different groups at one distance are connected to each other (rings,
  // meshes, dragonflies), no groups are built above them, and a warning names them.
  void AddGroups(bool prefix_ids, Imported* imported) const;

 private:
  friend class FabricGroups;
  struct Host {
    std::set<std::string> switches;
  };
  struct Switch {
    std::set<std::string> neighbours;
    std::map<int64_t, int> host_speeds;     // speed -> number of host cables, of known speed
    std::map<std::string, int64_t> cables;  // to a neighbour
    bool has_hosts = false;
    size_t foreign_hosts = 0;
    bool is_leaf() const { return has_hosts || foreign_hosts > neighbours.size(); }
    std::string title;
  };
  std::map<std::string, Host> hosts_;
  std::map<std::string, Switch> switches_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_FABRIC_H_
