#include "core/engine/search/verdict.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace berth {
namespace {

BlockedVerdict Verdict(WaitCode code, WakeOn wake) {
  BlockedVerdict verdict;
  verdict.wake = wake;
  verdict.code = static_cast<uint8_t>(code);
  return verdict;
}

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The first requested resource, by name, of which there is less than that.
template <class Free>
std::optional<ResourceKind> FirstKind(const Interner& interner, const Resources& request,
                                      Free&& free) {
  std::optional<ResourceKind> first;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (request[kind] == 0 || request[kind] <= free(kind)) continue;
    if (!first.has_value() || interner.KindName(kind) < interner.KindName(*first)) first = kind;
  }
  return first;
}

// Groups of one shape compete for the same nodes, so they are counted together.
int64_t NeededOfShape(const Job& job, const JobNeeds& needs, ShapeId shape) {
  int64_t tasks = 0;
  for (const GroupNeed& need : needs.groups) {
    if (job.groups[need.group].shape == shape) tasks += need.count;
  }
  return tasks;
}

Resources SumOf(const ClusterState& state, const Job& job, const JobNeeds& needs,
                Resources ShapeEntry::*amounts) {
  Resources sum;
  for (const GroupNeed& need : needs.groups) {
    const Resources& each = state.interner().Shape(job.groups[need.group].shape).*amounts;
    sum += need.count == 1 ? each : each.Times(need.count);
  }
  return sum;
}

// Each shape alone would fit, but all nodes that take any of them together have too little of some
// resource for the gang. A gang that passes this check may still not fit.
std::optional<BlockedVerdict> NeverTogether(const ClusterState& state, NodeSearch& search,
                                            const Job& job, const JobNeeds& needs, uint64_t* work) {
  std::vector<ShapeId> shapes;
  for (const GroupNeed& need : needs.groups) shapes.push_back(job.groups[need.group].shape);
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  if (shapes.size() < 2) return std::nullopt;
  const Resources needed = LeastOf(state, job, needs);
  const Resources there = search.EmptyCapacity(shapes, work);
  const auto kind = FirstKind(state.interner(), needed, [&](ResourceKind k) { return there[k]; });
  if (!kind.has_value()) return std::nullopt;
  BlockedVerdict verdict = Verdict(WaitCode::kNeverFits, WakeOn::kChange);
  verdict.resource = state.interner().KindName(*kind);
  verdict.needed = needed[*kind];
  verdict.free = there[*kind];
  verdict.detail = "all matching nodes together, even empty, cannot hold all groups at once";
  return verdict;
}

// Not amounts are short: nodes take only a limited number of tasks, whatever these request.
void SetTasks(int64_t needed, int64_t free, BlockedVerdict* verdict) {
  verdict->resource = "tasks";
  verdict->needed = needed * kWhole;
  verdict->free = free * kWhole;
}

void DescribeFullNodes(NodeSearch& search, const Job& job, const JobNeeds& needs, int32_t placed,
                       BlockedVerdict* verdict, uint64_t* work) {
  for (const GroupNeed& need : needs.groups) {
    const int32_t full = search.FullNodes(job.groups[need.group].shape, work);
    if (full == 0) continue;
    SetTasks(TasksIn(needs), placed, verdict);
    absl::StrAppend(&verdict->detail, ": ", full, full == 1 ? " node is" : " nodes are",
                    " at the limit of tasks per node");
    return;
  }
}

std::string SpreadText(const Group& group, const SpreadPlaces& places) {
  const std::string where =
      group.spread.tier == 0 ? "nodes" : absl::StrCat("HyperNodes of tier ", group.spread.tier);
  return absl::StrCat("group ", group.name, " is spread over ", places.size(), " ", where,
                      " with a skew of at most ", group.spread.max_skew);
}

// Even when empty, the places of a spread group hold too few of its tasks: of those that it
// requests, and of those that were there before the trial, which placed `placed`.
std::optional<BlockedVerdict> NeverSpread(NodeSearch& search, const Job& job, const GroupNeed& need,
                                          int32_t placed) {
  const Group& group = job.groups[need.group];
  if (!group.spread.Any()) return std::nullopt;
  const GroupTally& tally = job.tallies[need.group];
  const int32_t there = std::max(0, tally.Members() + tally.Nominated() - placed);
  const int64_t tasks = need.count + there;
  const SpreadPlaces& places = search.PlacesFor(group);
  const int64_t most = places.Most(group.spread.max_skew);
  if (most >= tasks) return std::nullopt;
  BlockedVerdict verdict = Verdict(WaitCode::kNeverFits, WakeOn::kChange);
  SetTasks(tasks, most, &verdict);
  verdict.detail =
      absl::StrCat(SpreadText(group, places), ": even empty, they hold ", most, " of ", tasks);
  return verdict;
}

void DescribeSpread(NodeSearch& search, const Job& job, const JobNeeds& needs,
                    BlockedVerdict* verdict) {
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    if (!group.spread.Any()) continue;
    absl::StrAppend(&verdict->detail, "; ", SpreadText(group, search.PlacesFor(group)));
  }
}

std::optional<BlockedVerdict> NeverVerdict(const ClusterState& state, NodeSearch& search,
                                           const Job& job, const JobNeeds& needs, int32_t placed,
                                           uint64_t* work) {
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    if (auto never = NeverSpread(search, job, need, placed); never.has_value()) return never;
    const int64_t tasks = NeededOfShape(job, needs, group.shape);
    const EmptyFit fit = search.IfEmpty(group.shape, tasks, KeepsApart(group, need.group), work);
    if (fit.tasks >= tasks) continue;
    const Resources& each = state.interner().Shape(group.shape).resources;
    BlockedVerdict verdict =
        Verdict(fit.any_node ? WaitCode::kNeverFits : WaitCode::kNoMatchingNode, WakeOn::kChange);
    const ResourceKind kind = Scarcest(state.interner(), each, state.free().total());
    verdict.resource = state.interner().KindName(kind);
    verdict.needed = each[kind] * tasks;
    verdict.free = each[kind] * fit.tasks;
    if (fit.any_node && each[kind] == 0) SetTasks(tasks, fit.tasks, &verdict);
    verdict.detail =
        fit.any_node ? absl::StrCat("all matching nodes together, even empty, hold ", fit.tasks,
                                    " of ", tasks, " tasks of group ", group.name)
                     : absl::StrCat("no node, even empty, can hold a task of group ", group.name);
    return verdict;
  }
  return NeverTogether(state, search, job, needs, work);
}

}  // namespace

ResourceKind Scarcest(const Interner& interner, const Resources& needed, const Resources& there) {
  ResourceKind worst = kCpu;
  const auto scarcer = [&](ResourceKind a, ResourceKind b) {
    const absl::int128 left = absl::int128(needed[a]) * std::max<int64_t>(there[b], 0);
    const absl::int128 right = absl::int128(needed[b]) * std::max<int64_t>(there[a], 0);
    if (left != right) return left > right;
    if ((there[a] <= 0) != (there[b] <= 0)) return there[a] <= 0;
    return interner.KindName(a) < interner.KindName(b);
  };
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (needed[kind] > 0 && (needed[worst] == 0 || scarcer(kind, worst))) worst = kind;
  }
  return worst;
}

Resources HeldBy(const Queue& queue, Use use) {
  return use == Use::kNow ? queue.allocated : HeldAfterRelease(queue);
}

JobNeeds NeedsOfTasks(const Job& job, const std::vector<uint32_t>& tasks) {
  JobNeeds needs{.gang = true, .groups = {}};
  for (uint32_t task : tasks) {
    const uint32_t group = GroupOf(job, task);
    if (needs.groups.empty() || needs.groups.back().group != group) {
      needs.groups.push_back({group, 0});
    }
    ++needs.groups.back().count;
  }
  return needs;
}

Resources RequestOf(const ClusterState& state, const Job& job, const JobNeeds& needs) {
  return SumOf(state, job, needs, &ShapeEntry::resources);
}

Resources LeastOf(const ClusterState& state, const Job& job, const JobNeeds& needs) {
  return SumOf(state, job, needs, &ShapeEntry::least);
}

int32_t TasksIn(const JobNeeds& needs) {
  int32_t tasks = 0;
  for (const GroupNeed& need : needs.groups) tasks += need.count;
  return tasks;
}

std::optional<BlockedVerdict> QueueVerdict(const ClusterState& state, const Job& job, Use use) {
  const bool runs_already = job.occupying > 0;
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    const int32_t bound = queue.spec.max_running_jobs;
    const int64_t runs = queue.running_jobs - (use == Use::kNow ? 0 : queue.leaving_jobs);
    if (!queue.open || (!runs_already && bound > 0 && runs >= bound)) {
      BlockedVerdict verdict = Verdict(
          queue.open ? WaitCode::kQueueRunningJobs : WaitCode::kQueueClosed, WakeOn::kQueue);
      verdict.queue = id;
      verdict.limit = queue.open ? bound : 0;
      return verdict;
    }
    if (id == kRootQueue) return std::nullopt;
  }
}

namespace {

BlockedVerdict LimitOf(const ClusterState& state, const Queue& at, ResourceKind kind,
                       const Resources& request, const Resources& held) {
  BlockedVerdict verdict = Verdict(WaitCode::kQueueLimit, WakeOn::kQueue);
  verdict.queue = at.id;
  verdict.resource = state.interner().KindName(kind);
  verdict.needed = request[kind];
  verdict.limit = at.limit[kind];
  verdict.free = std::max<int64_t>(at.limit[kind] - held[kind], 0);
  return verdict;
}

}  // namespace

bool CanNeverStart(const WaitReason& reason) {
  if (reason.code == WaitCode::kQueueLimit) return reason.needed > reason.limit;
  return reason.code == WaitCode::kNoMatchingNode || reason.code == WaitCode::kNeverFits;
}

std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, QueueId queue,
                                                 const Resources& request) {
  for (QueueId id = queue;; id = state.queues().At(id).spec.parent) {
    const Queue& at = state.queues().At(id);
    const auto kind =
        FirstKind(state.interner(), request, [&](ResourceKind k) { return at.limit[k]; });
    if (kind.has_value()) return LimitOf(state, at, *kind, request, at.allocated);
    if (id == kRootQueue) return std::nullopt;
  }
}

namespace {

// What blocks the first division, if every one of them is blocked.
std::optional<BlockedVerdict> BeyondWithAny(
    const ClusterState& state, QueueId queue, const std::vector<JobNeeds>& divisions,
    absl::FunctionRef<Resources(const JobNeeds&)> request_of) {
  std::optional<BlockedVerdict> first;
  for (const JobNeeds& needs : divisions) {
    auto verdict = BeyondLimitVerdict(state, queue, request_of(needs));
    if (!verdict.has_value()) return std::nullopt;
    if (!first.has_value()) first = std::move(verdict);
  }
  return first;
}

}  // namespace

std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const JobSpec& spec) {
  return BeyondWithAny(state, spec.queue, FirstDivisionsOf(spec), [&](const JobNeeds& needs) {
    Resources request;
    for (const GroupNeed& need : needs.groups) {
      request += state.interner().AmountsOf(spec.groups[need.group].shape).Times(need.count);
    }
    return request;
  });
}

std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const Job& job) {
  return BeyondWithAny(state, job.queue, DivisionsOf(job),
                       [&](const JobNeeds& needs) { return RequestOf(state, job, needs); });
}

std::optional<BlockedVerdict> LimitVerdict(const ClusterState& state, QueueId queue,
                                           const Resources& request, Use use) {
  for (QueueId id = queue;; id = state.queues().At(id).spec.parent) {
    const Queue& at = state.queues().At(id);
    const Resources held = HeldBy(at, use);
    const auto kind =
        FirstKind(state.interner(), request, [&](ResourceKind k) { return at.limit[k] - held[k]; });
    if (kind.has_value()) {
      const auto never = BeyondLimitVerdict(state, queue, request);
      return never.has_value() ? *never : LimitOf(state, at, *kind, request, held);
    }
    if (id == kRootQueue) return std::nullopt;
  }
}

std::optional<BlockedVerdict> NonpreemptibleVerdict(const ClusterState& state, const Job& job,
                                                    const Resources& request, Use use) {
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& at = state.queues().At(id);
    Resources held = at.nonpreemptible;
    if (use == Use::kOnceReleased) held -= at.nonpreemptible_leaving;
    const auto kind = FirstKind(state.interner(), request,
                                [&](ResourceKind k) { return at.deserved_bound[k] - held[k]; });
    if (kind.has_value()) {
      BlockedVerdict verdict = Verdict(WaitCode::kNonPreemptibleQuota, WakeOn::kQueue);
      verdict.queue = id;
      verdict.resource = state.interner().KindName(*kind);
      verdict.needed = request[*kind];
      verdict.limit = at.deserved_bound[*kind];
      verdict.free = std::max<int64_t>(at.deserved_bound[*kind] - held[*kind], 0);
      return verdict;
    }
    if (id == kRootQueue) return std::nullopt;
  }
}

namespace {

// As the two functions below describe. `held`: what a queue holds; `below`: kept for those below
// it.
std::optional<BlockedVerdict> KeptFromOthers(const ClusterState& state, QueueId queue,
                                             const Resources& request,
                                             absl::FunctionRef<Resources(const Queue&)> held,
                                             absl::FunctionRef<Resources(const Queue&)> below) {
  const auto kept_for = [&](const Queue& at) { return KeptFor(at, held(at), below(at)); };
  Resources seeks = request;  // a resource that was found is no longer sought
  Resources for_others;
  for (QueueId id = queue;;) {
    const Queue& at = state.queues().At(id);
    const bool root = id == kRootQueue;
    const Resources& total = root ? state.capacity() : at.limit;
    const Resources holds = held(at);
    const auto kind = FirstKind(state.interner(), seeks, [&](ResourceKind k) {
      return for_others[k] == 0 ? kUnlimited : total[k] - holds[k] - for_others[k];
    });
    if (kind.has_value()) {
      BlockedVerdict verdict = Verdict(WaitCode::kGuaranteeKept, WakeOn::kQueue);
      verdict.queue = id;
      verdict.resource = state.interner().KindName(*kind);
      verdict.needed = request[*kind];
      verdict.limit = total[*kind];
      const int64_t free = total[*kind] - holds[*kind] - for_others[*kind];
      verdict.free = std::max<int64_t>(free, 0);
      verdict.detail = absl::StrCat(AmountText(for_others[*kind], UnitOf(*kind)),
                                    " are set aside for other queues");
      return verdict;
    }
    if (root) return std::nullopt;
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      const int64_t own = at.guarantee.amount[i] - holds.amount[i];
      if (seeks.amount[i] + for_others.amount[i] <= own) seeks.amount[i] = 0;
    }
    id = at.spec.parent;
    for_others += below(state.queues().At(id)) - kept_for(at);
  }
}

}  // namespace

std::optional<BlockedVerdict> GuaranteeVerdict(const ClusterState& state, QueueId queue,
                                               const Resources& request) {
  if (state.queues().At(kRootQueue).kept.IsZero()) return std::nullopt;
  return KeptFromOthers(
      state, queue, request, [](const Queue& at) { return at.allocated; },
      [](const Queue& at) { return at.kept; });
}

std::optional<BlockedVerdict> GuaranteeVerdictAfter(const ClusterState& state, QueueId queue,
                                                    const Resources& request, GoneOf gone) {
  const auto held = [&](const Queue& at) { return at.allocated - gone(at.id); };
  std::map<QueueId, Resources> below;  // children have larger ids than their parents
  for (auto id = state.next_queue_id(); id != kRootQueue;) {
    --id.value;
    const Queue* at = state.queues().Find(id);
    if (at == nullptr || id == kRootQueue) continue;
    below[at->spec.parent] += KeptFor(*at, held(*at), below[id]);
  }
  return KeptFromOthers(state, queue, request, held, [&](const Queue& at) { return below[at.id]; });
}

BlockedVerdict ShortageVerdict(const ClusterState& state, NodeSearch& search, const Job& job,
                               const JobNeeds& needs, int32_t placed, uint64_t* work) {
  if (auto never = NeverVerdict(state, search, job, needs, placed, work); never.has_value()) {
    return *never;
  }
  const Resources needed = RequestOf(state, job, needs);
  Resources free = state.free().total();
  int32_t counted = placed;  // returns what the trial itself took, in that order
  for (const GroupNeed& need : needs.groups) {
    const int32_t here = std::min(counted, need.count);
    free += state.interner().Shape(job.groups[need.group].shape).resources.Times(here);
    counted -= here;
  }
  const ResourceKind kind = Scarcest(state.interner(), needed, free);
  BlockedVerdict verdict = Verdict(WaitCode::kInsufficientResources, WakeOn::kRoom);
  verdict.resource = state.interner().KindName(kind);
  verdict.needed = needed[kind];
  verdict.free = free[kind];
  verdict.detail = absl::StrCat(placed, " of ", TasksIn(needs), " tasks fit");
  DescribeFullNodes(search, job, needs, placed, &verdict, work);
  DescribeSpread(search, job, needs, &verdict);
  return verdict;
}

bool LacksRoom(const BlockedVerdict& verdict) {
  const auto code = static_cast<WaitCode>(verdict.code);
  if (code == WaitCode::kJobAffinity) return verdict.wake == WakeOn::kRoom;
  return code == WaitCode::kInsufficientResources || code == WaitCode::kReserved;
}

bool WaitsForEnds(const BlockedVerdict& verdict) {
  const auto code = static_cast<WaitCode>(verdict.code);
  return LacksRoom(verdict) || code == WaitCode::kQueueLimit || code == WaitCode::kGuaranteeKept;
}

}  // namespace berth
