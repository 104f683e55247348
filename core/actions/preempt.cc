// preempt: does a job of lower priority in the same queue hold what this one needs? Victims are
// preemptible jobs of strictly lower priority, so of two jobs at most one can ever preempt the
// other. The queue's fair share limits preemption (core/engine/shares/queue_bounds.h). Resources
// that were reclaimed for a victim then count as reclaimed for the job. If the queue may not claim
// that much, such victims are spared, because other queues could take the resources back at once.
//
// Victims that ask for it are frozen instead of stopped (VictimPlanGoal::pauses), and jobs of equal
// priority may take turns that way (core/actions/turns.h).
//
// Places that a job of lower priority holds while it restarts (KeepsPlaces) are taken first:
// nothing runs there.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/actions/eviction.h"
#include "core/actions/turns.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/place/placer.h"
#include "core/engine/search/verdict.h"
#include "core/engine/shares/queue_bounds.h"
#include "core/engine/victims/domain_victims.h"
#include "core/engine/victims/protections.h"
#include "core/engine/victims/without_victims.h"
#include "core/model/pauses.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// How much more the queue may claim.
Resources ClaimRoom(Cycle& cycle, const Queue& queue) {
  return cycle.shares().At(queue.id).fair_share - queue.claimed;
}

bool HoldsClaims(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.claimed; });
}

// No job of the queue may give anything of a priority below that one.
bool NobodyBelow(const Queue& queue, int32_t priority) {
  const bool some = !queue.giving_jobs.empty() && queue.giving_jobs.rbegin()->priority < priority;
  return !some && queue.graded_jobs.empty();
}

VictimOutcome Plan(Cycle& cycle, UnitPool& pool, const Job& job, const JobNeeds& needs,
                   bool spare_claims) {
  const Queue& queue = cycle.state().queues().At(job.queue);
  const int32_t priority = PriorityOf(job, needs);
  if (NobodyBelow(queue, priority)) {
    const auto outcome = OutcomeWithoutVictims(cycle, job, needs, Borrowing::kNothing);
    if (outcome.has_value()) return *outcome;
  }
  const VictimPlanGoal goal{.job = job,
                            .needs = needs,
                            .reason = ReleaseReason::kPreempted,
                            .pauses = true,
                            .claim_room = ClaimRoom(cycle, queue),
                            .why = [priority](const Job&, int32_t of_victim) {
                              return absl::StrCat("its priority ", of_victim, " is below ",
                                                  priority);
                            }};
  return PlanVictims(cycle, goal, [&](UsefulJob useful) {
    UsefulJob of_these = std::move(useful);
    if (spare_claims) {
      of_these = [also = std::move(of_these)](const Job& victim) {
        return !HoldsClaims(victim) && (also == nullptr || also(victim));
      };
    }
    return std::make_unique<QueueVictims>(pool, cycle.state(), job.queue, job.id, priority,
                                          std::move(of_these));
  });
}

// Jobs of the queue with lower priority that hold places and of which nothing runs. The first to
// give way first.
std::vector<JobId> Holders(const Cycle& cycle, const Job& job) {
  std::vector<JobId> holders;
  for (JobId id : cycle.state().nominated_jobs()) {
    const Job& holder = cycle.state().jobs().At(id);
    const bool holds = KeepsPlaces(holder, cycle.now()) && holder.occupying == 0;
    const bool lower = holder.queue == job.queue && holder.priority < job.priority;
    if (holds && lower && holder.preemptible) holders.push_back(id);
  }
  std::sort(holders.begin(), holders.end(), [&](JobId a, JobId b) {
    const int32_t of_a = cycle.state().jobs().At(a).priority;
    const int32_t of_b = cycle.state().jobs().At(b).priority;
    return of_a != of_b ? of_a < of_b : b < a;
  });
  return holders;
}

void GiveUpHold(Cycle& cycle, const Job& holder, const Job& job) {
  const Look look{cycle.state(), holder, cycle.now(), cycle.policies().lifecycle()};
  Step step;
  DropPlaces(look, &step);
  step.push_back(WithStatus(look, [&](JobStatus& status) {
    status.places_until = absl::InfinitePast();
    status.message = absl::StrCat("gave up the places that it kept, for job ", job.name,
                                  ": its priority ", holder.priority, " is below ", job.priority);
  }));
  for (EventBody& decision : step) cycle.transaction().Decide(std::move(decision));
}

// The queue's bounds are those of evictions.
bool TakeHeldPlaces(Cycle& cycle, const Job& job, const JobNeeds& needs) {
  if (!needs.gang) return false;
  const std::vector<JobId> holders = Holders(cycle, job);
  if (holders.empty()) return false;
  const ClusterState& state = cycle.state();
  const Resources request = RequestOf(state, job, needs);
  const QueueBounds bounds = BoundsAbove(cycle, job.queue, request, Borrowing::kNothing);
  const Transaction::Mark mark = cycle.transaction().mark();
  Placer placer(cycle);
  for (JobId id : holders) {
    cycle.CountWork(1);
    GiveUpHold(cycle, state.jobs().At(id), job);
    if (!QueueRoom(state, bounds).Fits(job.queue, request)) continue;
    if (!placer.Serve(job).has_value()) return true;
  }
  cycle.transaction().RollbackTo(mark);
  return false;
}

// `protections` explains why no room was made; null if no explanation is needed.
RoomMade Preempt(Cycle& cycle, UnitPool& pool, const Job& job, const JobNeeds& needs,
                 Protections* protections) {
  if (TakeHeldPlaces(cycle, job, needs)) return {.decided = true};
  VictimOutcome outcome = Plan(cycle, pool, job, needs, /*spare_claims=*/false);
  const bool claims = !cycle.state().queues().At(job.queue).claimed.IsZero();
  const bool waits = outcome.waits_until != absl::InfiniteFuture();
  if (!outcome.decided && !waits && claims)
    outcome = Plan(cycle, pool, job, needs, /*spare_claims=*/true);
  if (!outcome.decided && !waits && needs.gang && TakesTurns(cycle.state(), job)) {
    const VictimOutcome turn = PlanTurn(cycle, pool, job, needs);
    outcome.decided = turn.decided;
    outcome.protected_until = std::min(outcome.protected_until, turn.protected_until);
  }
  if (outcome.decided || protections == nullptr) return ResultOf(cycle, outcome, "");
  return ResultOf(cycle, outcome,
                  protections->OfQueue(job, needs, PriorityOf(job, needs), outcome));
}

class PreemptAction final : public Action {
 public:
  absl::string_view name() const override { return "preempt"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    UnitPool pool(cycle);
    Protections protections(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return Preempt(cycle, pool, job, needs, &protections);
    });
    PassTurns(cycle);
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    UnitPool pool(cycle);
    return Preempt(cycle, pool, job, needs, nullptr).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakePreempt() { return std::make_unique<PreemptAction>(); }

}  // namespace berth
