// consolidate: would a gang fit if others moved together? What is free suffices in sum, but lies in
// pieces. Preemptible jobs of any queue are stopped and started elsewhere, each at a place that is
// free at once; least loss first. Only for preemptible gangs: those that must never be stopped
// themselves may not stop others either.
//
//   n1: A - - -   n2: B - - -   gang of one task of 4: moves A to n2 (or B to n1)
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/actions/eviction.h"
#include "core/engine/domain_victims.h"
#include "core/engine/verdict.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// Units of all jobs, least loss first, for all plans of the cycle.
class AllVictims {
 public:
  explicit AllVictims(Cycle& cycle) : state_(cycle.state()), list_(ListAll(cycle)) {}

  UnitList& list() { return list_; }
  const ClusterState& state() const { return state_; }
  Time protected_until() const { return protected_until_; }

 private:
  std::vector<VictimUnit> ListAll(Cycle& cycle) {
    UnitMaker maker(state_, cycle.policies().eviction(), cycle.now());
    std::vector<VictimUnit> units;
    state_.queues().ForEach([&](QueueId, const Queue& queue) {
      for (auto key = queue.occupying_jobs.rbegin(); key != queue.occupying_jobs.rend(); ++key) {
        cycle.CountWork(1);
        maker.AddUnitsOf(state_.jobs().At(key->job), &units);
      }
    });
    protected_until_ = maker.TakeProtectedUntil();
    // Of one job the surplus stays before the rest.
    std::stable_sort(units.begin(), units.end(), [](const VictimUnit& a, const VictimUnit& b) {
      if (a.rest != b.rest) return b.rest;
      return a.loss < b.loss;
    });
    return units;
  }

  const ClusterState& state_;
  Time protected_until_ = absl::InfiniteFuture();
  UnitList list_;
};

class Besides final : public VictimSource {
 public:
  Besides(AllVictims& all, JobId job, UsefulJob useful)
      : all_(all), job_(job), useful_(std::move(useful)) {}
  std::optional<VictimUnit> Next() override {
    while (const VictimUnit* unit = all_.list().Next(all_.state(), &next_)) {
      if (unit->job == job_) continue;
      if (useful_ == nullptr || useful_(all_.state().jobs().At(unit->job))) return *unit;
    }
    return std::nullopt;
  }
  bool CouldGive(const Job& job) const override { return job.id != job_; }
  Time protected_until() const override { return all_.protected_until(); }

 private:
  AllVictims& all_;
  const JobId job_;
  const UsefulJob useful_;
  size_t next_ = 0;
};

class Consolidation {
 public:
  explicit Consolidation(Cycle& cycle) : cycle_(cycle) {}

  RoomMade MakeRoom(const Job& job, const JobNeeds& needs) {
    const Resources least = LeastOf(cycle_.state(), job, needs);
    const bool enough_in_sum = least.FitsIn(cycle_.state().free().total());
    if (!job.preemptible || !needs.gang || !enough_in_sum) return {};
    if (!victims_.has_value()) victims_.emplace(cycle_);
    const VictimPlanGoal goal{.job = job,
                              .needs = needs,
                              .reason = ReleaseReason::kConsolidated,
                              .must_move = true,
                              .why = [](const Job&) { return "what is free lies in pieces"; }};
    return CameOf(cycle_, PlanVictims(cycle_, goal, [&](UsefulJob useful) {
                    return std::make_unique<Besides>(*victims_, job.id, std::move(useful));
                  }));
  }

 private:
  Cycle& cycle_;
  std::optional<AllVictims> victims_;
};

class ConsolidateAction final : public Action {
 public:
  absl::string_view name() const override { return "consolidate"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Consolidation consolidation(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return consolidation.MakeRoom(job, needs);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    return Consolidation(cycle).MakeRoom(job, needs).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeConsolidate() { return std::make_unique<ConsolidateAction>(); }

}  // namespace berth
