#include "core/topology/scope.h"

#include <algorithm>

#include "core/engine/search/node_search.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// The node where it runs, and stays, or will run; 0: none.
NodeId PlaceOf(const Task& task) {
  if (task.moves) return task.next_node;
  const bool stays = Occupies(task.state) && !Releasing(task);
  return stays || Reserves(task.state) ? task.node : NodeId{};
}

// Limits the tier to that of the root, one above the highest.
int32_t AtMost(const TopologyTree* tree, int32_t tier) {
  return tree != nullptr && tier > tree->tiers().back() ? kRootTier : tier;
}

bool IsPatient(const TopologyConstraint& says) {
  return says.mode == TopologyMode::kSoft && says.patience > absl::ZeroDuration();
}

// Checks one scope, tasks [begin, end), including the new placements.
bool KeepsScope(const ClusterState& state, TopologyTrees& trees, const Job& job,
                const TopologyConstraint& says, uint32_t begin, uint32_t end,
                const std::vector<NodeId>& placed) {
  const ScopeRule rule = RuleOf(state, trees, says, false);
  if (rule.mode != TopologyMode::kHard) return true;
  std::optional<DomainIndex> pin, all;
  const auto add = [&](NodeId node, std::optional<DomainIndex>* to) {
    const DomainIndex lowest = rule.tree->LowestOf(node);
    *to = to->has_value() ? rule.tree->Common(**to, lowest) : lowest;
  };
  for (uint32_t task = begin; task < end; ++task) {
    if (placed[task] != NodeId{}) {
      if (!rule.Possible() || rule.tree->PositionOf(placed[task]) == TopologyTree::kNowhere) {
        return false;
      }
      add(placed[task], &all);
      continue;
    }
    if (!rule.Possible()) continue;
    const NodeId node = PlaceOf(job.tasks[task]);
    if (rule.tree->PositionOf(node) != TopologyTree::kNowhere) add(node, &pin);
  }
  if (!all.has_value()) return true;
  if (pin.has_value()) all = rule.tree->Common(*pin, *all);
  return rule.tree->At(*all).tier <= rule.highest || all == pin;
}

void SplitIntoParts(const Job& job, const Group& group, ScopeNeed* need) {
  const auto size = static_cast<uint32_t>(group.partition_size);
  for (uint32_t task : need->tasks) {
    const uint32_t begin = group.first_task + (task - group.first_task) / size * size;
    if (need->parts.empty() || need->parts.back().begin != begin) {
      need->parts.push_back({.begin = begin, .end = begin + size, .begun = false, .tasks = {}});
    }
    need->parts.back().tasks.push_back(task);
  }
  for (PartNeed& part : need->parts) {
    part.begun = part.tasks.size() < size;
    for (uint32_t task = part.begin; task < part.end && part.begun; ++task) {
      if (job.tasks[task].state != TaskState::kPending) break;
      if (task + 1 == part.end) part.begun = false;  // it has no place yet
    }
  }
}

void AddNeed(const UnitNeed& need, std::vector<UnitNeed>* needs) {
  if (need.units == 0) return;
  for (UnitNeed& known : *needs) {
    if (known.fits != need.fits || !(known.unit == need.unit)) continue;
    known.units += need.units;
    return;
  }
  needs->push_back(need);
}

}  // namespace

bool HasPatience(const Job& job) {
  if (IsPatient(*job.topology)) return true;
  return std::any_of(job.groups.begin(), job.groups.end(), [](const Group& group) {
    return IsPatient(group.topology) || IsPatient(group.partition_topology);
  });
}

ScopeRule RuleOf(const ClusterState& state, TopologyTrees& trees, const TopologyConstraint& says,
                 bool harden) {
  ScopeRule rule;
  rule.mode = harden && IsPatient(says) ? TopologyMode::kHard : says.mode;
  if (rule.mode == TopologyMode::kNone) return rule;
  rule.tree = trees.Of(state, says.kind);
  if (says.highest_tier > 0) rule.highest = AtMost(rule.tree, says.highest_tier);
  if (says.highest_tier > 0 || says.highest_tier_name.empty() || rule.tree == nullptr) return rule;
  const std::optional<int32_t> tier = rule.tree->TierOf(says.highest_tier_name);
  rule.unknown_tier = !tier.has_value();
  rule.highest = tier.value_or(kRootTier);
  return rule;
}

std::optional<DomainIndex> PinOf(const TopologyTree& tree, const Job& job, uint32_t begin,
                                 uint32_t end) {
  std::optional<DomainIndex> pin;
  for (uint32_t index = begin; index < end; ++index) {
    const NodeId node = PlaceOf(job.tasks[index]);
    if (tree.PositionOf(node) == TopologyTree::kNowhere) continue;
    const DomainIndex lowest = tree.LowestOf(node);
    pin = pin.has_value() ? tree.Common(*pin, lowest) : lowest;
    if (*pin == kRootDomain) break;
  }
  return pin;
}

bool KeepsTopology(const ClusterState& state, TopologyTrees& trees, const Job& job,
                   absl::Span<const Placement> places) {
  if (!HasTopology(job)) return true;
  std::vector<NodeId> placed(job.tasks.size());
  for (const Placement& place : places) placed[place.task] = place.node;
  const auto tasks = static_cast<uint32_t>(job.tasks.size());
  if (!KeepsScope(state, trees, job, *job.topology, 0, tasks, placed)) return false;
  for (const Group& group : job.groups) {
    const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
    if (!KeepsScope(state, trees, job, group.topology, group.first_task, end, placed)) return false;
    const auto size = static_cast<uint32_t>(group.partition_size);
    for (uint32_t begin = group.first_task; size > 0 && begin < end; begin += size) {
      const TopologyConstraint& says = group.partition_topology;
      if (!KeepsScope(state, trees, job, says, begin, begin + size, placed)) return false;
    }
  }
  return true;
}

std::vector<ScopeNeed> ScopeNeedsOf(const Job& job, const JobNeeds& needs, uint32_t from) {
  std::vector<ScopeNeed> scopes;
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    const uint32_t end = group.first_task + static_cast<uint32_t>(group.replicas);
    uint32_t task = group.first_task;
    if (from < end) task = std::max(task, from);
    ScopeNeed scope{.group = need.group, .tasks = {}, .parts = {}};
    scope.tasks.reserve(static_cast<size_t>(need.count));
    for (; task < end && scope.tasks.size() < static_cast<size_t>(need.count); ++task) {
      if (job.tasks[task].state == TaskState::kPending) scope.tasks.push_back(task);
    }
    if (group.partition_size > 0) SplitIntoParts(job, group, &scope);
    scopes.push_back(std::move(scope));
  }
  return scopes;
}

std::vector<UnitNeed> UnitNeedsOf(const ClusterState& state, TopologyTrees& trees, const Job& job,
                                  absl::Span<const ScopeNeed> needs, const TopologyTree& tree,
                                  bool harden) {
  std::vector<UnitNeed> units;
  for (const ScopeNeed& need : needs) {
    const Group& group = job.groups[need.group];
    const FitKey fits{.shape = group.shape, .one_per_node = KeepsApart(group, need.group)};
    AddNeed({.fits = fits, .unit = {}, .units = static_cast<int64_t>(need.tasks.size())}, &units);
    const ScopeRule rule = RuleOf(state, trees, group.partition_topology, harden);
    if (rule.mode != TopologyMode::kHard || rule.tree != &tree) continue;
    int64_t whole = 0;
    for (const PartNeed& part : need.parts) whole += part.begun ? 0 : 1;
    const UnitSize unit{.tasks = group.partition_size, .highest_tier = rule.highest};
    AddNeed({.fits = fits, .unit = unit, .units = whole}, &units);
  }
  return units;
}

}  // namespace berth
