#include "core/engine/mover.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/engine/domain_victims.h"
#include "core/engine/verdict.h"

namespace berth {

// Units of all jobs, least loss first, for all plans of the cycle.
class Mover::Victims {
 public:
  explicit Victims(Cycle& cycle) : state_(cycle.state()), list_(ListAll(cycle)) {}

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

class Mover::Besides final : public VictimSource {
 public:
  Besides(Victims& all, JobId job, UsefulJob useful)
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
  Victims& all_;
  const JobId job_;
  const UsefulJob useful_;
  size_t next_ = 0;
};

class Mover::AfterOthers final : public VictimSource {
 public:
  AfterOthers(std::unique_ptr<VictimSource> first, size_t count,
              std::unique_ptr<VictimSource> others)
      : first_(std::move(first)), left_(count), others_(std::move(others)) {}
  std::optional<VictimUnit> Next() override {
    if (left_ > 0) {
      std::optional<VictimUnit> unit = first_->Next();
      left_ = unit.has_value() ? left_ - 1 : 0;
      if (unit.has_value()) {
        for (uint32_t task : unit->tasks) given_.insert({unit->job, task});
        return unit;
      }
    }
    std::optional<VictimUnit> unit = others_->Next();
    while (unit.has_value() && Given(*unit)) unit = others_->Next();
    if (unit.has_value()) unit->must_move = true;
    return unit;
  }
  bool CouldGive(const Job& job) const override { return others_->CouldGive(job); }
  Time protected_until() const override { return first_->protected_until(); }

 private:
  bool Given(const VictimUnit& unit) const {
    return given_.contains({unit.job, unit.tasks.front()});
  }

  const std::unique_ptr<VictimSource> first_;
  size_t left_;
  const std::unique_ptr<VictimSource> others_;
  absl::flat_hash_set<std::pair<JobId, uint32_t>> given_;  // looked up only
};

Mover::Mover(Cycle& cycle) : cycle_(cycle) {}
Mover::~Mover() = default;

VictimOutcome Mover::MakeRoom(const Job& job, const JobNeeds& needs) {
  const Resources least = LeastOf(cycle_.state(), job, needs);
  if (!needs.gang) return {.barred = "nobody is moved for one more task"};
  if (!least.FitsIn(cycle_.state().free().total())) {
    return {.barred = "less is free in all than it asks for"};
  }
  const VictimPlanGoal goal{
      .job = job,
      .needs = needs,
      .reason = ReleaseReason::kConsolidated,
      .must_move = true,
      .borrowing = Borrowing::kAnything,
      .why = [](const Job&, int32_t) { return "what is free lies in pieces"; }};
  return PlanVictims(cycle_, goal, [&](UsefulJob useful) {
    return std::make_unique<Besides>(all(), job.id, std::move(useful));
  });
}

std::unique_ptr<VictimSource> Mover::MovesAfter(std::unique_ptr<VictimSource> first, size_t count,
                                                const Job& job, UsefulJob useful) {
  return std::make_unique<AfterOthers>(std::move(first), count,
                                       std::make_unique<Besides>(all(), job.id, std::move(useful)));
}

Mover::Victims& Mover::all() {
  if (victims_ == nullptr) victims_ = std::make_unique<Victims>(cycle_);
  return *victims_;
}

}  // namespace berth
