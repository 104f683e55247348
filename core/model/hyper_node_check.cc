// The resulting state is read through the changes: a name refers to the changed specification if
// there is one, to nothing if it is deleted, else to the present one. The cost therefore depends on
// the changes, not on the tree.
#include "core/model/hyper_node_check.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/model/apply_internal.h"

namespace berth {
namespace {

using apply_internal::Invalid;
using apply_internal::Refused;

absl::Status CheckMembers(const HyperNodeSpec& spec, const std::string& whose) {
  if (spec.members.size() > kMaxHyperNodeMembers) {
    return Invalid(whose, " has ", spec.members.size(), " members; at most ", kMaxHyperNodeMembers);
  }
  absl::flat_hash_set<absl::string_view> children;
  for (const HyperNodeMember& member : spec.members) {
    if (member.text.empty()) return Invalid(whose, ": a member without a selector");
    if (member.type == HyperNodeMember::Type::kNode) continue;
    if (member.match != HyperNodeMember::Match::kExact) {
      return Invalid(whose, ": HyperNodes are members by their exact names");
    }
    if (!children.insert(member.text).second) {
      return Invalid(whose, " names ", member.text, " twice");
    }
  }
  return absl::OkStatus();
}

// Checks one specification alone.
absl::Status CheckSpec(const HyperNodeSpec& spec) {
  if (spec.name.empty()) return Invalid("a HyperNode needs a name");
  const std::string whose = absl::StrCat("HyperNode ", spec.name);
  if (spec.kind.empty()) return Invalid(whose, " needs a kind");
  if (spec.tier < 1 || spec.tier > kMaxHyperNodeTier) {
    return Invalid(whose, ": its tier must be 1 to ", kMaxHyperNodeTier, ", not ", spec.tier);
  }
  if (spec.bandwidth_gbps < 0 || spec.latency_us < 0) {
    return Invalid(whose, ": bandwidth and latency must not be negative");
  }
  return CheckMembers(spec, whose);
}

class Overlay {
 public:
  Overlay(const ClusterState& state, absl::Span<const HyperNodeSpec> changed,
          absl::Span<const std::string> deleted)
      : state_(state), changed_(changed), deleted_(deleted) {
    for (const std::string& name : deleted) specs_[name] = nullptr;
    for (const HyperNodeSpec& spec : changed) specs_[spec.name] = &spec;
  }

  // Records which names the changed specifications claim.
  absl::Status AddClaims(const HyperNodeSpec& spec) {
    absl::Status status;
    ForEachChildName(spec, [&](const std::string& child) {
      const HyperNodeSpec* other = ClaimantOf(child);
      if (other != nullptr && other != &spec) {
        const auto [first, second] = std::minmax(other->name, spec.name);
        status.Update(Refused("HyperNode ", child, " is a member of ", first, " and of ", second,
                              ": one parent each"));
      }
      claims_.emplace(child, &spec);
    });
    return status;
  }

  // Follows claims upward through the spec's ancestors.
  absl::Status CheckNoCycle(const HyperNodeSpec& spec) const {
    std::string path = spec.name;
    size_t steps = 0;
    for (const HyperNodeSpec* up = ClaimantOf(spec.name); up != nullptr;
         up = ClaimantOf(up->name)) {
      path = absl::StrCat(up->name, " -> ", path);
      if (up == &spec) return Refused("HyperNodes would contain themselves: ", path);
      if (++steps > kMaxHyperNodeTier) break;  // a cycle further up, found at its start or by tiers
    }
    return absl::OkStatus();
  }

  // Checks kind and tier against the parent and the children that exist.
  absl::Status CheckLinks(const HyperNodeSpec& spec) const {
    if (const HyperNodeSpec* parent = ClaimantOf(spec.name); parent != nullptr) {
      if (auto status = CheckLink(*parent, spec); !status.ok()) return status;
    }
    absl::Status status;
    ForEachChildName(spec, [&](const std::string& name) {
      const HyperNodeSpec* child = Find(name);
      if (child != nullptr) status.Update(CheckLink(spec, *child));
    });
    return status;
  }

  // Each tier name of a kind must mean one tier.
  absl::Status CheckTierNames() const {
    std::map<std::pair<std::string, std::string>, const HyperNodeSpec*> first;
    std::map<std::pair<std::string, std::string>, int64_t> replaced;
    const auto replace = [&](absl::string_view name) {
      const HyperNode* before = state_.FindHyperNode(name);
      if (before != nullptr) ++replaced[{before->spec.kind, before->spec.tier_name}];
    };
    for (const std::string& name : deleted_) replace(name);
    for (const HyperNodeSpec& spec : changed_) {
      replace(spec.name);
      if (spec.tier_name.empty()) continue;
      const HyperNodeSpec* other =
          first.emplace(std::pair(spec.kind, spec.tier_name), &spec).first->second;
      if (other->tier == spec.tier) continue;
      return TwoTiers(spec, absl::StrCat(other->tier, " (", other->name, ")"));
    }
    for (const auto& [key, spec] : first) {
      const ClusterState::TierUse use = state_.TierNamed(key.first, key.second);
      if (use.tier == spec->tier || use.hyper_nodes <= replaced[key]) continue;
      return TwoTiers(*spec, absl::StrCat(use.tier));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status TwoTiers(const HyperNodeSpec& spec, const std::string& other) {
    return Refused("tier name ", spec.tier_name, " of kind ", spec.kind, " would mean tier ", other,
                   " and tier ", spec.tier, " (", spec.name, ")");
  }

  static absl::Status CheckLink(const HyperNodeSpec& parent, const HyperNodeSpec& child) {
    if (parent.kind != child.kind) {
      return Refused("HyperNode ", child.name, " of kind ", child.kind, " cannot be a member of ",
                     parent.name, " of kind ", parent.kind);
    }
    if (parent.tier > child.tier) return absl::OkStatus();
    return Refused("HyperNode ", child.name, " of tier ", child.tier, " cannot be a member of ",
                   parent.name, " of tier ", parent.tier, ": tiers rise from member to parent");
  }

  const HyperNodeSpec* Find(absl::string_view name) const {
    if (const auto found = specs_.find(name); found != specs_.end()) return found->second;
    const HyperNode* present = state_.FindHyperNode(name);
    return present == nullptr ? nullptr : &present->spec;
  }

  const HyperNodeSpec* ClaimantOf(absl::string_view name) const {
    if (const auto found = claims_.find(name); found != claims_.end()) return found->second;
    const HyperNode* present = state_.hyper_nodes().Find(state_.ClaimantOf(name));
    if (present == nullptr || specs_.contains(present->spec.name)) return nullptr;
    return &present->spec;
  }

  const ClusterState& state_;
  const absl::Span<const HyperNodeSpec> changed_;
  const absl::Span<const std::string> deleted_;
  absl::flat_hash_map<absl::string_view, const HyperNodeSpec*> specs_;   // null = deleted
  absl::flat_hash_map<absl::string_view, const HyperNodeSpec*> claims_;  // of changed ones
};

}  // namespace

absl::Status CheckHyperNodes(const ClusterState& state, absl::Span<const HyperNodeSpec> changed,
                             absl::Span<const std::string> deleted) {
  Overlay overlay(state, changed, deleted);
  absl::flat_hash_set<absl::string_view> names;
  for (const HyperNodeSpec& spec : changed) {
    if (auto status = CheckSpec(spec); !status.ok()) return status;
    if (!names.insert(spec.name).second) return Invalid("HyperNode ", spec.name, " is given twice");
    const HyperNode* before = state.FindHyperNode(spec.name);
    if (before != nullptr && before->spec.kind != spec.kind) {
      return Invalid("HyperNode ", spec.name, " is of kind ", before->spec.kind,
                     ", which cannot change");
    }
    if (auto status = overlay.AddClaims(spec); !status.ok()) return status;
  }
  for (const HyperNodeSpec& spec : changed) {
    if (auto status = overlay.CheckNoCycle(spec); !status.ok()) return status;
  }
  for (const HyperNodeSpec& spec : changed) {
    if (auto status = overlay.CheckLinks(spec); !status.ok()) return status;
  }
  return overlay.CheckTierNames();
}

}  // namespace berth
