// Reclaim over random trees of queues: it comes to rest, and at rest no job waits for resources to
// which its queue is entitled.
//
// Why the second holds if all GPUs are on one node and all jobs are preemptible: the fair shares of
// siblings add up to at most their parent's. So if a queue is below its share by as much as a job
// requests, the resources are free, or its siblings, or those of a queue above it, exceed their
// shares by as much. All that exceeds a share may be taken.
#include "core/engine/search/verdict.h"
#include "core/engine/shares/fair_share.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;
using testing::QueueShape;

// What a random contest may have besides preemptible jobs of one task on one node.
struct Mix {
  bool deserved = false;  // up to the capacity
  bool scaled = false;    // and beyond
  bool several_nodes = false;
  bool cpu = false;     // contended, too
  bool gangs = false;   // including elastic ones
  bool firm = false;    // non-preemptible jobs
  bool bounds = false;  // limits, guarantees, and queues that are not reclaimable
  std::vector<std::string> actions = {"allocate", "reclaim"};
};

class RandomTree {
 public:
  RandomTree(uint32_t seed, const Mix& mix) : mix_(mix), dice_(seed), contest_(mix.actions) {
    const int nodes = mix.several_nodes ? 4 : 1;
    contest_.AddNodes("n", nodes, {.cpu = 16, .gpus = kGpus / nodes});
    int left = mix.scaled ? 2 * kGpus : kGpus;
    for (int i = 0, count = dice_.Between(2, 4); i < count; ++i) {
      const std::string name = absl::StrCat("q", i);
      QueueShape shape = Weighted();
      if (mix.deserved && dice_.Chance(60)) {
        const int deserved = dice_.Below(left + 1);
        left -= deserved;
        if (mix.cpu && dice_.Chance(30)) shape.deserved = {{"cpu", dice_.Below(9) * 1000}};
        shape.deserved.push_back({"gpu", deserved});
      }
      if (mix.bounds) Bound(&shape);
      contest_.AddQueue(name, shape);
      const int children = dice_.Chance(50) ? dice_.Between(1, 3) : 0;
      for (int child = 0; child < children; ++child) {
        QueueShape below = Weighted();
        below.parent = name;
        if (mix.bounds && dice_.Chance(15)) below.reclaimable = false;
        contest_.AddQueue(absl::StrCat(name, "-", child), below);
        leaves_.push_back(absl::StrCat(name, "-", child));
      }
      if (children == 0) leaves_.push_back(name);
    }
  }

  void Arrive() {
    JobShape shape = Gang(1, dice_.Between(1, 8));
    if (mix_.gangs && dice_.Chance(60)) {
      shape = dice_.Chance(50) ? Elastic(1, dice_.Between(2, 4), dice_.Between(1, 3))
                               : Gang(dice_.Between(1, 3), dice_.Between(1, 4));
    }
    if (mix_.cpu) shape.groups[0].cpu = dice_.Below(6);
    if (mix_.cpu && dice_.Chance(25)) shape.groups[0].gpus = 0;
    if (mix_.firm && dice_.Chance(20)) shape = Firm(shape);
    shape.queue = leaves_[static_cast<size_t>(dice_.Below(static_cast<int>(leaves_.size())))];
    shape.priority = dice_.Below(3);
    contest_.Submit(absl::StrCat("j", ++submitted_), shape);
  }

  // One cycle, after the agents' reports about the previous one. Some running jobs end.
  void Serve(int finish_percent) {
    for (JobId id : Active()) {
      for (uint32_t t = 0; t < contest_.job(id).tasks.size(); ++t) Answer(id, t, finish_percent);
    }
    for (const EventBody& decision : contest_.Cycle().decisions) {
      const auto* released = std::get_if<TasksReleased>(&decision);
      if (released == nullptr || !IsEviction(released->reason)) continue;
      ++evictions_;
      absl::StrAppend(&lately_, testing::Describe(contest_.state(), decision), "\n");
    }
    REQUIRE(CheckConsistency(contest_.state()).ok());
    contest_.Advance(absl::Seconds(11));  // shares are requested again every 10 s
  }

  // Returns the number of evictions and moves in these rounds.
  int Rest(int rounds) {
    const int before = evictions_;
    lately_.clear();
    for (int i = 0; i < rounds; ++i) Serve(/*finish_percent=*/0);
    return evictions_ - before;
  }

  std::vector<JobId> Active() const {
    std::vector<JobId> active;
    contest_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) active.push_back(id);
    });
    return active;
  }

  // Pending jobs with which their queue would still be within its fair share of all requested
  // resources; and why they wait.
  std::string Owed() const {
    std::string owed;
    ForEachOwed([&](const Job& job, const std::vector<WaitReason>& reasons) {
      absl::StrAppend(&owed, job.name, " of ", contest_.state().queues().At(job.queue).spec.name,
                      "\n");
      for (const WaitReason& reason : reasons) {
        for (const RoomAsked& asked : reason.asked) {
          absl::StrAppend(&owed, "  ", asked.action, ": ", asked.barred, "\n");
        }
      }
    });
    return owed;
  }

  // Those of them that are short of room only and for which reclaim gives no reason.
  std::string Unexplained() const {
    std::string unexplained;
    ForEachOwed([&](const Job& job, const std::vector<WaitReason>& reasons) {
      for (const WaitReason& reason : reasons) {
        const bool room = reason.code == WaitCode::kInsufficientResources ||
                          reason.code == WaitCode::kGuaranteeKept ||
                          reason.code == WaitCode::kReserved;
        const bool explained =
            std::any_of(reason.asked.begin(), reason.asked.end(), [](const RoomAsked& asked) {
              return asked.action == "reclaim" && !asked.barred.empty();
            });
        if (room && !explained) absl::StrAppend(&unexplained, job.name, "\n");
      }
    });
    return unexplained;
  }

  Dice& dice() { return dice_; }
  // Evictions of the last Rest, one per line.
  const std::string& lately() const { return lately_; }
  int evictions() const { return evictions_; }

 private:
  static constexpr int kGpus = 16;

  template <class Visit>
  void ForEachOwed(Visit&& visit) const {
    const ClusterState& state = contest_.state();
    const FairShares shares = FairSharesOf(state, contest_.policies().fair_share());
    for (JobId id : Active()) {
      const Job& job = contest_.job(id);
      if (job.status.state != JobState::kPending) continue;
      const Resources asked = RequestOf(state, job, NeedsOf(job));
      const Resources with_job = state.queues().At(job.queue).allocated + asked;
      bool within = true;
      for (size_t i = 0; i < kMaxResourceKinds; ++i) {
        within &=
            asked.amount[i] == 0 || with_job.amount[i] <= shares.At(job.queue).fair_share.amount[i];
      }
      if (within) visit(job, WhyWaiting(state, job, contest_.now()));
    }
  }

  QueueShape Weighted() { return {.weight = dice_.Below(4), .priority = dice_.Chance(20) ? 1 : 0}; }

  void Bound(QueueShape* shape) {
    const int guarantee = dice_.Chance(25) ? dice_.Between(1, 3) : 0;
    if (guarantee > 0) shape->guarantee = {{"gpu", guarantee}};
    if (dice_.Chance(30)) shape->limit = {{"gpu", dice_.Between(std::max(guarantee, 4), kGpus)}};
    shape->reclaimable = !dice_.Chance(15);
  }

  void Answer(JobId id, uint32_t task, int finish_percent) {
    switch (contest_.job(id).tasks[task].state) {
      case TaskState::kBound:
        return contest_.Report(id, task, ReportState::kPrepared);
      case TaskState::kStarting:
        return contest_.Report(id, task, ReportState::kRunning);
      case TaskState::kReleasing:
        return contest_.Report(id, task, ReportState::kExited, 143, ExitCause::kKilled);
      case TaskState::kRunning:
        if (dice_.Chance(finish_percent)) contest_.Report(id, task, ReportState::kExited);
        return;
      default:
        return;
    }
  }

  const Mix mix_;
  Dice dice_;
  Contest contest_;
  std::vector<std::string> leaves_;
  int submitted_ = 0;
  int evictions_ = 0;
  std::string lately_;
};

// Arrivals and ends for a while, then neither. Returns the total number of evictions.
int LiveAndRest(RandomTree& tree) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      if (tree.dice().Chance(50) && tree.Active().size() < 25) tree.Arrive();
      tree.Serve(/*finish_percent=*/5);
    }
    tree.Rest(60);
    tree.Rest(20);
    REQUIRE(tree.lately() == "");
  }
  return tree.evictions();
}

TEST_CASE("reclaim: at rest no job waits for resources within its queue's fair share") {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= Seeds(120); ++seed) {
    INFO("seed " << seed);
    RandomTree tree(seed, {.deserved = seed % 2 == 0});
    evictions += LiveAndRest(tree);
    CHECK(tree.Owed() == "");
  }
  CHECK(evictions > 200);
}

TEST_CASE("reclaim and the other actions come to rest, whatever the mix") {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= Seeds(120); ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    Mix mix{.deserved = dice.Chance(70),
            .scaled = dice.Chance(50),
            .several_nodes = dice.Chance(50),
            .cpu = dice.Chance(50),
            .gangs = dice.Chance(70),
            .firm = dice.Chance(50),
            .bounds = dice.Chance(40)};
    if (dice.Chance(60)) {
      mix.actions = {"allocate", "backfill", "consolidate", "reclaim", "preempt", "expire_gangs"};
    }
    RandomTree tree(seed, mix);
    evictions += LiveAndRest(tree);
    CHECK(tree.Unexplained() == "");
  }
  CHECK(evictions > 200);
}

}  // namespace
}  // namespace berth
