#include "core/topology/domain_placer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/topology/domain_packer.h"

namespace berth {
namespace {

bool HasMembers(const Job& job) {
  const GroupTally tally = TallyOf(job);
  return tally.Members() + tally.Nominated() > 0;
}

// The nodes of the job's tasks that a task must be near, which are then its only choice.
std::vector<NodeId> NodesNear(const Job& job, const Group& group, const Region& region) {
  std::vector<NodeId> nodes;
  const Group& near = job.groups[group.near_groups.front()];
  for (uint32_t i = 0; i < static_cast<uint32_t>(near.replicas); ++i) {
    const Task& task = job.tasks[near.first_task + i];
    const bool there = Occupies(task.state) || Reserves(task.state);
    if (there && region.Holds(task.node)) nodes.push_back(task.node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool IsNear(const Job& job, uint32_t index) {
  const Group& group = job.groups[index];
  return !group.near_groups.empty() && group.affinity_tier == 0 &&
         group.near_groups.front() != index;
}

}  // namespace

TopologyTrees& TreesOf(Cycle& cycle) { return CacheOf(cycle.transaction().editor()).trees; }

bool SkipsDegraded(Cycle& cycle, const Job& job) {
  return cycle.policies().topology().degraded == DegradedDomains::kExclude && !HasMembers(job);
}

FitView FitsOf(Cycle& cycle, const TopologyTree& tree, const FitKey& key) {
  EngineCache& cache = CacheOf(cycle.transaction().editor());
  NodeSearch& search = cycle.search();
  return cache.fits.Of(cycle.transaction().editor(), cycle.state(), tree, cache.trees.version(),
                       key, [&](NodeId node, int64_t bound) {
                         return key.empty ? search.FitsEmpty(key.shape, node, bound)
                                          : search.FitsFree(key.shape, node, bound);
                       });
}

// Sorted in the order in which they are tried.
struct DomainPlacer::Candidate {
  int32_t tier = 0;
  bool degraded = false;
  int64_t room = 0;
  int64_t holders = 0;  // of the first group's image
  HyperNodeId id;
  DomainIndex domain = kRootDomain;

  // For a heap whose top is the first candidate.
  static bool Later(const Candidate& a, const Candidate& b) {
    return std::tie(a.tier, a.degraded, a.room, b.holders, a.id) >
           std::tie(b.tier, b.degraded, b.room, a.holders, b.id);
  }
};

DomainPlacer::DomainPlacer(Cycle& cycle, const Job& job, const Window& window,
                           bool ignore_reservations, bool harden)
    : cycle_(cycle),
      state_(cycle.state()),
      job_(job),
      window_(window),
      ignore_reservations_(ignore_reservations),
      harden_(harden),
      skip_degraded_(SkipsDegraded(cycle, job)) {}

bool DomainPlacer::PlaceAll(const std::vector<ScopeNeed>& needs, const Region& within) {
  return InScope(*job_.topology, needs, 0, static_cast<uint32_t>(job_.tasks.size()), within,
                 [&](const Region& region) { return PlaceGroups(needs, region); });
}

bool DomainPlacer::InScope(const TopologyConstraint& says, Needs needs, uint32_t begin,
                           uint32_t end, const Region& region, Body body) {
  const ScopeRule rule = RuleOf(state_, TreesOf(cycle_), says, harden_);
  if (!rule.Possible()) return false;
  if (rule.mode == TopologyMode::kNone || rule.tree == nullptr) return body(region);
  const size_t before = cycle_.transaction().placed().size();
  const std::optional<DomainIndex> pin = PinOf(*rule.tree, job_, begin, end);
  std::vector<Candidate> candidates = CandidatesFor(rule, pin, needs, region);
  std::make_heap(candidates.begin(), candidates.end(), Candidate::Later);
  for (auto rest = candidates.end(); rest != candidates.begin(); --rest) {
    std::pop_heap(candidates.begin(), rest, Candidate::Later);
    cycle_.CountWork(1);
    if (body(region.With(*rule.tree, std::prev(rest)->domain))) return true;
    cycle_.transaction().UnplaceTo(before);
  }
  return false;
}

std::vector<DomainPlacer::Candidate> DomainPlacer::CandidatesFor(const ScopeRule& rule,
                                                                 std::optional<DomainIndex> pin,
                                                                 Needs needs,
                                                                 const Region& region) {
  const TopologyTree& tree = *rule.tree;
  std::vector<UnitNeed> units = UnitNeedsOf(state_, TreesOf(cycle_), job_, needs, tree, harden_);
  std::vector<DomainRoom> rooms;
  for (const UnitNeed& need : units) {
    rooms.emplace_back(FitsOf(cycle_, tree, need.fits), need.unit, region, skip_degraded_);
  }
  const Seeker first{.job = job_, .group = needs.front().group, .window = window_, .last = {}};
  rooms.front().Prefer(cycle_.search().HoldersIn(tree, first));
  const auto holds = [&](DomainIndex d) {
    for (size_t i = 0; i < units.size(); ++i) {
      if (rooms[i].Units(d) < units[i].units) return false;
    }
    return true;
  };
  const int32_t cap = rule.mode == TopologyMode::kHard ? rule.highest : kRootTier;
  std::vector<Candidate> found;
  const auto add = [&](DomainIndex d) {
    const Domain& domain = tree.At(d);
    found.push_back({.tier = domain.tier,
                     .degraded = domain.degraded,
                     .room = rooms[0].Tasks(d),
                     .holders = rooms[0].Holders(d),
                     .id = domain.id,
                     .domain = d});
  };
  const DomainIndex top = region.In(tree);
  if (pin.has_value()) {
    if (!tree.Holds(top, *pin)) return found;
    for (DomainIndex d = *pin;; d = tree.At(d).parent) {
      if ((tree.At(d).tier <= cap || d == *pin) && holds(d)) add(d);
      if (d == top) return found;
    }
  }
  for (DomainIndex d = top; d < tree.At(top).end;) {
    const bool may = holds(d);
    if (may && tree.At(d).tier <= cap) add(d);
    d = may ? d + 1 : tree.At(d).end;
  }
  return found;
}

// Groups with heavier communication first; groups that must be near others last.
bool DomainPlacer::PlaceGroups(Needs needs, const Region& region) {
  std::vector<const ScopeNeed*> order;
  for (const ScopeNeed& need : needs) order.push_back(&need);
  const auto rank = [&](const ScopeNeed* need) {
    const Group& group = job_.groups[need->group];
    return std::tuple(!group.near_groups.empty(), -group.communication, need->group);
  };
  std::sort(order.begin(), order.end(),
            [&](const ScopeNeed* a, const ScopeNeed* b) { return rank(a) < rank(b); });
  return std::all_of(order.begin(), order.end(),
                     [&](const ScopeNeed* need) { return PlaceGroup(*need, region); });
}

bool DomainPlacer::PlaceGroup(const ScopeNeed& need, const Region& region) {
  const Group& group = job_.groups[need.group];
  return InScope(
      group.topology, {&need, 1}, group.first_task,
      group.first_task + static_cast<uint32_t>(group.replicas), region, [&](const Region& inner) {
        return need.parts.empty() ? PlaceTasks(need, need.tasks, inner) : PlaceParts(need, inner);
      });
}

// Started partitions stay in their domains. Whole ones are then placed together, if one tree
// constrains them.
bool DomainPlacer::PlaceParts(const ScopeNeed& need, const Region& region) {
  const Group& group = job_.groups[need.group];
  const ScopeRule rule = RuleOf(state_, TreesOf(cycle_), group.partition_topology, harden_);
  if (!rule.Possible()) return false;
  const bool hard = rule.mode == TopologyMode::kHard;
  const TopologyTree* tree = region.parts.empty() ? rule.tree : region.parts.back().tree;
  const bool one_by_one =
      tree == nullptr || IsNear(job_, need.group) ||
      (rule.mode != TopologyMode::kNone && rule.tree != tree && rule.tree != nullptr);
  std::vector<const PartNeed*> whole;
  for (const PartNeed& part : need.parts) {
    if (!part.begun && !one_by_one) {
      whole.push_back(&part);
    } else if (!PlacePart(need, part, region)) {
      return false;
    }
  }
  if (whole.empty()) return true;
  const FitView view =
      FitsOf(cycle_, *tree, {.shape = group.shape, .one_per_node = KeepsApart(group, need.group)});
  const UnitSize unit{.tasks = group.partition_size,
                      .highest_tier = hard ? rule.highest : kRootTier};
  DomainPacker packer(
      cycle_, view, unit, region, skip_degraded_,
      LeafPlacer(cycle_, job_, need.group, window_, ignore_reservations_, view, region));
  const DomainIndex top = region.In(*tree);
  if (unit.tasks > 1 || hard) return packer.PlaceUnits(top, whole) == whole.size();
  return packer.PlaceTasks(top, need.tasks) == need.tasks.size();
}

bool DomainPlacer::PlacePart(const ScopeNeed& need, const PartNeed& part, const Region& region) {
  const ScopeNeed own{.group = need.group, .tasks = part.tasks, .parts = {}};
  return InScope(job_.groups[need.group].partition_topology, {&own, 1}, part.begin, part.end,
                 region, [&](const Region& inner) { return PlaceTasks(own, part.tasks, inner); });
}

bool DomainPlacer::PlaceTasks(const ScopeNeed& need, absl::Span<const uint32_t> tasks,
                              const Region& region) {
  if (region.parts.empty()) return PlaceAnywhere(need, tasks);
  const Group& group = job_.groups[need.group];
  const TopologyTree& tree = *region.parts.back().tree;
  const FitView view =
      FitsOf(cycle_, tree, {.shape = group.shape, .one_per_node = KeepsApart(group, need.group)});
  LeafPlacer leaf(cycle_, job_, need.group, window_, ignore_reservations_, view, region);
  if (IsNear(job_, need.group)) {
    return leaf.Place(NodesNear(job_, group, region), tasks) == tasks.size();
  }
  DomainPacker packer(cycle_, view, {}, region, skip_degraded_, std::move(leaf));
  return packer.PlaceTasks(region.In(tree), tasks) == tasks.size();
}

// For tasks without a topology constraint.
bool DomainPlacer::PlaceAnywhere(const ScopeNeed& need, absl::Span<const uint32_t> tasks) {
  Seeker seeker{.job = job_,
                .group = need.group,
                .window = window_,
                .rest = static_cast<int32_t>(tasks.size()),
                .last = {},
                .ignore_reservations = ignore_reservations_};
  for (uint32_t task : tasks) {
    const std::optional<Found> found = cycle_.search().Best(seeker, &cycle_.counters().work);
    if (!found.has_value()) return false;
    cycle_.transaction().Place(job_.id, {task, found->node, found->devices});
    seeker.Placed(found->node, found->devices);
    --seeker.rest;
  }
  return true;
}

}  // namespace berth
