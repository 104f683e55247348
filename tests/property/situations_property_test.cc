// Small situations in which some jobs hold what others are entitled to, varied at random: amounts,
// queues, weights, priorities, nodes, gang sizes, preemptibility. Each must come to rest; then no
// job waits for a promised place, nor for resources that a single job owes.
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/property/owed.h"
#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;
using testing::QueueShape;

std::vector<std::string> RandomActions(Dice& dice) {
  switch (dice.Below(4)) {
    case 0:
      return {"allocate", "reclaim"};
    case 1:
      return {"allocate", "consolidate", "reclaim", "preempt"};
    case 2:
      return {"allocate", "reclaim", "preempt"};
    default:
      return {"allocate", "backfill", "consolidate", "reclaim",
              "preempt",  "migrate",  "expire_gangs"};
  }
}

class Situation {
 public:
  explicit Situation(uint32_t seed) : dice_(seed), contest_(RandomActions(dice_)) {
    const int sizes[] = {1, 2, 4, 8};
    size_ = sizes[dice_.Below(4)];
    nodes_ = dice_.Between(1, 4);
    contest_.AddNodes("n", nodes_, {.cpu = 16, .gpus = size_});
    AddQueues();
    // Jobs of the first queues fill the nodes before the other queues submit.
    for (int i = 0; i < 12; ++i) Submit(dice_.Below(2));
    Rest(6);
    contest_.Advance(absl::Hours(1));
    for (int i = dice_.Between(1, 8); i > 0; --i) {
      Submit(dice_.Below(static_cast<int>(leaves_.size())));
    }
  }

  // Returns the number of evictions and moves in these rounds.
  int Rest(int rounds) {
    int evictions = 0;
    for (int i = 0; i < rounds; ++i) {
      contest_.state().jobs().ForEach([&](JobId id, const Job&) { ids_.push_back(id); });
      for (JobId id : std::exchange(ids_, {})) Answer(id);
      for (const EventBody& decision : contest_.Cycle().decisions) {
        const auto* released = std::get_if<TasksReleased>(&decision);
        evictions += released != nullptr && IsEviction(released->reason) ? 1 : 0;
      }
      REQUIRE(CheckConsistency(contest_.state()).ok());
      contest_.Advance(absl::Seconds(11));
    }
    return evictions;
  }

  // Tasks that still wait for a promised place, or are being released.
  int OnTheWay() const {
    int tasks = 0;
    contest_.state().jobs().ForEach([&](JobId, const Job& job) {
      for (const Task& task : job.tasks) {
        tasks += task.state == TaskState::kNominated || task.state == TaskState::kReleasing ? 1 : 0;
      }
    });
    return tasks;
  }
  std::vector<std::string> Debts() const {
    return testing::SingleDebts(contest_.state(), contest_.policies()).List();
  }

 private:
  void AddQueues() {
    const int style = dice_.Below(4);  // weights only; finite amounts; one unlimited; too much
    int left = nodes_ * size_ * (style == 3 ? 2 : 1);
    for (int i = 0, count = dice_.Between(2, 4); i < count; ++i) {
      QueueShape shape{.weight = dice_.Chance(30) ? 0 : dice_.Between(1, 3)};
      shape.priority = dice_.Chance(20) ? 1 : 0;
      const int deserved = dice_.Below(left + 1);
      if (style != 0 && dice_.Chance(70)) {
        shape.deserved = {{"gpu", deserved}};
        left -= deserved;
      }
      if (style == 2 && i == 1) shape.deserved = {{"gpu", kMaxAmount / kWhole}};
      const std::string name = absl::StrCat("q", i);
      contest_.AddQueue(name, shape);
      const int children = dice_.Chance(25) ? 2 : 0;
      for (int child = 0; child < children; ++child) {
        leaves_.push_back(absl::StrCat(name, "-", child));
        contest_.AddQueue(leaves_.back(), {.parent = name, .weight = dice_.Below(3)});
      }
      if (children == 0) leaves_.push_back(name);
    }
  }

  void Submit(int queue) {
    JobShape shape = Gang(1, dice_.Between(1, size_));
    if (dice_.Chance(20)) shape = Gang(dice_.Between(2, 4), dice_.Between(1, size_));
    if (dice_.Chance(15)) shape = Elastic(1, dice_.Between(2, 4), 1);
    if (dice_.Chance(25)) shape.groups[0].cpu = dice_.Below(9);
    if (dice_.Chance(20)) shape = Firm(shape);
    shape.priority = dice_.Chance(30) ? dice_.Below(3) : 0;
    shape.queue = leaves_[static_cast<size_t>(queue)];
    contest_.Submit(absl::StrCat("j", ++submitted_), shape);
  }

  void Answer(JobId id) {
    for (uint32_t t = 0; t < contest_.job(id).tasks.size(); ++t) {
      switch (contest_.job(id).tasks[t].state) {
        case TaskState::kBound:
          contest_.Report(id, t, ReportState::kPrepared);
          break;
        case TaskState::kStarting:
          contest_.Report(id, t, ReportState::kRunning);
          break;
        case TaskState::kReleasing:
          contest_.Report(id, t, ReportState::kExited, 143, ExitCause::kKilled);
          break;
        default:
          break;
      }
    }
  }

  Dice dice_;
  Contest contest_;
  int size_ = 0;
  int nodes_ = 0;
  std::vector<std::string> leaves_;
  std::vector<JobId> ids_;
  int submitted_ = 0;
};

TEST_CASE("reclaim: varied situations come to rest, and no single job owes what another needs") {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= Seeds(2000); ++seed) {
    INFO("seed " << seed);
    Situation situation(seed);
    evictions += situation.Rest(20);
    for (int more = 0; more < 5 && situation.Rest(6) > 0; ++more) continue;
    CHECK(situation.Rest(6) == 0);
    CHECK(situation.OnTheWay() == 0);
    CHECK(situation.Debts() == std::vector<std::string>{});
  }
  CHECK(evictions > 500);
}

}  // namespace
}  // namespace berth
