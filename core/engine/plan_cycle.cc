#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/engine/cycle.h"
#include "core/engine/engine_cache.h"
#include "core/engine/lifecycle/lifecycle.h"
#include "core/engine/order/rank_stage.h"
#include "core/engine/place/nomination_stage.h"
#include "core/engine/place/reserve.h"
#include "core/engine/place/resume_stage.h"
#include "core/engine/plan.h"
#include "core/engine/shares/usage_stage.h"
#include "core/model/state_editor.h"

namespace berth {
namespace {

// In debug builds, small states are rebuilt and compared after each cycle.
#ifdef NDEBUG
constexpr size_t kCheckedObjects = 0;
#else
constexpr size_t kCheckedObjects = 64;
#endif

bool Small(const ClusterState& state) {
  return state.jobs().size() + state.nodes().size() <= kCheckedObjects;
}

// Every stage runs through here: decides whether it runs, and counts what it did.
template <class Stage>
void RunStage(Cycle& cycle, absl::string_view name, std::vector<StageCounters>* counters,
              Stage&& stage) {
  if (cycle.cut()) return;
  const uint64_t work = cycle.counters().work;
  const size_t decisions = cycle.transaction().decisions();
  stage();
  counters->push_back({.name = std::string(name),
                       .work = cycle.counters().work - work,
                       .decisions = cycle.transaction().decisions() - decisions});
}

// Decisions change what is due; the next cycle, right after they are applied, takes that into
// account.
Time WakeAt(const Cycle& cycle, const Plan& plan) {
  if (plan.exhausted || !plan.decisions.empty()) return cycle.now();
  const ClusterState& state = cycle.state();
  Time wake = std::min(cycle.wake_by(), NextCharge(state, cycle.policies().fair_share()));
  wake = std::min(wake, NextRankChange(state));
  const auto& revisits = state.pending().revisits();
  if (!revisits.empty()) wake = std::min(wake, revisits.begin()->first);
  if (!state.timers().empty()) wake = std::min(wake, state.timers().begin()->first);
  if (!state.drain_ends().empty()) wake = std::min(wake, state.drain_ends().begin()->first);
  const bool waiting = state.pending().job_count() > 0;
  if (waiting && !state.backoffs().empty()) wake = std::min(wake, state.backoffs().begin()->first);
  return std::min(wake, NextReservedStart(state, cycle.now()));
}

// Shares must not depend on where the budget ended. A job that can never fit counts as demand until
// the action that found this completes, possibly some cycles later.
void ActionEnded(Cycle& cycle, size_t action) {
  StateEditor& editor = cycle.transaction().editor();
  size_t& cut_in = CacheOf(editor).cut_in;
  if (cycle.cut()) {
    cut_in = std::max(cut_in, action);
  } else if (action >= cut_in) {
    editor.SettleNever();
  }
}

// All actions have completed.
void PassEnded(StateEditor& editor) {
  editor.ForgetMissed();
  CacheOf(editor).missed.clear();
  CacheOf(editor).cut_in = 0;
}

Plan RunCycle(ClusterState& state, const Policies& policies, Time now, uint64_t budget,
              bool adopt) {
  Plan plan;
  StateEditor(state).FollowTerms();
  Cycle cycle(state, policies, now, budget);
  RankJobs(cycle);
  RunStage(cycle, "lifecycle", &plan.stages, [&] { RunLifecycle(cycle); });
  cycle.transaction().editor().WakeReserved(policies.backfill().refresh);
  cycle.transaction().editor().WakeForRoom(
      [&](ShapeId shape, NodeId node) { return cycle.search().FitsNow(shape, node); });
  if (policies.fair_share().half_life > absl::ZeroDuration()) {
    RunStage(cycle, "usage", &plan.stages, [&] { ChargeUsage(cycle); });
  }
  // Before jobs that wait for places: those that are here wait for less.
  RunStage(cycle, "resume", &plan.stages, [&] { RunResumes(cycle); });
  RunStage(cycle, "nominate", &plan.stages, [&] { RunNominations(cycle); });
  RunStage(cycle, "reserve", &plan.stages, [&] { KeepReservations(cycle); });
  for (size_t i = 0; i < policies.actions().size() && !cycle.cut(); ++i) {
    const Action& action = *policies.actions()[i];
    RunStage(cycle, action.name(), &plan.stages, [&] { action.Run(cycle); });
    ActionEnded(cycle, i);
  }
  if (!cycle.cut()) PassEnded(cycle.transaction().editor());
  CacheOf(cycle.transaction().editor()).cut = cycle.cut();
  Transaction& transaction = cycle.transaction();
  plan.applied = adopt && transaction.Adoptable();
  plan.decisions = plan.applied ? transaction.Adopt() : transaction.Commit();
  plan.counters = cycle.counters();
  plan.exhausted = cycle.cut();
  plan.wake_at = WakeAt(cycle, plan);
  return plan;
}

}  // namespace

Plan PlanCycle(ClusterState& state, const Policies& policies, Time now, uint64_t budget) {
  if (!Small(state)) return RunCycle(state, policies, now, budget, /*adopt=*/false);
  const uint64_t before = Fingerprint(state);
  Plan plan = RunCycle(state, policies, now, budget, /*adopt=*/false);
  BERTH_CHECK(Fingerprint(state) == before);
  BERTH_CHECK(CheckConsistency(state).ok());
  return plan;
}

Plan PlanAndAdopt(ClusterState& state, const Policies& policies, Time now, uint64_t budget) {
  Plan plan = RunCycle(state, policies, now, budget, /*adopt=*/true);
  if (Small(state)) BERTH_CHECK(CheckConsistency(state).ok());
  return plan;
}

}  // namespace berth
