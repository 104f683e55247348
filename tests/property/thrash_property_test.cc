// Long random runs with reclaim and preempt: no eviction is undone by its victim, and every job
// that can run does so once arrivals stop.
#include <map>
#include <set>

#include "core/engine/shares/fair_share.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Gang;

class Rivals {
 public:
  explicit Rivals(uint32_t seed)
      : dice_(seed), contest_({"allocate", "consolidate", "reclaim", "preempt", "expire_gangs"}) {
    contest_.AddNodes("n", 4, {.gpus = 4});
    contest_.AddQueue("a", {.deserved = {{"gpu", dice_.Below(9)}}, .weight = dice_.Between(1, 3)});
    contest_.AddQueue("b", {.weight = dice_.Between(1, 3)});
    contest_.AddQueue("c", {.weight = dice_.Between(1, 3), .priority = dice_.Below(2)});
  }

  void Arrive() {
    const char* queues[] = {"a", "b", "c"};
    testing::JobShape shape = dice_.Chance(30) ? Elastic(1, dice_.Between(2, 4), 1)
                                               : Gang(dice_.Between(1, 3), dice_.Between(1, 4));
    shape.queue = queues[dice_.Below(3)];
    shape.priority = dice_.Below(3);
    shape.preemptible = dice_.Chance(90);
    contest_.Submit(absl::StrCat("j", ++submitted_), shape);
    took_from_.clear();
  }

  // Agents report at once; running tasks continue.
  void Serve(bool finish) {
    for (JobId id : Active()) {
      const Job& job = contest_.job(id);
      for (uint32_t t = 0; t < job.tasks.size(); ++t) Answer(id, t, finish);
    }
    Plan();
  }

  void Plan() {
    const Plan_ plan = contest_.Cycle();
    for (const EventBody& decision : plan.decisions) {
      const auto* released = std::get_if<TasksReleased>(&decision);
      if (released == nullptr || !IsEviction(released->reason) || !released->moves_to.empty()) {
        continue;
      }
      ++evictions_;
      // A victim has not evicted its evictor before, unless jobs came or ended since (shares follow
      // demand), or the victim's queue has borrowed since (the evictor took within its share).
      const bool took = took_from_.contains({released->job, released->beneficiary});
      REQUIRE((!took || Borrows(contest_.job(released->job).queue)));
      took_from_.insert({released->beneficiary, released->job});
    }
    REQUIRE(CheckConsistency(contest_.state()).ok());
  }

  std::vector<JobId> Active() const {
    std::vector<JobId> active;
    contest_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) active.push_back(id);
    });
    return active;
  }

  Contest& contest() { return contest_; }
  int evictions() const { return evictions_; }
  Dice& dice() { return dice_; }

 private:
  using Plan_ = berth::Plan;

  // Includes resources being released, as when the plan was made.
  bool Borrows(QueueId id) const {
    const ClusterState& state = contest_.state();
    const FairShares shares = FairSharesOf(state, contest_.policies().fair_share());
    const ResourceKind gpu = *state.interner().FindKind("gpu");
    return state.queues().At(id).allocated[gpu] > shares.At(id).fair_share[gpu];
  }

  void Answer(JobId id, uint32_t task, bool finish) {
    switch (contest_.job(id).tasks[task].state) {
      case TaskState::kBound:
        return contest_.Report(id, task, ReportState::kPrepared);
      case TaskState::kStarting:
        return contest_.Report(id, task, ReportState::kRunning);
      case TaskState::kReleasing:
        return contest_.Report(id, task, ReportState::kExited, 143, ExitCause::kKilled);
      case TaskState::kRunning:
        if (!finish || !dice_.Chance(20)) return;
        contest_.Report(id, task, ReportState::kExited);
        took_from_.clear();
        return;
      default:
        return;
    }
  }

  Dice dice_;
  Contest contest_;
  int submitted_ = 0;
  int evictions_ = 0;
  std::set<std::pair<JobId, JobId>> took_from_;  // (evictor, victim)
};

TEST_CASE("evictions are never undone by their victims, and end when arrivals end") {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Rivals rivals(seed);
    for (int i = 0; i < 120; ++i) {
      if (rivals.dice().Chance(25) && rivals.Active().size() < 25) rivals.Arrive();
      rivals.Serve(/*finish=*/rivals.dice().Chance(30));
      rivals.contest().Advance(absl::Seconds(rivals.dice().Below(20)));
    }
    // No arrivals and no ends: evictions must stop.
    for (int i = 0; i < 200; ++i) rivals.Serve(/*finish=*/false);
    const int at_rest = rivals.evictions();
    for (int i = 0; i < 50; ++i) {
      rivals.Serve(/*finish=*/false);
      rivals.contest().Advance(absl::Seconds(20));
    }
    REQUIRE(rivals.evictions() == at_rest);
    // Every job that could ever fit runs and ends.
    for (int i = 0; i < 600 && !rivals.Active().empty(); ++i) {
      rivals.Serve(/*finish=*/true);
      rivals.contest().Advance(absl::Seconds(20));
    }
    for (JobId id : rivals.Active()) {
      const auto why = rivals.contest().Why(id);
      INFO(rivals.contest().job(id).name << " " << rivals.contest().StateOf(id));
      REQUIRE_FALSE(why.empty());
      REQUIRE((why[0].code == WaitCode::kNeverFits || why[0].code == WaitCode::kNoMatchingNode ||
               why[0].code == WaitCode::kNonPreemptibleQuota));
    }
    evictions += rivals.evictions();
  }
  CHECK(evictions > 200);
}

}  // namespace
}  // namespace berth
