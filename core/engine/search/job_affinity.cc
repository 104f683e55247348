#include "core/engine/search/job_affinity.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

// Jobs that are placed or nominated and that the term of `owner` matches.
void ForEachMatch(const ClusterState& state, const AffinityTerm& term, const Job& owner,
                  absl::FunctionRef<void(const Job&)> visit) {
  const auto look = [&](JobId id) {
    const Job& other = state.jobs().At(id);
    if (RefersTo(term, owner, other)) visit(other);
  };
  if (const auto* with = state.affinity().With(term.labels.front()); with != nullptr) {
    for (JobId id : *with) look(id);
  } else {
    state.queues().ForEach([&](QueueId, const Queue& queue) {
      for (const OrderKey& key : queue.occupying_jobs) look(key.job);
    });
  }
  for (JobId id : state.nominated_jobs()) {
    if (state.jobs().At(id).occupying == 0) look(id);
  }
}

// Jobs whose terms may keep others away.
void ForEachRepelling(const ClusterState& state, absl::FunctionRef<void(const Job&)> visit) {
  for (JobId id : state.affinity().Repelling()) visit(state.jobs().At(id));
  for (JobId id : state.nominated_jobs()) {
    if (state.jobs().At(id).occupying == 0) visit(state.jobs().At(id));
  }
}

// Not a task that planning has lifted from its node to try what would happen without it.
bool OnNode(const ClusterState& state, TaskKey key, const Task& task) {
  const std::vector<TaskKey>& there = state.nodes().At(task.node).tasks;
  return std::find(there.begin(), there.end(), key) != there.end();
}

// Calls visit(NodeId) for the nodes where the job has tasks that stay, or is nominated.
template <class Visit>
void ForEachNode(const ClusterState& state, const Job& job, const Visit& visit) {
  for (uint32_t index = 0; index < job.tasks.size(); ++index) {
    const Task& task = job.tasks[index];
    const bool here =
        Occupies(task.state) && !Releasing(task) && OnNode(state, {job.id, index}, task);
    if (here || Reserves(task.state)) visit(task.node);
    if (task.moves) visit(task.next_node);
  }
}

using Place = uint64_t;

// The domain above all nodes.
Place PlaceOf(const TopologyTree* tree, NodeId node, int32_t tier) {
  if (tier == 0 || tree == nullptr) return node.value;
  const std::optional<DomainIndex> domain = tree->DomainAt(node, tier);
  return domain.has_value() ? (Place{1} << 32) + *domain : Place{node.value};
}

bool HasTier(const Job& job) {
  return std::any_of(job.affinity.begin(), job.affinity.end(),
                     [](const AffinityTerm& term) { return term.tier > 0; });
}

}  // namespace

JobAffinity::JobAffinity(const ClusterState& state, TopologyTrees& trees, const Job& job)
    : state_(state) {
  bool tiers = HasTier(job);
  ForEachRepelling(state, [&](const Job& other) { tiers |= HasTier(other); });
  if (tiers) tree_ = trees.Of(state, kNetworkKind);
  for (const AffinityTerm& term : job.affinity) AddOwn(job, term);
  ForEachRepelling(state, [&](const Job& other) { AddOfOther(job, other); });
}

void JobAffinity::AddOwn(const Job& job, const AffinityTerm& term) {
  Rule rule{.apart = term.apart, .tier = term.tier, .places = {}};
  ForEachMatch(state_, term, job, [&](const Job& other) { AddPlaces(other, &rule); });
  const bool any = !rule.places.empty();
  const bool first = !any && !term.apart && HasLabels(job, term.labels);
  if (!first && (any || !term.apart)) rules_.push_back(std::move(rule));
}

void JobAffinity::AddOfOther(const Job& job, const Job& other) {
  ++work_;
  for (const AffinityTerm& term : other.affinity) {
    if (!term.apart || !RefersTo(term, other, job)) continue;
    Rule rule{.apart = true, .tier = term.tier, .places = {}};
    AddPlaces(other, &rule);
    if (!rule.places.empty()) rules_.push_back(std::move(rule));
  }
}

void JobAffinity::AddPlaces(const Job& other, Rule* rule) {
  work_ += other.tasks.size();
  ForEachNode(state_, other,
              [&](NodeId node) { rule->places.insert(PlaceOf(tree_, node, rule->tier)); });
}

bool JobAffinity::May(NodeId node) const {
  return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule.places.contains(PlaceOf(tree_, node, rule.tier)) != rule.apart;
  });
}

bool LacksNearJob(const ClusterState& state, const Job& job) {
  return std::any_of(job.affinity.begin(), job.affinity.end(), [&](const AffinityTerm& term) {
    if (term.apart || HasLabels(job, term.labels)) return false;
    bool any = false;
    ForEachMatch(state, term, job, [&](const Job& other) {
      if (!any) ForEachNode(state, other, [&](NodeId) { any = true; });
    });
    return !any;
  });
}

namespace {

// Whether some term of `owner` forbids a task of its own on one node with one of `other` on the
// other.
bool Forbids(const TopologyTree* tree, const Job& owner, const Job& other, NodeId own,
             NodeId theirs) {
  return std::any_of(owner.affinity.begin(), owner.affinity.end(), [&](const AffinityTerm& term) {
    return term.apart && RefersTo(term, owner, other) &&
           PlaceOf(tree, own, term.tier) == PlaceOf(tree, theirs, term.tier);
  });
}

}  // namespace

bool KeepApart(const ClusterState& state, TopologyTrees& trees, const Job& job, const Job& other,
               absl::Span<const uint32_t> tasks) {
  if (job.affinity.empty() && other.affinity.empty()) return false;
  const bool tiers = HasTier(job) || HasTier(other);
  const TopologyTree* tree = tiers ? trees.Of(state, kNetworkKind) : nullptr;
  bool apart = false;
  ForEachNode(state, job, [&](NodeId own) {
    for (uint32_t task : tasks) {
      const NodeId theirs = other.tasks[task].node;
      apart =
          apart || Forbids(tree, job, other, own, theirs) || Forbids(tree, other, job, theirs, own);
    }
  });
  return apart;
}

namespace {

std::string TermText(const AffinityTerm& term) {
  const std::string where =
      term.tier == 0 ? "" : absl::StrCat(" by HyperNodes of tier ", term.tier);
  return absl::StrCat(term.apart ? "apart from" : "near", " jobs with ",
                      absl::StrJoin(term.labels, ",", absl::PairFormatter("=")),
                      term.all_queues ? " of any queue" : "", where);
}

}  // namespace

std::string AffinityText(const ClusterState& state, const Job& job) {
  std::vector<std::string> texts;
  for (const AffinityTerm& term : job.affinity) {
    int64_t jobs = 0;
    ForEachMatch(state, term, job, [&](const Job&) { ++jobs; });
    texts.push_back(absl::StrCat("must run ", TermText(term), ", of which ", jobs,
                                 jobs == 1 ? " has a place" : " have a place"));
  }
  ForEachRepelling(state, [&](const Job& other) {
    for (const AffinityTerm& term : other.affinity) {
      if (!term.apart || !RefersTo(term, other, job) || texts.size() >= 4) continue;
      texts.push_back(absl::StrCat("job ", other.name, " must run ", TermText(term)));
    }
  });
  return absl::StrJoin(texts, "; ");
}

}  // namespace berth
