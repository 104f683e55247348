// From groups as a source lists them to trees: one parent each, tiers that rise.
#ifndef BERTH_CLIENTS_TOPOLOGY_TREE_H_
#define BERTH_CLIENTS_TOPOLOGY_TREE_H_

#include <string>

#include "absl/status/status.h"
#include "clients/topology/source.h"

namespace berth {

// "leaf", "spine", "core"; "" above.
std::string DefaultTierName(int tier);

// Checks the groups of `imported` and fills in what Berth needs; they come out by kind, tier, id.
//  - Groups without a node below them are left out, with a warning.
//  - A group's tier, where the source says none, is one above its highest child's; 1 for a leaf.
//  - A node that a group and one below it both list is the lower one's.
// Example: root{im0, im1}, im0{leaf0{n0,n1}}, im1{} -> leaf0 tier 1, im0 tier 2, root tier 3.
// INVALID_ARGUMENT, naming the culprits with their places: two groups of one id, a child that there
// is not, a second parent of a group or node, a cycle, tiers that do not rise, a bound exceeded.
absl::Status MakeTrees(Imported* imported);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_TREE_H_
