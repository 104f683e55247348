#include "core/engine/victims/mover.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/domain_victims.h"
#include "core/engine/victims/without_victims.h"

namespace berth {

namespace {

// Surplus tasks of a job are moved last.
bool MovesFirst(const VictimUnit& a, const VictimUnit& b) {
  if (a.rest != b.rest) return b.rest;
  return a.loss < b.loss;
}

// A move must be able to place again all that runs again with it. Members that have succeeded would
// run again too, if others that they belong to move, and have no place any more. A paused job would
// be on hold without its frozen tasks.
void KeepMovable(const ClusterState& state, std::vector<VictimUnit>* units) {
  const auto stays = [&](const VictimUnit& unit) {
    const Job& job = state.jobs().At(unit.job);
    return IsPaused(job.status) || (unit.rest && !SucceededToRerun(job).empty());
  };
  units->erase(std::remove_if(units->begin(), units->end(), stays), units->end());
}

}  // namespace

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
      for (auto key = queue.giving_jobs.rbegin(); key != queue.giving_jobs.rend(); ++key) {
        cycle.CountWork(1);
        maker.AddUnitsOf(state_.jobs().At(key->job), &units);
      }
    });
    KeepMovable(state_, &units);
    protected_until_ = maker.TakeProtectedUntil();
    std::stable_sort(units.begin(), units.end(), MovesFirst);
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
  AfterOthers(Cycle& cycle, std::unique_ptr<VictimSource> first, size_t count, JobId job,
              UsefulJob useful)
      : cycle_(cycle),
        state_(cycle.state()),
        first_(std::move(first)),
        left_(count),
        job_(job),
        useful_(std::move(useful)) {}
  std::optional<VictimUnit> Next() override {
    if (left_ > 0) {
      std::optional<VictimUnit> unit = first_->Next();
      left_ = unit.has_value() ? left_ - 1 : 0;
      if (unit.has_value()) Note(*unit);
      if (unit.has_value()) return unit;
    }
    if (!listed_) List();
    return next_ < units_.size() ? std::optional(units_[next_++]) : std::nullopt;
  }
  bool CouldGive(const Job& job) const override { return job.id != job_; }
  Time protected_until() const override { return first_->protected_until(); }

 private:
  void Note(const VictimUnit& unit) {
    for (uint32_t task : unit.tasks) {
      given_.insert({unit.job, task});
      nodes_.insert(state_.jobs().At(unit.job).tasks[task].node);
    }
  }
  void List() {
    listed_ = true;
    std::set<JobId> jobs;
    for (NodeId node : nodes_) {
      for (TaskKey key : state_.nodes().At(node).tasks) jobs.insert(key.job);
    }
    UnitMaker maker(state_, cycle_.policies().eviction(), cycle_.now());
    for (JobId id : jobs) {
      const Job& job = state_.jobs().At(id);
      cycle_.CountWork(1);
      if (id != job_ && (useful_ == nullptr || useful_(job))) maker.AddUnitsOf(job, &units_);
    }
    const auto given = [this](const VictimUnit& unit) {
      return given_.contains({unit.job, unit.tasks.front()});
    };
    units_.erase(std::remove_if(units_.begin(), units_.end(), given), units_.end());
    KeepMovable(state_, &units_);
    std::stable_sort(units_.begin(), units_.end(), MovesFirst);
    for (VictimUnit& unit : units_) unit.must_move = true;
  }

  Cycle& cycle_;
  const ClusterState& state_;
  const std::unique_ptr<VictimSource> first_;
  size_t left_;
  const JobId job_;
  const UsefulJob useful_;
  absl::flat_hash_set<std::pair<JobId, uint32_t>> given_;  // looked up only
  std::set<NodeId> nodes_;                                 // of what was given
  bool listed_ = false;
  std::vector<VictimUnit> units_;
  size_t next_ = 0;
};

Mover::Mover(Cycle& cycle) : cycle_(cycle) {}
Mover::~Mover() = default;

VictimOutcome Mover::MakeRoom(const Job& job, const JobNeeds& needs) {
  const Resources least = LeastOf(cycle_.state(), job, needs);
  if (!needs.gang) return {.barred = "no job is moved for tasks beyond the minimum"};
  if (!least.FitsIn(cycle_.state().free().total())) {
    return {.barred = "less is free in total than it requests"};
  }
  if (NobodyGives(cycle_.state())) {
    const auto outcome = OutcomeWithoutVictims(cycle_, job, needs, Borrowing::kAnything);
    if (outcome.has_value()) return *outcome;
  }
  if (victims_ == nullptr) victims_ = std::make_unique<Victims>(cycle_);
  const VictimPlanGoal goal{
      .job = job,
      .needs = needs,
      .reason = ReleaseReason::kConsolidated,
      .must_move = true,
      .borrowing = Borrowing::kAnything,
      .why = [](const Job&, int32_t) { return "what is free is fragmented"; }};
  return PlanVictims(cycle_, goal, [&](UsefulJob useful) {
    return std::make_unique<Besides>(*victims_, job.id, std::move(useful));
  });
}

std::unique_ptr<VictimSource> Mover::MovesAfter(std::unique_ptr<VictimSource> first, size_t count,
                                                const Job& job, UsefulJob useful) {
  return std::make_unique<AfterOthers>(cycle_, std::move(first), count, job.id, std::move(useful));
}

}  // namespace berth
