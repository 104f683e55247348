#include "core/actions/eviction.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "core/engine/plan.h"

namespace berth {
namespace {

bool MayBeHelped(const ClusterState& state, ClassId id) {
  const PendingClass* c = state.pending().FindClass(id);
  if (c == nullptr || c->blocked == nullptr || c->jobs.empty()) return false;
  const auto code = static_cast<WaitCode>(c->blocked->code);
  return code == WaitCode::kInsufficientResources || code == WaitCode::kQueueLimit ||
         code == WaitCode::kGuaranteeKept;
}

const Job& FirstJob(const ClusterState& state, ClassId id) {
  return state.jobs().At(state.pending().Class(id).jobs.begin()->job);
}

// Of the classes from `from` on, one of the same queue has a job that goes before this one's first.
bool OthersFirst(const ClusterState& state, ClassId id, const std::vector<ClassId>& missed,
                 size_t from) {
  const PendingClass& c = state.pending().Class(id);
  for (size_t i = from; i < missed.size(); ++i) {
    if (missed[i] == id || !MayBeHelped(state, missed[i])) continue;
    const PendingClass& other = state.pending().Class(missed[i]);
    // In order of service: the first other class of the queue is the one to compare with.
    if (other.demand.queue == c.demand.queue) return *other.jobs.begin() < *c.jobs.begin();
  }
  return false;
}

RoomMade Help(const Job& job, const MakeRoom& make_room) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.empty()) return {};
  if (needs.gang) return make_room(job, needs);
  RoomMade best;
  for (const GroupNeed& need : needs.groups) {
    const RoomMade made = make_room(job, {.gang = false, .groups = {need}});
    if (made.decided) return made;
    best.again = std::min(best.again, made.again);
    best.when_queue_shrinks |= made.when_queue_shrinks;
  }
  return best;
}

}  // namespace

void ForEachMissed(Cycle& cycle, const MakeRoom& make_room) {
  const ClusterState& state = cycle.state();
  StateEditor& editor = cycle.transaction().editor();
  const std::vector<ClassId> missed = state.pending().missed();
  absl::flat_hash_set<ClassId> seen;
  for (size_t i = 0; i < missed.size(); ++i) {
    const ClassId id = missed[i];
    if (!seen.insert(id).second) continue;
    RoomMade made{.decided = true};
    while (made.decided && MayBeHelped(state, id)) {
      if (cycle.SpentUp()) return cycle.Cut();
      cycle.CountWork(1);
      made = Help(FirstJob(state, id), make_room);
      if (!made.decided || !MayBeHelped(state, id)) break;
      if (OthersFirst(state, id, missed, i + 1)) break;
    }
    if (!MayBeHelped(state, id)) continue;
    if (made.decided) {
      editor.Reopen(id);
      continue;
    }
    editor.Revisit(id, made.again);
    const QueueId queue = state.pending().Class(id).demand.queue;
    if (made.when_queue_shrinks) editor.RevisitWith(id, queue);
  }
}

}  // namespace berth
