#include "core/engine/domain_victims.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/topology/domain_bound.h"
#include "core/topology/domain_placer.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

class DomainVictims {
 public:
  DomainVictims(Cycle& cycle, const VictimPlanGoal& goal, const WholeScope& scope)
      : cycle_(cycle),
        state_(cycle.state()),
        goal_(goal),
        scope_(scope),
        needs_(UnitNeedsOf(state_, TreesOf(cycle), goal.job, ScopeNeedsOf(goal.job, goal.needs, 0),
                           *scope.tree,
                           /*insist=*/false)) {}

  VictimOutcome Run(const MakeVictims& make);

 private:
  struct Option {
    DomainIndex domain = kRootDomain;
    int32_t tier = 0;
    bool degraded = false;
    int64_t fits = 0;  // already
    HyperNodeId id;
    bool AsGoodAs(const Option& other) const {
      return tier == other.tier && degraded == other.degraded && fits == other.fits;
    }
  };
  struct Best {
    std::unique_ptr<VictimPlan> plan;  // its source may be gone: it has found what it decides
    std::pair<int64_t, int64_t> cost;  // loss, tasks
    int compared = 0;
  };
  std::vector<Option> InOrder() const;
  void Compare(DomainIndex domain, const MakeVictims& make, Best* best, VictimOutcome* outcome);
  void CountFreed();
  bool CouldBeFreed(DomainIndex domain);
  int64_t FitsWithout(NodeId node, const FitKey& key) const;

  Cycle& cycle_;
  const ClusterState& state_;
  const VictimPlanGoal& goal_;
  const WholeScope& scope_;
  const std::vector<UnitNeed> needs_;
  std::vector<DomainRoom> freed_;  // by need: if all who may be evicted had gone
};

// Those that could hold the gang if they were empty.
std::vector<DomainVictims::Option> DomainVictims::InOrder() const {
  const TopologyTree& tree = *scope_.tree;
  std::vector<DomainRoom> empty;
  for (UnitNeed need : needs_) {
    need.fits.empty = true;
    empty.emplace_back(FitsOf(cycle_, tree, need.fits), need.unit, Region{}, /*leave_out=*/false);
  }
  const DomainRoom now(FitsOf(cycle_, tree, needs_[0].fits), needs_[0].unit, {}, false);
  std::vector<Option> found;
  for (DomainIndex d = 0; d < tree.domains().size(); ++d) {
    bool holds = MayUse(scope_, d);
    for (size_t i = 0; i < needs_.size() && holds; ++i) {
      holds = empty[i].Units(d) >= needs_[i].units;
    }
    const Domain& domain = tree.At(d);
    if (holds) found.push_back({d, domain.tier, domain.degraded, now.Tasks(d), domain.id});
  }
  std::sort(found.begin(), found.end(), [](const Option& a, const Option& b) {
    return std::tuple(a.tier, a.degraded, -a.fits, a.id) <
           std::tuple(b.tier, b.degraded, -b.fits, b.id);
  });
  return found;
}

// Tasks that would fit there if all that may ever be evicted had gone.
int64_t DomainVictims::FitsWithout(NodeId id, const FitKey& key) const {
  const Node& node = state_.nodes().At(id);
  if (!state_.free().Has(id)) return 0;
  Resources free = node.capacity;
  DeviceSet used = node.devices_reserved;
  free -= node.reserved;
  for (TaskKey there : node.tasks) {
    const Job& job = state_.jobs().At(there.job);
    const Task& task = job.tasks[there.task];
    if (there.job != goal_.job.id && (job.preemptible || task.state == TaskState::kReleasing)) {
      continue;
    }
    free -= state_.interner().Shape(job.groups[GroupOf(job, there.task)].shape).resources;
    used |= task.devices;
  }
  for (const DeviceKindSet& kind : node.kinds) {
    DeviceSet unused = kind.devices;
    unused -= used;
    free[kind.kind] = unused.Count();
  }
  for (int64_t& amount : free.amount) amount = std::max<int64_t>(amount, 0);
  const int64_t most = key.one_per_node ? 1 : kMaxTasksPerJob;
  return cycle_.search().FitsIn(key.shape, {node, free, used}, most);
}

// By all domains at once, when first asked for.
void DomainVictims::CountFreed() {
  const TopologyTree& tree = *scope_.tree;
  cycle_.CountWork(tree.nodes().size());
  for (const UnitNeed& need : needs_) {
    std::vector<int32_t> of_node(state_.next_node_id().value, 0);
    std::vector<int64_t> of_domain(tree.domains().size(), 0);
    for (NodeId node : tree.nodes()) {
      of_node[node.value] = static_cast<int32_t>(FitsWithout(node, need.fits));
      of_domain[tree.LowestOf(node)] += of_node[node.value];
    }
    for (size_t d = of_domain.size(); d-- > 1;) of_domain[tree.domains()[d].parent] += of_domain[d];
    const FitView view{.tree = &tree, .of_node = of_node, .of_domain = of_domain};
    freed_.emplace_back(view, need.unit, Region{}, /*leave_out=*/false);
  }
}

bool DomainVictims::CouldBeFreed(DomainIndex domain) {
  if (freed_.empty()) CountFreed();
  for (size_t i = 0; i < needs_.size(); ++i) {
    if (freed_[i].Units(domain) < needs_[i].units) return false;
  }
  return true;
}

VictimOutcome DomainVictims::Run(const MakeVictims& make) {
  VictimOutcome outcome;
  {
    const std::unique_ptr<VictimSource> any = make(nullptr);
    const bool none = !any->Next().has_value();
    outcome.protected_until = any->protected_until();
    if (none && state_.releasing().empty()) return outcome;
  }
  const std::vector<Option> options = InOrder();
  int tried = 0;
  for (size_t at = 0; at < options.size() && tried < kMaxDomains;) {
    Best best;
    for (const size_t first = at; at < options.size() && options[first].AsGoodAs(options[at]);
         ++at) {
      if (tried == kMaxDomains || best.compared == kMaxCompared) continue;
      if (!CouldBeFreed(options[at].domain)) continue;
      ++tried;
      Compare(options[at].domain, make, &best, &outcome);
    }
    if (best.plan != nullptr && best.plan->DecideFound()) return {.decided = true};
  }
  return outcome;
}

// Looks for a plan there; it is the best so far if it loses less.
void DomainVictims::Compare(DomainIndex domain, const MakeVictims& make, Best* best,
                            VictimOutcome* outcome) {
  ++best->compared;
  absl::flat_hash_set<JobId> there;  // asked only
  for (NodeId node : scope_.tree->NodesBelow(domain)) {
    for (TaskKey key : state_.nodes().At(node).tasks) there.insert(key.job);
  }
  std::unique_ptr<VictimSource> source =
      make([&there](const Job& job) { return there.contains(job.id); });
  auto plan = std::make_unique<VictimPlan>(cycle_, goal_, *source, &scope_, domain);
  const bool found = plan->Find();
  outcome->protected_until = std::min(outcome->protected_until, source->protected_until());
  if (!found) return;
  const std::pair cost(plan->LossFound(), plan->TasksFound());
  if (best->plan != nullptr && cost >= best->cost) return;
  best->cost = cost;
  best->plan = std::move(plan);
}

}  // namespace

VictimOutcome PlanVictims(Cycle& cycle, const VictimPlanGoal& goal, const MakeVictims& make) {
  const std::optional<WholeScope> scope =
      HasTopology(goal.job) ? WholeScopeOf(cycle, goal.job, goal.needs, /*insist=*/false)
                            : std::nullopt;
  if (scope.has_value()) return DomainVictims(cycle, goal, *scope).Run(make);
  const std::unique_ptr<VictimSource> source = make(nullptr);
  if (VictimPlan(cycle, goal, *source).Run()) return {.decided = true};
  return {.protected_until = source->protected_until()};
}

}  // namespace berth
