#include "core/engine/explain/explain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/cycle.h"
#include "core/engine/explain/remedies.h"
#include "core/engine/search/mig_division.h"
#include "core/topology/domain_bound.h"
#include "core/topology/domain_placer.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

// Among the jobs of its queue that request places.
void FindPosition(const ClusterState& state, const Job& job, Explanation* explanation) {
  const OrderKey own = KeyOf(job);
  state.pending().classes().ForEach([&](ClassId, const PendingClass& c) {
    if (c.demand.queue != job.queue) return;
    explanation->queue_jobs += static_cast<int64_t>(c.jobs.size());
    for (const OrderKey& key : c.jobs) {
      if (!(key < own)) break;
      ++explanation->position;
    }
  });
  ++explanation->position;
}

int64_t HeldOf(const ClusterState& state, const Job& job, ResourceKind kind) {
  int64_t amount = 0;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const Resources& each = state.interner().Shape(job.groups[g].shape).resources;
    amount += each[kind] * job.tallies[g].Occupying();
  }
  return amount;
}

bool Larger(const Holder& a, const Holder& b) {
  return a.amount != b.amount ? a.amount > b.amount : a.job < b.job;
}

// For the resource that is short: below the queue that limits it, or everywhere.
std::vector<Holder> HoldersOf(const ClusterState& state, const WaitReason& reason) {
  std::vector<Holder> holders;
  const auto kind = state.interner().FindKind(reason.resource);
  if (!kind.has_value()) return holders;
  const QueueId top = reason.queue == QueueId{} ? kRootQueue : reason.queue;
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    if (!IsAbove(state, top, id)) return;
    for (const OrderKey& key : queue.occupying_jobs) {
      const Job& job = state.jobs().At(key.job);
      const int64_t amount = HeldOf(state, job, *kind);
      if (amount == 0) continue;
      holders.push_back({.job = job.id, .amount = amount, .ends = PlannedEnd(job)});
      if (holders.size() < 2 * kMaxHolders) continue;
      std::sort(holders.begin(), holders.end(), Larger);
      holders.resize(kMaxHolders);
    }
  });
  std::sort(holders.begin(), holders.end(), Larger);
  if (holders.size() > kMaxHolders) holders.resize(kMaxHolders);
  return holders;
}

// What keeps all of the group's tasks together: its own hard constraint, or the job's.
std::optional<TopologyLimit> LimitOf(Cycle& cycle, const Job& job, const GroupNeed& need) {
  if (!HasTopology(job)) return std::nullopt;
  const Group& group = job.groups[need.group];
  const bool of_group = group.topology.mode == TopologyMode::kHard;
  const TopologyConstraint& says = of_group ? group.topology : *job.topology;
  const ScopeRule rule = RuleOf(cycle.state(), TreesOf(cycle), says, false);
  if (rule.mode != TopologyMode::kHard || !rule.Possible()) return std::nullopt;
  const auto end = of_group ? group.first_task + static_cast<uint32_t>(group.replicas)
                            : static_cast<uint32_t>(job.tasks.size());
  const uint32_t begin = of_group ? group.first_task : 0;
  const WholeScope scope{rule.tree, rule.highest, PinOf(*rule.tree, job, begin, end)};
  TopologyLimit limit{.tree = rule.tree, .may = {}};
  for (DomainIndex d = 0; d < rule.tree->domains().size(); ++d) {
    limit.may.push_back(MayUse(scope, d));
  }
  return limit;
}

void AddConstraints(ClusterState& state, const Policies& policies, const Job& job, Time now,
                    Explanation* explanation) {
  if (job.series) return;  // its jobs have tasks
  Cycle cycle(state, policies, now, kQuestionBudget);
  const JobNeeds needs = NeedsOf(job);
  for (const GroupNeed& need : needs.groups) {
    explanation->groups.push_back(
        CountConstraints(state, policies, cycle.reservations(), job, need.group, need.count, now,
                         LimitOf(cycle, job, need), &cycle.counters().work));
  }
  explanation->topology = ScopeFits(cycle, job, needs, /*soft=*/true);
}

// If the job's turn has not come since something changed, returns what a cycle would say now.
std::vector<WaitReason> ReasonsOf(ClusterState& state, const Policies& policies, const Job& job,
                                  Time now) {
  std::vector<WaitReason> reasons = WhyWaiting(state, job, now);
  const bool has_places = job.occupying > 0 || TallyOf(job).Nominated() > 0;
  if (reasons.empty() || reasons.front().code != WaitCode::kNotConsidered) return reasons;
  if (job.status.state != JobState::kPending || has_places) return reasons;
  auto tried = DryRun(state, policies, SpecOf(state, job), now, job.id);
  if (!tried.ok() || tried->blockers.empty()) return reasons;
  return std::move(tried->blockers);
}

void AddMigNote(const ClusterState& state, const Job& job, WaitReason* reason) {
  const std::string note = MigNote(state, job);
  if (!note.empty()) absl::StrAppend(&reason->detail, reason->detail.empty() ? "" : "; ", note);
}

}  // namespace

Explanation Explain(ClusterState& state, const Policies& policies, JobId id, Time now) {
  Explanation explanation;
  const Job& job = state.jobs().At(id);
  explanation.reasons = ReasonsOf(state, policies, job, now);
  if (explanation.reasons.empty() || job.pending_class == ClassId{}) return explanation;
  AddMigNote(state, job, &explanation.reasons.front());
  FindPosition(state, job, &explanation);
  AddConstraints(state, policies, job, now, &explanation);
  explanation.holders = HoldersOf(state, explanation.reasons.front());
  explanation.estimate = EstimateStart(state, policies, id, now);
  explanation.remedies = RemediesFor(state, policies, job, explanation.reasons.front(), now);
  if (explanation.estimate.latest != absl::InfiniteFuture()) {
    Remedy wait;
    wait.time = explanation.estimate.latest;
    explanation.remedies.push_back(std::move(wait));
  }
  return explanation;
}

}  // namespace berth
