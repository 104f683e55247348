#include "core/actions/eviction.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/engine_cache.h"
#include "core/engine/plan.h"
#include "core/engine/search/verdict.h"

namespace berth {

bool EvictionMayHelp(const BlockedVerdict& verdict) {
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

RoomMade ResultOf(const Cycle& cycle, const VictimOutcome& outcome, std::string barred) {
  if (outcome.decided) return {.decided = true};
  if (outcome.waits_until != absl::InfiniteFuture()) {
    return {.again = outcome.waits_until, .barred = std::move(barred)};
  }
  if (outcome.short_of_share) {
    return RefusedForShare(cycle, outcome.protected_until, std::move(barred));
  }
  return {.again = outcome.protected_until, .barred = std::move(barred)};
}

namespace {

const Job& FirstJob(const ClusterState& state, ClassId id) {
  return state.jobs().At(state.pending().Class(id).jobs.begin()->job);
}

// Also false if no amount of room helps, because the job exceeds a limit of a queue.
bool EvictionMayHelp(const ClusterState& state, ClassId id) {
  const PendingClass* c = state.pending().FindClass(id);
  if (c == nullptr || c->blocked == nullptr || c->jobs.empty()) return false;
  if (!berth::EvictionMayHelp(*c->blocked)) return false;
  return static_cast<WaitCode>(c->blocked->code) != WaitCode::kQueueLimit ||
         !BeyondLimitVerdict(state, FirstJob(state, id)).has_value();
}

// Whether a class from `*from` on, of the same queue, has a job that comes before the first of this
// class. The classes are in service order, so only the first other class of the queue is compared.
// `*from` is set to its position, for the next call.
bool OthersFirst(const ClusterState& state, ClassId id, const std::vector<ClassId>& missed,
                 size_t* from) {
  const PendingClass& c = state.pending().Class(id);
  for (; *from < missed.size(); ++*from) {
    if (missed[*from] == id || !EvictionMayHelp(state, missed[*from])) continue;
    const PendingClass& other = state.pending().Class(missed[*from]);
    if (other.demand.queue != c.demand.queue) continue;
    ClassKey theirs = ClassKeyOf(other.demand, *other.jobs.begin());
    ClassKey own = ClassKeyOf(c.demand, *c.jobs.begin());
    theirs.user = own.user = {};  // only the service order rotates between users
    return theirs < own;
  }
  return false;
}

// Each way is tried separately.
std::vector<JobNeeds> WaysToHelp(const Job& job) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.gang && job.groups.size() == 1) return {needs};
  if (needs.gang) return FewDivisionsOf(job);
  std::vector<JobNeeds> ways;
  for (const GroupNeed& need : needs.groups) ways.push_back({.gang = false, .groups = {need}});
  return ways;
}

RoomMade Help(const Job& job, const MakeRoom& make_room) {
  if (!job.preempts) return {.barred = "the job evicts no others: its preemptionPolicy is Never"};
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

// Helps the first job of the class, then the next ones while that succeeds. False if the budget
// ended.
bool HelpClass(Cycle& cycle, absl::string_view action, const std::vector<ClassId>& missed,
               size_t at, bool* served, const MakeRoom& make_room) {
  const ClusterState& state = cycle.state();
  StateEditor& editor = cycle.transaction().editor();
  const ClassId id = missed[at];
  RoomMade made{.decided = true};
  size_t others = at + 1;
  while (made.decided && EvictionMayHelp(state, id)) {
    if (*served && cycle.BudgetSpent()) return false;
    *served = true;
    cycle.CountWork(1);
    made = Help(FirstJob(state, id), make_room);
    if (!made.decided || !EvictionMayHelp(state, id)) break;
    if (OthersFirst(state, id, missed, &others)) break;
  }
  if (!EvictionMayHelp(state, id)) return true;
  if (made.decided) {
    editor.Reopen(id);
    return true;
  }
  editor.NoteAsked(id, {.action = std::string(action), .barred = made.barred});
  editor.Revisit(id, made.again);
  const QueueId queue = state.pending().Class(id).demand.queue;
  if (made.when_queue_shrinks) editor.RevisitWith(id, queue);
  return true;
}

// Classes, their jobs and what these refer to are far apart in memory.
void PrefetchMissed(const ClusterState& state, const std::vector<ClassId>& missed, size_t at) {
  constexpr size_t kParts = 4, kClass = 24, kJob = 12;
  constexpr size_t kJobBytes = 384;
  if (at + kClass < missed.size()) {
    state.pending().classes().Prefetch(missed[at + kClass], sizeof(PendingClass));
  }
  const auto job_of = [&](size_t ahead) -> std::optional<JobId> {
    if (at + ahead >= missed.size()) return std::nullopt;
    const PendingClass* c = state.pending().FindClass(missed[at + ahead]);
    if (c == nullptr || c->jobs.empty()) return std::nullopt;
    return c->jobs.begin()->job;
  };
  if (const auto id = job_of(kJob); id.has_value()) state.jobs().Prefetch(*id, kJobBytes);
  const auto id = job_of(kParts);
  const Job* job = id.has_value() ? state.jobs().Find(*id) : nullptr;
  if (job == nullptr) return;
  __builtin_prefetch(job->groups.data());
  __builtin_prefetch(job->tallies.data());
}

}  // namespace

void ForEachMissed(Cycle& cycle, absl::string_view action, const MakeRoom& make_room) {
  const std::vector<ClassId> missed = cycle.state().pending().missed();
  size_t& done = CacheOf(cycle.transaction().editor()).missed[std::string(action)];
  absl::flat_hash_set<ClassId> seen;
  for (bool served = false; done < missed.size(); ++done) {
    PrefetchMissed(cycle.state(), missed, done);
    if (!seen.insert(missed[done]).second) continue;
    if (!HelpClass(cycle, action, missed, done, &served, make_room)) return cycle.Cut();
  }
}

}  // namespace berth
