// HyperNodes: performance domains (NVLink domain, rack, rail group, pod, spine), as stored by the
// scheduler. docs/operators/topology.md.
#ifndef BERTH_CORE_MODEL_HYPER_NODE_H_
#define BERTH_CORE_MODEL_HYPER_NODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/model/ids.h"

namespace berth {

// The default tree of constraints and HyperNodes that name none.
inline constexpr char kNetworkKind[] = "network";

// Limits of one HyperNode; the API has the same.
inline constexpr int32_t kMaxHyperNodeTier = 100;
inline constexpr size_t kMaxHyperNodeMembers = 10'000;

// One line of HyperNodeSpec::members, as written. The core reads only exact names of HyperNodes;
// NodesJoined and NodesLeft list the nodes that the other lines select.
struct HyperNodeMember {
  enum class Type : uint8_t { kNode, kHyperNode };
  enum class Match : uint8_t { kExact, kRegex, kLabel };  // HyperNodes: kExact only
  Type type = Type::kNode;
  Match match = Match::kExact;
  std::string text;  // a name; RE2, the whole name; "key=value", several joined by ","
  bool operator==(const HyperNodeMember&) const = default;
};

enum class DomainHealth : uint8_t { kOk, kDegraded };

// Valid by construction: checked before it becomes an event (server/planning/membership.h).
struct HyperNodeSpec {
  std::string name;
  std::string kind = kNetworkKind;
  int32_t tier = 1;       // 1 = closest; above that of every member HyperNode
  std::string tier_name;  // such as "rack"; means the same tier within a kind; may be empty
  std::vector<HyperNodeMember> members;
  int64_t bandwidth_gbps = 0;  // of a member's uplink; 0 = unknown
  int64_t latency_us = 0;
  DomainHealth health = DomainHealth::kOk;
  std::string health_reason;
  std::string source;  // owner: empty = created by hand, else "import/NAME" or "agents"
  bool operator==(const HyperNodeSpec&) const = default;
};

struct HyperNode {
  HyperNodeId id;
  HyperNodeSpec spec;
  uint64_t revision = 0;
  // Derived.
  HyperNodeId parent;                 // 0 = the root
  std::vector<HyperNodeId> children;  // sorted by name
  std::vector<NodeId> nodes;          // that joined it directly, not below it; ascending
};

enum class TopologyMode : uint8_t { kNone, kHard, kSoft };

// Visits the names of the HyperNodes among its members, as written.
template <class Visit>
void ForEachChildName(const HyperNodeSpec& spec, Visit&& visit) {
  for (const HyperNodeMember& member : spec.members) {
    if (member.type == HyperNodeMember::Type::kHyperNode) visit(member.text);
  }
}

// For a job, group or partition: its tasks stay inside one HyperNode of the kind.
struct TopologyConstraint {
  TopologyMode mode = TopologyMode::kNone;
  int32_t highest_tier = 0;       // 0: see highest_tier_name; neither: any tier, including the root
  std::string highest_tier_name;  // resolved at placement
  std::string kind = kNetworkKind;
  Duration patience;  // soft: how long it waits for a better tier
  bool Any() const { return mode != TopologyMode::kNone; }
  bool operator==(const TopologyConstraint&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const TopologyConstraint& v) {
    return HashFields(std::move(h), v);
  }
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_HYPER_NODE_H_
