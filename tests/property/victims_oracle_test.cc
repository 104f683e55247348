// Eviction plans on random small clusters compared with brute force over all subsets of victims.
#include <algorithm>
#include <optional>
#include <set>

#include "core/engine/victims/victim_units.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;

// What a plan did: the evicted tasks, and the nomination of the gang.
struct Seen {
  std::set<TaskKey> gone;
  std::optional<TasksNominated> nominated;
};

Seen SeenIn(const std::vector<EventBody>& decisions, JobId beneficiary) {
  Seen seen;
  for (const EventBody& decision : decisions) {
    if (const auto* released = std::get_if<TasksReleased>(&decision)) {
      if (released->beneficiary != beneficiary) continue;
      for (uint32_t task : released->tasks) seen.gone.insert({released->job, task});
    }
    if (const auto* nominated = std::get_if<TasksNominated>(&decision)) {
      if (nominated->job == beneficiary) seen.nominated = *nominated;
    }
  }
  return seen;
}

// Equal tasks on equal devices: counting by node is exact.
bool Fits(const ClusterState& state, const Job& job, const std::set<TaskKey>& gone) {
  const int each = static_cast<int>(state.interner().Shape(job.groups[0].shape).device_count);
  int fits = 0;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    DeviceSet free = node.healthy;
    free -= TakenDevices(node).InUse();
    int devices = free.Count();
    for (TaskKey key : node.tasks) {
      if (gone.contains(key)) devices += state.jobs().At(key.job).tasks[key.task].devices.Count();
    }
    fits += devices / each;
  });
  return fits >= job.groups[0].min_available;
}

struct Choice {
  std::vector<VictimUnit> units;
  // nullopt if the rest of a job would be evicted while its surplus stays.
  std::optional<std::set<TaskKey>> Gone(unsigned subset) const {
    std::set<TaskKey> gone;
    for (size_t i = 0; i < units.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      for (size_t j = 0; j < units.size() && units[i].rest; ++j) {
        const bool stays = units[j].job == units[i].job && (subset >> j & 1) == 0;
        if (stays) return std::nullopt;
      }
      for (uint32_t task : units[i].tasks) gone.insert({units[i].job, task});
    }
    return gone;
  }
  int64_t Loss(unsigned subset) const {
    int64_t loss = 0;
    for (size_t i = 0; i < units.size(); ++i) loss += (subset >> i & 1) ? units[i].loss : 0;
    return loss;
  }
};

constexpr size_t kMaxUnits = 12;

// The least loss with which the job fits; nullopt if it fits with no subset.
std::optional<int64_t> LeastLoss(const ClusterState& state, const Job& job, const Choice& choice) {
  std::optional<int64_t> least;
  for (unsigned subset = 0; subset < 1U << choice.units.size(); ++subset) {
    const int64_t loss = choice.Loss(subset);
    if (least.has_value() && loss >= *least) continue;
    const auto gone = choice.Gone(subset);
    if (gone.has_value() && Fits(state, job, *gone)) least = loss;
  }
  return least;
}

// Every job keeps at least its minimum, or no task.
void CheckGangs(const ClusterState& state, const Seen& seen) {
  std::set<JobId> victims;
  for (TaskKey key : seen.gone) victims.insert(key.job);
  for (JobId id : victims) {
    const Job& job = state.jobs().At(id);
    int stay = 0, left = 0;
    for (uint32_t t = 0; t < job.tasks.size(); ++t) {
      const bool there = Occupies(job.tasks[t].state);
      stay += there && !seen.gone.contains({id, t}) ? 1 : 0;
      left += seen.gone.contains({id, t}) ? 1 : 0;
    }
    REQUIRE(left > 0);
    REQUIRE((stay == 0 || stay >= job.min_available));
  }
}

// Every unit is needed: with any one back (if it may stay alone), the gang no longer fits.
void CheckNobodyNeedless(const ClusterState& state, const Job& job, const Choice& choice,
                         const Seen& seen) {
  for (const VictimUnit& unit : choice.units) {
    if (!seen.gone.contains({unit.job, unit.tasks[0]})) continue;
    const bool with_rest =
        std::any_of(choice.units.begin(), choice.units.end(), [&](const VictimUnit& other) {
          return other.rest && other.job == unit.job &&
                 seen.gone.contains({other.job, other.tasks[0]});
        });
    if (with_rest && !unit.rest) continue;
    std::set<TaskKey> fewer = seen.gone;
    for (uint32_t task : unit.tasks) fewer.erase({unit.job, task});
    REQUIRE_FALSE(Fits(state, job, fewer));
  }
}

TEST_CASE("preempt against brute force: whole jobs, no needless eviction, loss within the bound") {
  int planned = 0, impossible = 0, large = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    Dice dice(seed);
    INFO("seed " << seed);
    Contest contest({"allocate", "preempt"});
    contest.AddNodes("n", dice.Between(1, 4), {.gpus = dice.Between(2, 4)});
    const int jobs = dice.Between(1, 6);
    for (int i = 0; i < jobs; ++i) {
      testing::JobShape shape = dice.Chance(30) ? Elastic(1, dice.Between(1, 3), 1)
                                                : Gang(dice.Between(1, 2), dice.Between(1, 3));
      shape.preemptible = dice.Chance(85);
      const JobId id = contest.Submit(absl::StrCat("j", i), shape);
      for (int round = 0; round < 4; ++round) contest.RunAll(id);
      contest.Advance(absl::Seconds(dice.Below(50)));
    }
    const JobId high = contest.Submit("high", Gang(dice.Between(1, 3), dice.Between(1, 4), "", 5));
    const Job& job = contest.job(high);
    Choice choice;
    UnitMaker maker(contest.state(), contest.policies().eviction(), contest.now());
    contest.state().jobs().ForEach([&](JobId id, const Job& other) {
      if (id != high) maker.AddUnitsOf(other, &choice.units);
    });
    if (choice.units.size() > kMaxUnits) continue;
    const bool fits_now = Fits(contest.state(), job, {});
    const Plan plan = PlanCycle(contest.state(), contest.policies(), contest.now(),
                                testing::TestCluster::kNoBudget);
    const Seen seen = SeenIn(plan.decisions, high);
    if (fits_now) {
      REQUIRE(seen.gone.empty());
      continue;
    }
    const std::optional<int64_t> least = LeastLoss(contest.state(), job, choice);
    REQUIRE(seen.nominated.has_value() == least.has_value());
    if (!least.has_value()) {
      REQUIRE(seen.gone.empty());
      ++impossible;
      continue;
    }
    ++planned;
    CheckGangs(contest.state(), seen);
    REQUIRE(Fits(contest.state(), job, seen.gone));
    CheckNobodyNeedless(contest.state(), job, choice, seen);
    int64_t loss = 0, units = 0;
    for (const VictimUnit& unit : choice.units) {
      if (!seen.gone.contains({unit.job, unit.tasks[0]})) continue;
      loss += unit.loss;
      ++units;
    }
    const bool all_whole = std::all_of(choice.units.begin(), choice.units.end(),
                                       [](const VictimUnit& unit) { return unit.rest; });
    if (all_whole) REQUIRE(loss <= units * *least);  // the order is by loss alone
    large += loss > *least ? 1 : 0;
    for (const EventBody& decision : plan.decisions) contest.Must(decision);
  }
  CHECK(planned > 300);
  CHECK(impossible > 100);
  CHECK(large * 5 < planned);  // mostly optimal
}

}  // namespace
}  // namespace berth
