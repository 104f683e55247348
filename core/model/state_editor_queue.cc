// StateEditor: queues, the mix of requests, and finished runs.
#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "core/base/check.h"
#include "core/model/state_editor_internal.h"

namespace berth {
namespace {

// Not inlined, so that the check for 0, which most edits of most sums are, is.
ABSL_ATTRIBUTE_NOINLINE void AddSigned(Resources& sum, const Resources& request, int sign) {
  if (sign > 0) sum += request;
  if (sign < 0) sum -= request;
}

// Numbers one by one, each only if it changes: reading them as a vector right after writing single
// ones would stall on all these writes.
void AddTo(QueueSums& sums, const Resources& request, const QueueChange& change) {
  QueueSums::ForEach(
      [&](const char*, auto& sum, auto more) {
        if (more == 0) return;
        if constexpr (std::is_same_v<decltype(sum), Resources&>) {
          AddSigned(sum, request, more);
        } else {
          sum += more;
        }
      },
      sums, change);
}

// True if all jobs that have not ended are in one queue, and there are some. O(depth x children).
bool OneLeafIsActive(const ClusterState& state) {
  const Queue* at = &state.queues().At(kRootQueue);
  const int64_t all = at->active_jobs;
  while (!at->children.empty()) {
    const auto has_all = [&](QueueId child) { return state.queues().At(child).active_jobs == all; };
    const auto found = std::find_if(at->children.begin(), at->children.end(), has_all);
    if (found == at->children.end()) return false;
    at = &state.queues().At(*found);
  }
  return all > 0;
}

}  // namespace

void StateEditor::ChangeQueues(QueueId leaf, const Resources& request, const QueueChange& change) {
  // Demand is the sum of allocated and wanted, which a bind does not change.
  if (change.allocated + change.wanted != 0) ShareChanged(state_.queues_.At(leaf));
  // While only one leaf was active, there was nothing to reclaim, and so no retries.
  const bool joins = facts() && change.active_jobs > 0 &&
                     state_.queues_.At(leaf).active_jobs == 0 && OneLeafIsActive(state_);
  std::optional<Resources> kept_more;  // change below, by this edit
  bool open = true;
  for (QueueId id = leaf;;) {
    Queue& queue = state_.queues_.At(id);
    const bool keeps = change.allocated != 0 && (queue.guarantees || kept_more.has_value());
    const Resources kept = keeps ? KeptFor(queue) : Resources{};
    if (kept_more.has_value()) queue.kept += *kept_more;
    AddTo(queue, request, change);
    if (keeps) kept_more = KeptFor(queue) - kept;
    open = open && queue.open;
    if (id == kRootQueue) break;
    id = queue.spec.parent;
  }
  // For a closed queue only allocated counts: what returns to it is not wanted by any job.
  if (!open && change.allocated != 0) ShareChanged(state_.queues_.At(leaf));
  if (joins) WakeAll();
}

void StateEditor::DeriveQueue(Queue& queue) {
  const auto derive = [this](const std::vector<NamedAmount>& amounts, int64_t absent) {
    Resources derived;
    derived.amount.fill(absent);
    for (const NamedAmount& a : amounts) derived[state_.interner_.AddKind(a.name)] = a.amount;
    return derived;
  };
  constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
  queue.limit = derive(queue.spec.limit, kNoBound);
  queue.deserved = derive(queue.spec.deserved, 0);
  queue.deserved_bound = derive(queue.spec.deserved, kNoBound);
  queue.guarantee = derive(queue.spec.guarantee, 0);
  queue.guarantees = !queue.guarantee.IsZero();
  ShareChanged(queue);
}

void StateEditor::ShareChanged(Queue& queue) {
  if (queue.share_changed) return;
  queue.share_changed = true;
  state_.changed_queues_.push_back(queue.id);
}

std::vector<QueueId> StateEditor::TakeChangedQueues() {
  for (QueueId id : state_.changed_queues_) {
    if (Queue* queue = state_.queues_.Find(id); queue != nullptr) queue->share_changed = false;
  }
  return std::exchange(state_.changed_queues_, {});
}

// Recomputed from here to the root: a guarantee changed, or a child was added or removed.
void StateEditor::KeepForChildren(Queue& parent) {
  for (Queue* at = &parent;; at = &state_.queues_.At(at->spec.parent)) {
    at->kept = Resources{};
    for (QueueId child : at->children) at->kept += KeptFor(state_.queues_.At(child));
    if (at->id == kRootQueue) return;
  }
}

// Recomputed when user_fairness changes.
void StateEditor::CountUsers(Queue& queue) {
  queue.user_allocated.clear();
  for (auto id = state_.jobs_.NextFrom(JobId{}); id.has_value();
       id = state_.jobs_.NextFrom(JobId{id->value + 1})) {
    const Job& job = state_.jobs_.At(*id);
    if (job.queue != queue.id) continue;
    touched_.push_back(*id);  // user_fairness decides whether users have separate classes
    for (size_t g = 0; g < job.groups.size(); ++g) {
      const GroupTally& tally = job.tallies[g];
      const int32_t tasks = tally.Occupying() + tally.Nominated();
      if (tasks == 0) continue;
      const Resources& one = state_.interner_.Shape(job.groups[g].shape).resources;
      ChangeUser(job, one.Times(tasks), 1);
    }
  }
}

void StateEditor::AddQueue(QueueId id, QueueSpec spec) {
  Queue& queue = state_.queues_.Insert(id, Queue{});
  queue.id = id;
  queue.spec = std::move(spec);
  DeriveQueue(queue);
  BERTH_CHECK(state_.queue_names_.emplace(queue.spec.name, id).second);
  std::vector<QueueId>& siblings = state_.queues_.At(queue.spec.parent).children;
  siblings.insert(std::upper_bound(siblings.begin(), siblings.end(), id), id);
  KeepForChildren(state_.queues_.At(queue.spec.parent));
  if (state_.next_queue_id_ <= id) state_.next_queue_id_ = QueueId{id.value + 1};
  if (facts()) state_.dirty_.queues.push_back(id);
}

void StateEditor::SetQueueSpec(QueueId id, QueueSpec spec) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(queue.spec.name == spec.name && queue.spec.parent == spec.parent);
  state_.queue_names_.erase(queue.spec.name);
  const UserFairness before = queue.spec.user_fairness;
  queue.spec = std::move(spec);
  state_.queue_names_.emplace(queue.spec.name, id);
  DeriveQueue(queue);
  if (id != kRootQueue) KeepForChildren(state_.queues_.At(queue.spec.parent));
  if (queue.spec.user_fairness != before) CountUsers(queue);
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();
}

void StateEditor::SetQueueUsage(QueueId id, std::vector<NamedAmount> usage) {
  Queue& queue = state_.queues_.At(id);
  if (queue.usage == usage) return;
  queue.usage = std::move(usage);
  ShareChanged(queue);
  if (facts()) state_.dirty_.usages.push_back(id);
}

// Stored with the root.
void StateEditor::SetUsageCharged(Time when) {
  state_.usage_charged_ = when;
  if (facts()) state_.dirty_.usages.push_back(kRootQueue);
}

void StateEditor::SetRequestMix(RequestMix mix) {
  state_.request_mix_ = std::move(mix);
  ++state_.request_mix_version_;
  if (facts()) state_.dirty_.request_mix = true;
}

void StateEditor::ChangeAccess(const AccessChange& change) {
  state_.access_.Apply(change);
  if (change.ChangesRights()) ++state_.access_version_;
  if (facts()) state_.dirty_.access = true;
}

void StateEditor::ChangePriorityClasses(const PriorityClassChange& change) {
  state_.priority_classes_.Apply(change);
  if (facts()) state_.dirty_.priority_classes = true;
}

void StateEditor::AddRun(RunId id, FinishedRun run) {
  const std::vector<RunId> dropped = state_.run_history_.Add(id, std::move(run));
  if (!facts()) return;
  state_.dirty_.runs.push_back(id);
  state_.dirty_.runs.insert(state_.dirty_.runs.end(), dropped.begin(), dropped.end());
}

// Pending tasks in or below a closed queue are not demand.
void StateEditor::DemandChangedBelow(Queue& queue) {
  ShareChanged(queue);
  for (QueueId child : queue.children) DemandChangedBelow(state_.queues_.At(child));
}

void StateEditor::SetQueueOpen(QueueId id, bool open) {
  Queue& queue = state_.queues_.At(id);
  if (queue.open != open) DemandChangedBelow(queue);
  queue.open = open;
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();
}

void StateEditor::EraseQueue(QueueId id) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(id != kRootQueue && queue.jobs == 0 && queue.children.empty());
  std::vector<QueueId>& siblings = state_.queues_.At(queue.spec.parent).children;
  siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  KeepForChildren(state_.queues_.At(queue.spec.parent));
  ShareChanged(queue);
  ShareChanged(state_.queues_.At(queue.spec.parent));
  AccessChange access{.revoke = state_.access_.GrantsAt(id)};
  if (!access.empty()) ChangeAccess(access);
  state_.queue_names_.erase(queue.spec.name);
  state_.queues_.Erase(id);
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();  // its guarantee is now free for others
}

}  // namespace berth
