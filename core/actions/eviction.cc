#include "core/actions/eviction.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/engine_cache.h"
#include "core/engine/plan.h"
#include "core/engine/verdict.h"

namespace berth {

bool MayBeHelped(const BlockedVerdict& verdict) {
  const auto code = static_cast<WaitCode>(verdict.code);
  if (code == WaitCode::kJobAffinity) return verdict.wake == WakeOn::kRoom;
  return code == WaitCode::kInsufficientResources || code == WaitCode::kQueueLimit ||
         code == WaitCode::kGuaranteeKept || code == WaitCode::kReserved;
}

RoomMade RefusedForShare(const Cycle& cycle, Time protected_until, std::string barred) {
  return {.again = std::min(protected_until, cycle.now() + kAskAgain),
          .when_queue_shrinks = true,
          .barred = std::move(barred)};
}

RoomMade CameOf(const Cycle& cycle, const VictimOutcome& outcome, std::string barred) {
  if (outcome.decided) return {.decided = true};
  if (outcome.short_of_share) {
    return RefusedForShare(cycle, outcome.protected_until, std::move(barred));
  }
  return {.again = outcome.protected_until, .barred = std::move(barred)};
}

namespace {

const Job& FirstJob(const ClusterState& state, ClassId id) {
  return state.jobs().At(state.pending().Class(id).jobs.begin()->job);
}

// False also for what no room lets start: it asks for more than a queue's limit.
bool MayBeHelped(const ClusterState& state, ClassId id) {
  const PendingClass* c = state.pending().FindClass(id);
  if (c == nullptr || c->blocked == nullptr || c->jobs.empty()) return false;
  if (!berth::MayBeHelped(*c->blocked)) return false;
  return static_cast<WaitCode>(c->blocked->code) != WaitCode::kQueueLimit ||
         !BeyondLimitVerdict(state, FirstJob(state, id)).has_value();
}

// Of the classes from `*from` on, one of the same queue has a job that goes before this one's
// first. In order of service: the first other class of the queue is the one to compare with, and
// `*from` is then where it stands, for the next time.
bool OthersFirst(const ClusterState& state, ClassId id, const std::vector<ClassId>& missed,
                 size_t* from) {
  const PendingClass& c = state.pending().Class(id);
  for (; *from < missed.size(); ++*from) {
    if (missed[*from] == id || !MayBeHelped(state, missed[*from])) continue;
    const PendingClass& other = state.pending().Class(missed[*from]);
    if (other.demand.queue != c.demand.queue) continue;
    ClassKey theirs = ClassKeyOf(other.demand, *other.jobs.begin());
    ClassKey own = ClassKeyOf(c.demand, *c.jobs.begin());
    theirs.user = own.user = {};  // turns between users are for the order of service
    return theirs < own;
  }
  return false;
}

// One way after the other.
std::vector<JobNeeds> WaysToHelp(const Job& job) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.gang) return FewDivisionsOf(job);
  std::vector<JobNeeds> ways;
  for (const GroupNeed& need : needs.groups) ways.push_back({.gang = false, .groups = {need}});
  return ways;
}

RoomMade Help(const Job& job, const MakeRoom& make_room) {
  if (!job.preempts) return {.barred = "nobody is stopped for it: its preemptionPolicy is Never"};
  RoomMade best;
  for (const JobNeeds& needs : WaysToHelp(job)) {
    const RoomMade made = make_room(job, needs);
    if (made.decided) return made;
    best.again = std::min(best.again, made.again);
    best.when_queue_shrinks |= made.when_queue_shrinks;
    if (best.barred.empty()) best.barred = made.barred;
  }
  return best;
}

// The first job of the class, and the next ones, as long as they are helped. False: the budget
// ended.
bool HelpClass(Cycle& cycle, absl::string_view action, const std::vector<ClassId>& missed,
               size_t at, bool* served, const MakeRoom& make_room) {
  const ClusterState& state = cycle.state();
  StateEditor& editor = cycle.transaction().editor();
  const ClassId id = missed[at];
  RoomMade made{.decided = true};
  size_t others = at + 1;
  while (made.decided && MayBeHelped(state, id)) {
    if (*served && cycle.SpentUp()) return false;
    *served = true;
    cycle.CountWork(1);
    made = Help(FirstJob(state, id), make_room);
    if (!made.decided || !MayBeHelped(state, id)) break;
    if (OthersFirst(state, id, missed, &others)) break;
  }
  if (!MayBeHelped(state, id)) return true;
  if (made.decided) {
    editor.Reopen(id);
    return true;
  }
  editor.TellAsked(id, {.action = std::string(action), .barred = made.barred});
  editor.Revisit(id, made.again);
  const QueueId queue = state.pending().Class(id).demand.queue;
  if (made.when_queue_shrinks) editor.RevisitWith(id, queue);
  return true;
}

}  // namespace

void ForEachMissed(Cycle& cycle, absl::string_view action, const MakeRoom& make_room) {
  const std::vector<ClassId> missed = cycle.state().pending().missed();
  size_t& done = CacheOf(cycle.transaction().editor()).missed[std::string(action)];
  absl::flat_hash_set<ClassId> seen;
  for (bool served = false; done < missed.size(); ++done) {
    if (!seen.insert(missed[done]).second) continue;
    if (!HelpClass(cycle, action, missed, done, &served, make_room)) return cycle.Cut();
  }
}

}  // namespace berth
