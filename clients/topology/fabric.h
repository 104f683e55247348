// A fabric as cables: hosts at switches, switches at switches. From it, groups of hosts that are
// near each other.
#ifndef BERTH_CLIENTS_TOPOLOGY_FABRIC_H_
#define BERTH_CLIENTS_TOPOLOGY_FABRIC_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "clients/topology/source.h"

namespace berth {

inline constexpr size_t kMaxSwitches = 20'000;

// Switches go by ids that last (GUIDs, names), hosts by the names of nodes.
class Fabric {
 public:
  // `gbps` of one cable; 0 = not known. Saying the same cable twice does no harm.
  void AddHost(const std::string& host, const std::string& leaf_switch, int64_t gbps);
  void AddCable(const std::string& one_switch, const std::string& other_switch, int64_t gbps);
  // A host at a switch that counts for no group. Where these alone are more than the switches that
  // it is joined to, the switch is a leaf switch all the same, and no spine; a few hosts that
  // were plugged into a spine make no leaf switch of it.
  void AddForeignHost(const std::string& at_switch);
  // What people call a switch, for messages.
  void SetTitle(const std::string& id, const std::string& title);
  size_t hosts() const { return hosts_.size(); }
  size_t switches() const { return switches_.size(); }

  // Adds the groups, all opaque, their ids "leaf-", "spine-" .. and the smallest id of their
  // switches, or without `prefix_ids` only that id.
  //
  // Tier 1, leaf groups: hosts that share a leaf switch are in one, and so are hosts at different
  // leaf switches when some host is at both. A rail-optimised group, whose hosts have a cable to
  // each of its leaf switches, so is one group.
  //
  // Tier k+1: switches are taken by their distance from the nearest leaf switch. Groups of tier k
  // that reach one switch of the next distance are together; where no two groups anywhere are,
  // there is no such tier.
  //
  // Example: hosts a, b at leaves 1 and 2; c at leaf 3; leaves 1, 2, 3 at spine 9
  //   -> leaf-1{a,b}, leaf-3{c}, spine-9{leaf-1, leaf-3}.
  //
  // It is a tree while any two groups of a tier that are together share a switch. Where they do
  // not, or where switches of different groups of one distance are joined to each other (rings,
  // meshes, dragonflies), nothing is built above them, and a warning says so with their names.
  void AddGroups(bool prefix_ids, Imported* imported) const;

 private:
  friend class FabricGroups;
  struct Host {
    std::set<std::string> switches;
  };
  struct Switch {
    std::set<std::string> neighbours;
    std::map<int64_t, int> host_speeds;     // speed -> how many hosts' cables, of known speed
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

#endif  // BERTH_CLIENTS_TOPOLOGY_FABRIC_H_
