// Turns the groups of a source into trees: one parent each, tiers that rise.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_TREE_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_TREE_H_

#include <string>

#include "absl/status/status.h"
#include "clients/cli/topology/source.h"

namespace berth {

// "leaf", "spine", "core"; "" above.
std::string DefaultTierName(int tier);

// Checks the groups of `imported` and fills in what Berth needs. Sorts them by kind, tier, id.
//  - Groups without a node below them are left out, with a warning.
//  - If the source has no tier for a group, it is one above the highest child; 1 for a leaf.
//  - A node that is listed by a group and by one below it belongs to the lower one.
// Example: root{im0, im1}, im0{leaf0{n0,n1}}, im1{} -> leaf0 tier 1, im0 tier 2, root tier 3.
// INVALID_ARGUMENT, with names and positions, for: two groups with one id, a child that does not
// exist, a second parent of a group or node, a cycle, tiers that do not rise, an exceeded limit.
absl::Status MakeTrees(Imported* imported);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_TREE_H_
