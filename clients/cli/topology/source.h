// Input and output of importers: groups of nodes as in the source, before they get tiers and names
// of Berth (tree.h, names.h).
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_SOURCE_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_SOURCE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/yaml_tree.h"

namespace berth {

// Limits of one import. The server also limits groups and members (ApplyHyperNodes).
inline constexpr size_t kMaxTopologyBytes = size_t{256} << 20;  // of one file; YAML, JSON: 16 MiB
inline constexpr size_t kMaxGroups = 20'000;
inline constexpr size_t kMaxGroupMembers = 10'000;
inline constexpr size_t kMaxGroupedNodes = 200'000;
inline constexpr size_t kMaxExpandedNames = 500'000;  // after expanding the brackets of one file
inline constexpr int kMaxTiers = 32;

inline constexpr char kNetworkKind[] = "network";
inline constexpr char kNvlinkKind[] = "nvlink";

// A position in a source; line 0: unknown.
struct SourcePlace {
  std::string file;
  YamlPosition position;
  // "topology.conf:3:1", or "" without a line.
  std::string text() const;
};

// Nodes, or smaller groups, that a switch, a block or a label of the source joins.
struct NodeGroup {
  std::string kind;  // "" = that of the import
  std::string id;    // from the source: unique within a kind, the same in the next run
  // `id` was not chosen as a name of the whole group: it is one of its parts, or a number that may
  // change. Such a group keeps the name of the HyperNode that it overlaps most.
  bool opaque = false;
  std::string base_name;  // the name is made from this; "" = from id
  int tier = 0;           // 0 = one above its highest child
  std::string tier_name;  // "" = that of DefaultTierName
  std::vector<std::string> nodes;
  std::vector<std::string> children;  // ids of groups of the same kind
  int64_t bandwidth_gbps = 0;         // of a member's link to it; 0 = unknown
  SourcePlace place;
};

struct Imported {
  std::vector<NodeGroup> groups;
  std::vector<std::string> warnings;  // what was left out, and why
};

struct SourceText {
  std::string name;  // for messages: the file's
  std::string text;
};

// A node as the server lists it.
struct LabelledNode {
  std::string name;
  std::map<std::string, std::string> labels;
};

struct ImportInput {
  std::vector<SourceText> texts;
  std::vector<LabelledNode> nodes;      // of the cluster, by name; empty if the format needs none
  std::vector<std::string> labels;      // keys, coarsest first
  std::vector<std::string> topologies;  // selected by name from a file
  std::vector<SourceText> ports;        // "node,guid" lines
  bool known_nodes_only = false;        // leave out hosts that are not in `nodes`
};

// An importer. INVALID_ARGUMENT with file and line of every error.
using ReadFormat = absl::StatusOr<Imported> (*)(const ImportInput& input);

// "1 node", "2 nodes".
std::string Counted(size_t count, absl::string_view one);

// "a, b, c and 5 more".
std::string SomeOf(const std::vector<std::string>& names);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_SOURCE_H_
