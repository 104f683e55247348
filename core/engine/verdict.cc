#include "core/engine/verdict.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/engine/placer.h"

namespace berth {
namespace {

BlockedVerdict Verdict(WaitCode code, WakeOn wake) {
  BlockedVerdict verdict;
  verdict.wake = wake;
  verdict.code = static_cast<uint8_t>(code);
  return verdict;
}

// The resource asked for whose share of what is there is largest; ties by name, as the order of
// kinds is an accident of history.
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

// The first by name of the resources that break the limit.
std::optional<ResourceKind> Broken(const Interner& interner, const Queue& queue,
                                   const Resources& request) {
  std::optional<ResourceKind> broken;
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (request[kind] == 0 || queue.allocated[kind] + request[kind] <= queue.limit[kind]) continue;
    if (!broken.has_value() || interner.KindName(kind) < interner.KindName(*broken)) broken = kind;
  }
  return broken;
}

// Groups of one shape compete for the same nodes: counted together.
int64_t NeededOfShape(const Job& job, const JobNeeds& needs, ShapeId shape) {
  int64_t tasks = 0;
  for (const GroupNeed& need : needs.groups) {
    if (job.groups[need.group].shape == shape) tasks += need.count;
  }
  return tasks;
}

std::optional<BlockedVerdict> NeverVerdict(const ClusterState& state, NodeSearch& search,
                                           const Job& job, const JobNeeds& needs, uint64_t* work) {
  for (const GroupNeed& need : needs.groups) {
    const Group& group = job.groups[need.group];
    const int64_t tasks = NeededOfShape(job, needs, group.shape);
    const EmptyFit fit = search.IfEmpty(group.shape, tasks, work);
    if (fit.tasks >= tasks) continue;
    const Resources& each = state.interner().Shape(group.shape).resources;
    BlockedVerdict verdict =
        Verdict(fit.any_node ? WaitCode::kNeverFits : WaitCode::kNoMatchingNode, WakeOn::kChange);
    const ResourceKind kind = Scarcest(state.interner(), each, state.free().total());
    verdict.resource = state.interner().KindName(kind);
    verdict.needed = each[kind] * tasks;
    verdict.free = each[kind] * fit.tasks;
    verdict.detail =
        fit.any_node ? absl::StrCat("all matching nodes together, even empty, hold ", fit.tasks,
                                    " of ", tasks, " tasks of group ", group.name)
                     : absl::StrCat("no node, even empty, can hold a task of group ", group.name);
    return verdict;
  }
  return std::nullopt;
}

}  // namespace

Resources RequestOf(const ClusterState& state, const Job& job, const JobNeeds& needs) {
  Resources sum;
  for (const GroupNeed& need : needs.groups) {
    const Resources& each = state.interner().Shape(job.groups[need.group].shape).resources;
    sum += need.count == 1 ? each : each.Times(need.count);
  }
  return sum;
}

std::optional<BlockedVerdict> QueueVerdict(const ClusterState& state, const Job& job) {
  const bool runs_already = job.occupying > 0;
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    const int32_t bound = queue.spec.max_running_jobs;
    if (!queue.open || (!runs_already && bound > 0 && queue.running_jobs >= bound)) {
      BlockedVerdict verdict = Verdict(
          queue.open ? WaitCode::kQueueRunningJobs : WaitCode::kQueueClosed, WakeOn::kQueue);
      verdict.queue = id;
      verdict.limit = queue.open ? bound : 0;
      return verdict;
    }
    if (id == kRootQueue) return std::nullopt;
  }
}

BlockedVerdict LimitVerdict(const ClusterState& state, QueueId queue, const Resources& request) {
  for (QueueId id = queue;; id = state.queues().At(id).spec.parent) {
    const Queue& at = state.queues().At(id);
    if (const auto kind = Broken(state.interner(), at, request); kind.has_value()) {
      BlockedVerdict verdict = Verdict(WaitCode::kQueueLimit, WakeOn::kQueue);
      verdict.queue = id;
      verdict.resource = state.interner().KindName(*kind);
      verdict.needed = request[*kind];
      verdict.limit = at.limit[*kind];
      verdict.free = std::max<int64_t>(at.limit[*kind] - at.allocated[*kind], 0);
      return verdict;
    }
    BERTH_CHECK(id != kRootQueue);
  }
}

BlockedVerdict ShortageVerdict(const ClusterState& state, NodeSearch& search, const Job& job,
                               const JobNeeds& needs, int32_t placed, uint64_t* work) {
  if (auto never = NeverVerdict(state, search, job, needs, work); never.has_value()) return *never;
  const Resources needed = RequestOf(state, job, needs);
  Resources free = state.free().total();
  int32_t counted = placed;  // give back what the trial itself took, in the order it took it
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
  verdict.detail = absl::StrCat(placed, " of ", TasksIn(needs), " tasks fit now");
  return verdict;
}

}  // namespace berth
