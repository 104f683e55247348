#include "core/engine/victims/domain_options.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/model/task_room.h"
#include "core/topology/domain_placer.h"

namespace berth {

DomainOptions::DomainOptions(Cycle& cycle, const VictimPlanGoal& goal, const TopologyTree& tree,
                             std::vector<UnitNeed> needs, absl::FunctionRef<bool(DomainIndex)> may,
                             const VictimSource& source)
    : cycle_(cycle),
      state_(cycle.state()),
      goal_(goal),
      tree_(tree),
      skip_degraded_(SkipsDegraded(cycle, goal.job)),
      needs_(std::move(needs)) {
  FindWhoMayLeave(source);
  PutIntoLevels();
  CountRoom();
  PutInOrder(may);
}

void DomainOptions::FindWhoMayLeave(const VictimSource& source) {
  UnitMaker maker(state_, cycle_.policies().eviction(), cycle_.now());
  cycle_.CountWork(tree_.nodes().size());
  std::vector<VictimUnit> units;
  for (NodeId node : tree_.nodes()) {
    for (TaskKey key : state_.nodes().At(node).tasks) {
      const auto [found, fresh] = may_leave_.try_emplace(key.job);
      const Job& job = state_.jobs().At(key.job);
      if (!fresh || key.job == goal_.job.id || !source.CouldGive(job)) continue;
      units.clear();
      maker.AddUnitsOf(job, &units);
      AddUnits(job, source, units, &found->second);
    }
  }
  protected_until_ = maker.TakeProtectedUntil();
}

void DomainOptions::AddUnits(const Job& job, const VictimSource& source,
                             const std::vector<VictimUnit>& units, MayLeave* may) const {
  for (const VictimUnit& unit : units) {
    if (!source.CouldGive(unit)) continue;
    may->may.resize(job.tasks.size(), false);
    may->priority.resize(job.tasks.size(), 0);
    for (uint32_t task : unit.tasks) {
      may->may[task] = true;
      may->priority[task] = goal_.must_move ? 0 : unit.priority;
    }
  }
}

// A move costs the job little, so the cheapest one moves, whatever its priority.
void DomainOptions::PutIntoLevels() {
  std::vector<int32_t> priorities;
  for (const auto& [id, may] : may_leave_) {
    for (size_t task = 0; task < may.may.size(); ++task) {
      const bool known = !priorities.empty() && priorities.back() == may.priority[task];
      if (may.may[task] && !known) priorities.push_back(may.priority[task]);
    }
  }
  std::sort(priorities.begin(), priorities.end());
  priorities.erase(std::unique(priorities.begin(), priorities.end()), priorities.end());
  const size_t each = (priorities.size() + kMaxLevels - 1) / kMaxLevels;
  for (auto& [id, may] : may_leave_) {
    may.level.assign(may.may.size(), 0);
    for (size_t task = 0; task < may.may.size(); ++task) {
      if (!may.may[task]) continue;
      const auto at = std::lower_bound(priorities.begin(), priorities.end(), may.priority[task]);
      may.level[task] = 1 + static_cast<size_t>(at - priorities.begin()) / each;
      levels_ = std::max(levels_, may.level[task] + 1);
    }
  }
}

// levels_: it stays.
size_t DomainOptions::LevelAtWhichGone(TaskKey key) const {
  if (key.job == goal_.job.id) return levels_;
  if (state_.jobs().At(key.job).tasks[key.task].state == TaskState::kReleasing) return 0;
  const std::vector<size_t>& level = may_leave_.at(key.job).level;
  return !level.empty() && level[key.task] > 0 ? level[key.task] : levels_;
}

// Counts the tasks that would fit there, level by level.
void DomainOptions::CountNode(NodeId id, const FitKey& key,
                              std::vector<std::vector<int64_t>>* of_domain) const {
  const Node& node = state_.nodes().At(id);
  if (!MayHaveTasks(state_, node)) return;
  std::vector<bool> changes(levels_ + 1, false);
  for (TaskKey there : node.tasks) changes[LevelAtWhichGone(there)] = true;
  int64_t fits = 0;
  for (size_t level = 0; level < levels_; ++level) {
    if (level == 0 || changes[level]) {
      Resources free = node.capacity;
      DeviceUse used = ClaimedDevices(node);
      free -= node.reserved;
      int64_t gone = 0;
      for (TaskKey there : node.tasks) {
        gone += LevelAtWhichGone(there) <= level ? 1 : 0;
        if (LevelAtWhichGone(there) <= level) continue;
        const Job& job = state_.jobs().At(there.job);
        const ShapeEntry& shape =
            state_.interner().Shape(job.groups[GroupOf(job, there.task)].shape);
        free -= shape.resources;
        used += UseOf(node, shape, DevicesHeld(job.tasks[there.task]));
      }
      for (const DeviceKindSet& kind : node.kinds) {
        free[kind.kind] = used.FreeIn(kind.devices);
      }
      for (int64_t& amount : free.amount) amount = std::max<int64_t>(amount, 0);
      const int64_t most =
          std::min(TaskRoomWithout(node, gone), key.one_per_node ? 1 : kMaxTasksPerJob);
      fits = cycle_.search().FitsIn(key.shape, {node, free, used}, most);
    }
    (*of_domain)[level][tree_.LowestOf(id)] += fits;
  }
}

void DomainOptions::CountRoom() {
  rooms_.resize(levels_);
  for (const UnitNeed& need : needs_) {
    std::vector<std::vector<int64_t>> of_domain(levels_);
    for (auto& level : of_domain) level.assign(tree_.domains().size(), 0);
    cycle_.CountWork(tree_.nodes().size());
    for (NodeId node : tree_.nodes()) CountNode(node, need.fits, &of_domain);
    for (size_t level = 0; level < levels_; ++level) {
      std::vector<int64_t>& sums = of_domain[level];
      for (size_t d = sums.size(); d-- > 1;) sums[tree_.domains()[d].parent] += sums[d];
      const FitView view{.tree = &tree_, .of_node = {}, .of_domain = sums};
      rooms_[level].emplace_back(view, need.unit, Region{}, skip_degraded_);
    }
  }
}

size_t DomainOptions::LevelOf(DomainIndex domain) const {
  for (size_t level = 0; level < levels_; ++level) {
    bool holds = true;
    for (size_t i = 0; i < needs_.size() && holds; ++i) {
      holds = rooms_[level][i].Units(domain) >= needs_[i].units;
    }
    if (holds) return level;
  }
  return kMaxLevels + 1;
}

void DomainOptions::PutInOrder(absl::FunctionRef<bool(DomainIndex)> may) {
  const DomainRoom now(FitsOf(cycle_, tree_, needs_[0].fits), needs_[0].unit, {}, skip_degraded_);
  for (DomainIndex d = 0; d < tree_.domains().size(); ++d) {
    const size_t level = may(d) ? LevelOf(d) : kMaxLevels + 1;
    if (level > kMaxLevels) continue;
    const Domain& domain = tree_.At(d);
    options_.push_back({.domain = d,
                        .tier = domain.tier,
                        .degraded = domain.degraded,
                        .level = level,
                        .fits = now.Tasks(d),
                        .units = rooms_[level][0].Units(d),
                        .id = domain.id});
  }
  std::sort(options_.begin(), options_.end(), [](const Option& a, const Option& b) {
    return std::tuple(a.tier, a.degraded, a.level, -a.fits, a.id) <
           std::tuple(b.tier, b.degraded, b.level, -b.fits, b.id);
  });
}

}  // namespace berth
