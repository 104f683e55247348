// reclaim: does another queue hold what this one is entitled to?
// core/engine/victims/reclaim_victims.h has the rules, and why nothing can be reclaimed back. If
// the total that is free suffices, no job has to be evicted: others move, for a gang that
// consolidate would not move them for. If it does not, and the owed resources are fragmented, jobs
// that owe them are evicted and others move.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/actions/eviction.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/domain_victims.h"
#include "core/engine/victims/mover.h"
#include "core/engine/victims/protections.h"
#include "core/engine/victims/reclaim_victims.h"
#include "core/engine/victims/without_victims.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// Evicting this job of one task makes room for the request on its node.
bool MakesRoomAlone(const ClusterState& state, const Job& job, const Resources& request) {
  if (job.tasks.size() != 1 || !Holds(job.tasks[0])) return false;
  const Node& node = state.nodes().At(job.tasks[0].node);
  Resources room = node.capacity - node.allocated - node.reserved;
  room += state.interner().Shape(job.groups[0].shape).resources;
  return request.FitsIn(room);
}

class Reclaim {
 public:
  explicit Reclaim(Cycle& cycle)
      : cycle_(cycle),
        pool_(cycle),
        mover_(cycle),
        protections_(cycle),
        consolidates_(cycle.policies().HasAction("consolidate")) {}

  // `explain`: explain why, if no room is made.
  RoomMade MakeRoom(const Job& job, const JobNeeds& needs, bool explain) {
    const ClusterState& state = cycle_.state();
    const Queue& queue = state.queues().At(job.queue);
    // Other queues hold nothing. A job of another queue opens blocked classes (StateEditor).
    if (queue.active_jobs == state.queues().At(kRootQueue).active_jobs) {
      return {.barred = "no other queue holds any resources"};
    }
    const Resources request = RequestOf(state, job, needs);
    const FairShares::OfQueue& share = cycle_.shares().At(job.queue);
    SpareRoom spare(state, cycle_.shares());
    const QueueClaim claim = ClaimOf(queue, share, HeldAfterRelease(queue), request, spare);
    if (!claim.Lawful()) {
      return RefusedForShare(cycle_, absl::InfiniteFuture(), BeyondShare(queue, request, claim));
    }
    const bool others_move = job.preemptible && consolidates_;
    if (!others_move && mover_.MakeRoom(job, needs).decided) return {.decided = true};
    if (!AnyOwes(cycle_, job, request, claim.claimed)) {
      const auto outcome = OutcomeWithoutVictims(cycle_, job, needs, Borrowing::kIdle);
      if (outcome.has_value()) return Refused(job, request, *outcome, "", explain);
    }
    const VictimPlanGoal goal{
        .job = job,
        .needs = needs,
        .reason = ReleaseReason::kReclaimed,
        .borrowing = Borrowing::kIdle,
        .claims = true,
        .why = [&](const Job& victim, int32_t) { return Why(queue, victim); }};
    std::string spared;
    const MakeVictims owed = [&](UsefulJob useful) {
      return std::make_unique<ReclaimVictims>(cycle_, pool_, job, request, claim.claimed, &spared,
                                              std::move(useful));
    };
    const VictimOutcome outcome = PlanVictims(cycle_, goal, owed);
    if (outcome.waits_until != absl::InfiniteFuture()) {
      return ResultOf(cycle_, outcome,
                      explain ? protections_.OfOthers(job, request, outcome, spared) : "");
    }
    if (outcome.decided || TakeOneAlone(goal, owed)) return {.decided = true};
    if (!outcome.short_of_share && TakeAndMove(goal, owed)) return {.decided = true};
    return Refused(job, request, outcome, spared, explain);
  }

 private:
  static constexpr size_t kMostBesideMoves = 64;
  static constexpr int kMaxMoveTries = 16;  // failed tries, for all jobs of one run

  RoomMade Refused(const Job& job, const Resources& request, const VictimOutcome& outcome,
                   const std::string& spared, bool explain) {
    return RefusedForShare(cycle_, outcome.protected_until,
                           explain ? protections_.OfOthers(job, request, outcome, spared) : "");
  }

  // The first victims may bring their queue down to its share although one behind them would
  // suffice alone. Only for a single task: one job on its node then makes room for it.
  bool TakeOneAlone(const VictimPlanGoal& goal, const MakeVictims& owed) {
    if (!goal.needs.gang || TasksIn(goal.needs) != 1) return false;
    const ClusterState& state = cycle_.state();
    const Resources request = RequestOf(state, goal.job, goal.needs);
    const VictimOutcome outcome = PlanVictims(cycle_, goal, [&](UsefulJob useful) {
      return owed([&state, request, also = std::move(useful)](const Job& job) {
        return MakesRoomAlone(state, job, request) && (also == nullptr || also(job));
      });
    });
    return outcome.decided;
  }

  // Evicts the fewest debtors that make enough room in total, and moves other jobs to make the room
  // contiguous. Only debtors are evicted.
  bool TakeAndMove(const VictimPlanGoal& goal, const MakeVictims& owed) {
    if (move_tries_ >= kMaxMoveTries) return false;
    const auto [fewest, all] = EnoughTotal(goal, owed);
    for (size_t count = fewest; count > 0; count = std::min(4 * count, all)) {
      const VictimOutcome outcome = PlanVictims(cycle_, goal, [&](UsefulJob useful) {
        return mover_.MovesAfter(owed(useful), count, goal.job, useful);
      });
      if (outcome.decided) return true;
      ++move_tries_;
      if (count == all) break;
    }
    return false;
  }

  // How many debtors make enough room in total, and how many were found. {0, 0} if they do not
  // suffice or there are none.
  std::pair<size_t, size_t> EnoughTotal(const VictimPlanGoal& goal, const MakeVictims& owed) const {
    const ClusterState& state = cycle_.state();
    if (!goal.needs.gang) return {0, 0};
    const Resources least = LeastOf(state, goal.job, goal.needs);
    Resources room = state.free().total() + state.queues().At(kRootQueue).leaving;
    const std::unique_ptr<VictimSource> source = owed(nullptr);
    size_t enough = 0, all = 0;
    for (; all < kMostBesideMoves; ++all) {
      const std::optional<VictimUnit> unit = source->Next();
      if (!unit.has_value()) break;
      room += RequestOf(state, *unit);
      if (enough == 0 && least.FitsIn(room)) enough = all + 1;
    }
    return {enough, all};
  }

  // "queue a holds 3 of its fair share of 4 gpu, and the job requests 2"
  std::string BeyondShare(const Queue& queue, const Resources& request,
                          const QueueClaim& claim) const {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      if (!(claim.refused[i] || (claim.claimed.none() && claim.borrowed[i]))) continue;
      const ResourceKind kind{static_cast<uint8_t>(i)};
      const int64_t unit = UnitOf(kind);
      return absl::StrCat("queue ", queue.spec.name, " holds ",
                          AmountText(HeldAfterRelease(queue)[kind], unit), " of its fair share of ",
                          AmountText(cycle_.shares().At(queue.id).fair_share[kind], unit), " ",
                          cycle_.state().interner().KindName(kind), ", and the job requests ",
                          AmountText(request[kind], unit));
    }
    return "the job requests nothing that its queue may claim";
  }

  std::string Why(const Queue& queue, const Job& victim) const {
    return absl::StrCat("queue ", queue.spec.name, " is entitled to what queue ",
                        cycle_.state().queues().At(victim.queue).spec.name, " borrowed");
  }

  Cycle& cycle_;
  UnitPool pool_;
  Mover mover_;
  Protections protections_;
  const bool consolidates_;  // consolidate moves others for preemptible jobs
  int move_tries_ = 0;
};

class ReclaimAction final : public Action {
 public:
  absl::string_view name() const override { return "reclaim"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Reclaim reclaim(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return reclaim.MakeRoom(job, needs, /*explain=*/true);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    return Reclaim(cycle).MakeRoom(job, needs, /*explain=*/false).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeReclaim() { return std::make_unique<ReclaimAction>(); }

}  // namespace berth
