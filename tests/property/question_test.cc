// Dry runs and explanations leave no trace, not even in the planner's caches. Two equal random runs
// are compared, one of them with dry runs and explanations between cycles: both make the same
// decisions, with the same work, and wake at the same times.
#include <catch2/catch.hpp>

#include "core/engine/explain/explain.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::Describe;
using testing::GroupShape;
using testing::JobShape;
using testing::MakeJob;
using testing::TestCluster;

// Every other run uses predicted run times.
Policies AllActions(uint32_t seed) {
  PolicyConfig config;
  config.actions = {"allocate", "backfill", "consolidate", "reclaim", "preempt", "expire_gangs"};
  config.eviction.min_runtime = absl::Seconds(30);
  if (seed % 2 == 0) {
    config.job_orders = {"shortest_first"};
    config.prediction.enabled = true;
    config.shortest_first.age = absl::Minutes(3);
    config.backfill.fit = BackfillFit::kPredictedUnlessAged;
  }
  return *Policies::Create(config);
}

JobShape RandomShape(Dice& dice) {
  GroupShape group{.replicas = dice.Between(1, 5), .cpu = dice.Between(0, 2)};
  group.gpus = dice.Chance(8) ? 20 : dice.Below(5);  // more than any node has
  if (dice.Chance(25)) group.share = 50 * dice.Between(1, 19);
  group.min_available = dice.Chance(40) ? 1 : group.replicas;
  JobShape shape{
      .queue = dice.Chance(50) ? "a" : "b", .priority = dice.Below(3), .groups = {group}};
  shape.preemptible = dice.Chance(70);
  if (dice.Chance(60)) shape.walltime = absl::Minutes(dice.Between(1, 20));
  shape.suspended = dice.Chance(5);
  return shape;
}

// One of the two runs. All random choices except those of questions come from the same dice.
class Life {
 public:
  explicit Life(uint32_t seed) : cluster_(AllActions(seed)), dice_(seed) {
    for (int i = 0; i < 4; ++i)
      cluster_.AddNode(absl::StrCat("n", i), {.cpu = 8, .gpus = 4, .tasks_per_gpu = 3});
    cluster_.AddQueue("a", {.deserved = {{"gpu", 6}}, .guarantee = {{"gpu", dice_.Below(3)}}});
    cluster_.AddQueue("b", {.limit = {{"gpu", dice_.Between(6, 16)}}, .deserved = {{"gpu", 6}}});
    budget_ = dice_.Chance(40) ? static_cast<uint64_t>(dice_.Between(5, 60)) : kNoBudget;
  }

  void Happen() {
    cluster_.PassTo(cluster_.now() + absl::Seconds(dice_.Between(1, 40)));
    for (int i = dice_.Below(4); i > 0; --i) {
      cluster_.Submit(absl::StrCat("j", ++submitted_), RandomShape(dice_));
    }
    Answer();
    if (submitted_ == 0) return;
    const JobId id{static_cast<uint64_t>(dice_.Between(1, submitted_))};
    if (dice_.Chance(10)) (void)cluster_.Try(JobCancelled{.id = id});
    if (dice_.Chance(5)) (void)cluster_.Try(JobSuspended{.id = id, .suspended = dice_.Chance(40)});
    if (dice_.Chance(5)) {
      const Node& node = cluster_.node(absl::StrCat("n", dice_.Below(4)));
      cluster_.Must(NodeSteered{.id = node.id, .cordoned = !node.status.cordoned});
    }
  }

  void Ask(Dice& dice) {
    std::vector<JobId> waiting;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) waiting.push_back(id);
    });
    if (!waiting.empty() && dice.Chance(50)) {
      const JobId id = waiting[static_cast<size_t>(dice.Below(static_cast<int>(waiting.size())))];
      (void)Explain(cluster_.state(), cluster_.policies(), id, cluster_.now());
      return;
    }
    const JobShape shape = RandomShape(dice);
    const JobSpec spec = MakeJob("asked", cluster_.queue_id(shape.queue), shape);
    const uint64_t budget = dice.Chance(30) ? 20 : kQuestionBudget;
    (void)DryRun(cluster_.state(), cluster_.policies(), spec, cluster_.now(), std::nullopt, budget);
  }

  Plan Cycle() { return cluster_.Cycle(budget_); }
  const ClusterState& state() const { return cluster_.state(); }

 private:
  static constexpr uint64_t kNoBudget = TestCluster::kNoBudget;

  // Random reports of the agents.
  void Answer() {
    std::vector<JobId> jobs;
    cluster_.state().jobs().ForEach([&](JobId id, const Job&) { jobs.push_back(id); });
    for (JobId id : jobs) {
      const bool ends = dice_.Chance(8);
      for (uint32_t i = 0; i < cluster_.job(id).tasks.size(); ++i) {
        const TaskState state = cluster_.job(id).tasks[i].state;
        if (state == TaskState::kBound) cluster_.Report(id, i, ReportState::kPrepared);
        if (state == TaskState::kStarting) cluster_.Report(id, i, ReportState::kRunning);
        if (state == TaskState::kReleasing && dice_.Chance(60)) {
          cluster_.Report(id, i, ReportState::kExited, 143);
        }
        if (state == TaskState::kRunning && ends) cluster_.Report(id, i, ReportState::kExited);
      }
    }
  }

  TestCluster cluster_;
  Dice dice_;
  uint64_t budget_ = kNoBudget;
  int submitted_ = 0;
};

TEST_CASE("dry runs and explanations change neither later decisions nor the work for them") {
  size_t decisions = 0, evictions = 0, reservations = 0, never = 0, cut = 0, kept = 0;
  for (uint32_t seed = 1; seed <= 16; ++seed) {
    Life plain(seed), asked(seed);
    Dice dice(seed + 1000);
    for (int step = 0; step < 30; ++step) {
      INFO("seed " << seed << " step " << step);
      plain.Happen();
      asked.Happen();
      for (int i = dice.Below(3); i > 0; --i) asked.Ask(dice);
      REQUIRE(CheckConsistency(asked.state()).ok());
      plain.state().pending().classes().ForEach([&](ClassId, const PendingClass& c) {
        kept += c.blocked != nullptr && !c.jobs.empty() ? 1 : 0;
        never += c.never ? 1 : 0;
      });
      REQUIRE(plain.state().pending().ready_count() == asked.state().pending().ready_count());
      const Plan expected = plain.Cycle(), got = asked.Cycle();
      REQUIRE(Describe(asked.state(), got.decisions) ==
              Describe(plain.state(), expected.decisions));
      REQUIRE(got.counters == expected.counters);
      REQUIRE(got.exhausted == expected.exhausted);
      REQUIRE(got.wake_at == expected.wake_at);
      decisions += got.decisions.size();
      cut += got.exhausted ? 1 : 0;
      reservations += asked.state().reservations().size();
      for (const EventBody& decision : got.decisions) {
        const auto* released = std::get_if<TasksReleased>(&decision);
        evictions += released != nullptr && IsEviction(released->reason) ? 1 : 0;
      }
    }
  }
  CHECK(decisions > 450);
  CHECK(evictions > 8);
  CHECK(reservations > 30);
  CHECK(never > 15);
  CHECK(cut > 15);
  CHECK(kept > 150);
}

}  // namespace
}  // namespace berth
