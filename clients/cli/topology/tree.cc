#include "clients/cli/topology/tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr size_t kMaxErrorsTold = 20;

// `"s1" (topology.conf:3:1)`.
std::string Title(const NodeGroup& group) {
  const std::string place = group.place.text();
  return absl::StrCat("\"", group.id, "\"", place.empty() ? "" : " (", place,
                      place.empty() ? "" : ")");
}

// One kind or several: groups of different kinds never meet.
class Trees {
 public:
  explicit Trees(Imported* imported) : groups_(imported->groups), warnings_(imported->warnings) {}

  absl::Status Make() {
    for (const auto step : {&Trees::Index, &Trees::LinkChildren, &Trees::RefuseCycles,
                            &Trees::SetTiers, &Trees::ClaimNodes}) {
      (this->*step)();
      if (!errors_.empty()) return absl::InvalidArgumentError(ErrorText());
    }
    DropEmpty();
    CheckBounds();
    return errors_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(ErrorText());
  }

 private:
  using Key = std::pair<std::string, std::string>;

  void Error(std::string text) { errors_.push_back(std::move(text)); }
  std::string ErrorText() {
    const size_t left_out = errors_.size() - std::min(errors_.size(), kMaxErrorsTold);
    errors_.resize(errors_.size() - left_out);
    if (left_out > 0) errors_.push_back(absl::StrCat("and ", left_out, " more errors"));
    return absl::StrJoin(errors_, "\n");
  }

  // In the order of the result, so that no later step depends on that of the source.
  void Index() {
    std::sort(groups_.begin(), groups_.end(), [](const NodeGroup& a, const NodeGroup& b) {
      return std::tie(a.kind, a.id, a.place.file, a.place.position) <
             std::tie(b.kind, b.id, b.place.file, b.place.position);
    });
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].id.empty()) Error(absl::StrCat(Title(groups_[i]), ": a name is missing"));
      const auto inserted = by_id_.emplace(Key(groups_[i].kind, groups_[i].id), i);
      if (inserted.second) continue;
      Error(absl::StrCat(Title(groups_[i]),
                         " is already defined: ", Title(groups_[inserted.first->second])));
    }
    parents_.assign(groups_.size(), kNone);
  }

  void LinkChildren() {
    for (size_t i = 0; i < groups_.size(); ++i) {
      NodeGroup& group = groups_[i];
      std::sort(group.children.begin(), group.children.end());
      group.children.erase(std::unique(group.children.begin(), group.children.end()),
                           group.children.end());
      for (const std::string& id : group.children) LinkChild(i, id);
    }
  }
  void LinkChild(size_t parent, const std::string& id) {
    const auto found = by_id_.find(Key(groups_[parent].kind, id));
    if (found == by_id_.end()) {
      Error(absl::StrCat(Title(groups_[parent]), " has a child \"", id, "\" that does not exist"));
      return;
    }
    size_t& present = parents_[found->second];
    if (present == kNone) {
      present = parent;
      return;
    }
    Error(absl::StrCat(Title(groups_[found->second]), " is below both ", Title(groups_[present]),
                       " and ", Title(groups_[parent])));
  }

  // As each group has one parent, a group is on a cycle exactly if going up from it comes back to
  // it. Every group is visited once; `walk_of` is the walk that visited it.
  void RefuseCycles() {
    std::vector<size_t> walk_of(groups_.size(), kNone);
    for (size_t start = 0; start < groups_.size(); ++start) {
      size_t at = start;
      while (at != kNone && walk_of[at] == kNone) {
        walk_of[at] = start;
        at = parents_[at];
      }
      if (at != kNone && walk_of[at] == start) Error(CycleText(at));
    }
  }
  std::string CycleText(size_t on_it) const {
    constexpr int kShown = 8;
    std::string text = absl::StrCat("a cycle: ", Title(groups_[on_it]));
    size_t at = parents_[on_it];
    for (int shown = 1; at != on_it && shown < kShown; ++shown, at = parents_[at])
      absl::StrAppend(&text, " is below ", Title(groups_[at]));
    return absl::StrCat(text, at == on_it ? "" : " ...", " is below \"", groups_[on_it].id, "\"");
  }

  // Children before parents: a group is ready when all its children are done.
  void SetTiers() {
    std::vector<size_t> waits_for(groups_.size(), 0);
    for (const size_t parent : parents_) {
      if (parent != kNone) ++waits_for[parent];
    }
    std::vector<int> above_children(groups_.size(), 1);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (waits_for[i] == 0 && groups_[i].children.empty()) order_.push_back(i);
    }
    for (size_t done = 0; done < order_.size(); ++done) {
      const size_t i = order_[done];
      SetTier(above_children[i], &groups_[i]);
      if (parents_[i] == kNone) continue;
      int& above = above_children[parents_[i]];
      above = std::max(above, groups_[i].tier + 1);
      if (--waits_for[parents_[i]] == 0) order_.push_back(parents_[i]);
    }
  }
  void SetTier(int least, NodeGroup* group) {
    if (group->tier == 0) group->tier = least;
    if (group->tier < least) {
      Error(absl::StrCat(Title(*group), " has tier ", group->tier, " but a child of tier ",
                         least - 1));
    }
    if (group->tier > kMaxTiers)
      Error(absl::StrCat(Title(*group), " has more than ", kMaxTiers, " tiers"));
    if (group->tier_name.empty()) group->tier_name = DefaultTierName(group->tier);
  }

  // Leaves first, so that nodes that a group repeats are already claimed by the groups below.
  void ClaimNodes() {
    absl::flat_hash_map<Key, size_t> claims;
    for (const size_t i : order_) {
      std::vector<std::string>& nodes = groups_[i].nodes;
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      std::vector<std::string> own;
      for (std::string& node : nodes) {
        const auto inserted = claims.emplace(Key(groups_[i].kind, node), i);
        if (inserted.second) {
          own.push_back(std::move(node));
        } else if (!IsAbove(i, inserted.first->second)) {
          Error(absl::StrCat("node \"", node, "\" is both in ",
                             Title(groups_[inserted.first->second]), " and in ",
                             Title(groups_[i])));
        }
      }
      nodes = std::move(own);
    }
    if (claims.size() > kMaxGroupedNodes) {
      Error(absl::StrCat(claims.size(), " nodes are more than the ", kMaxGroupedNodes, " allowed"));
    }
  }
  bool IsAbove(size_t upper, size_t lower) const {
    while (lower != kNone && lower != upper) lower = parents_[lower];
    return lower == upper;
  }

  void DropEmpty() {
    std::vector<bool> holds(groups_.size(), false);
    for (const size_t i : order_) {
      holds[i] = holds[i] || !groups_[i].nodes.empty();
      if (holds[i] && parents_[i] != kNone) holds[parents_[i]] = true;
    }
    std::vector<std::string> empty;
    std::vector<NodeGroup> kept;
    for (size_t i = 0; i < groups_.size(); ++i) {
      std::vector<std::string>& children = groups_[i].children;
      const auto is_empty = [&](const std::string& id) {
        return !holds[by_id_.at(Key(groups_[i].kind, id))];
      };
      children.erase(std::remove_if(children.begin(), children.end(), is_empty), children.end());
      if (!holds[i]) empty.push_back(groups_[i].id);
    }
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (holds[i]) kept.push_back(std::move(groups_[i]));
    }
    std::stable_sort(kept.begin(), kept.end(), [](const NodeGroup& a, const NodeGroup& b) {
      return std::tie(a.kind, a.tier) < std::tie(b.kind, b.tier);
    });
    groups_ = std::move(kept);
    if (empty.empty()) return;
    warnings_.push_back(
        absl::StrCat(Counted(empty.size(), "group"), " without nodes left out: ", SomeOf(empty)));
  }

  void CheckBounds() {
    if (groups_.size() > kMaxGroups)
      Error(absl::StrCat(groups_.size(), " groups are more than the ", kMaxGroups, " allowed"));
    for (const NodeGroup& group : groups_) {
      const size_t members = group.nodes.size() + group.children.size();
      if (members <= kMaxGroupMembers) continue;
      Error(absl::StrCat(Title(group), " has ", members, " members, more than the ",
                         kMaxGroupMembers, " allowed"));
    }
  }

  std::vector<NodeGroup>& groups_;
  std::vector<std::string>& warnings_;
  absl::flat_hash_map<Key, size_t> by_id_;
  std::vector<size_t> parents_;  // parallel to groups_; kNone: a root
  std::vector<size_t> order_;    // children before parents
  std::vector<std::string> errors_;
};

}  // namespace

std::string DefaultTierName(int tier) {
  constexpr const char* kNames[] = {"", "leaf", "spine", "core"};
  return tier >= 1 && tier <= 3 ? kNames[tier] : "";
}

absl::Status MakeTrees(Imported* imported) { return Trees(imported).Make(); }

}  // namespace berth
