// Random small clusters in which victims are paused, and jobs take turns. Whatever agents and users
// do: nothing is allocated twice, a job is paused as a whole, and all jobs end once nothing new
// happens.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

struct Seen {
  int pauses = 0;     // decided for other jobs
  int turns = 0;      // of these, for jobs of equal priority
  int evictions = 0;  // tasks
};

class PauseWorld {
 public:
  explicit PauseWorld(uint32_t seed)
      : dice_(seed), cluster_(testing::PoliciesWith({"allocate", "reclaim", "preempt"})) {
    for (int i = 0; i < 3; ++i) {
      cluster_.AddNode(absl::StrCat("n", i),
                       {.cpu = 8, .memory_gib = 16, .freezes = dice_.Chance(85)});
    }
    cluster_.AddQueue("q", {.max_running_jobs = dice_.Chance(20) ? 4 : 0,
                            .slice = dice_.Chance(50) ? absl::Seconds(30) : Duration()});
    cluster_.AddQueue("r", {.limit = {{"cpu", 24'000}}});
  }

  void Step() {
    if (!calm_ && dice_.Chance(25)) Submit();
    if (!calm_ && dice_.Chance(8)) Disturb();
    for (JobId id : Active()) Report(id);
    cluster_.PassTo(cluster_.now() + absl::Seconds(dice_.Below(8)));
    for (const EventBody& decision : cluster_.Settle()) Note(decision);
    Check();
  }

  void Calm() {
    calm_ = true;
    for (JobId id : Active()) {
      if (cluster_.status(id).suspended) {
        cluster_.Must(JobSuspended{.id = id, .suspended = false});
      }
    }
  }

  std::vector<JobId> Active() const {
    std::vector<JobId> active;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (!Ended(job.status.state)) active.push_back(id);
    });
    return active;
  }
  std::string Left() const {
    std::string left;
    for (JobId id : Active()) {
      absl::StrAppend(&left, cluster_.job(id).name, " ", cluster_.StateOf(id), " ",
                      cluster_.Tasks(id), " ", cluster_.status(id).message, "\n");
    }
    return left;
  }
  const Seen& seen() const { return seen_; }

 private:
  void Submit() {
    if (Active().size() > 12) return;
    JobShape shape{.queue = dice_.Chance(80) ? "q" : "r", .priority = dice_.Below(3)};
    shape.groups[0].replicas = dice_.Between(1, 3);
    shape.groups[0].cpu = dice_.Between(1, 8);
    shape.groups[0].memory_gib = dice_.Between(0, 9);
    if (dice_.Chance(20)) shape.groups[0].min_available = 1;
    shape.preemptible = dice_.Chance(90);
    const bool pauses = shape.preemptible && dice_.Chance(70);
    shape.preempt_mode = pauses ? PreemptMode::kPause : PreemptMode::kRequeue;
    shape.max_retries = 50;
    cluster_.Submit(absl::StrCat("j", ++submitted_), shape);
  }

  void Disturb() {
    const std::vector<JobId> active = Active();
    if (active.empty()) return;
    const JobId id = active[static_cast<size_t>(dice_.Below(static_cast<int>(active.size())))];
    const bool suspend = dice_.Chance(50), freeze = suspend && dice_.Chance(50);
    if (dice_.Chance(20)) {
      cluster_.Must(JobCancelled{.id = id});
    } else if (dice_.Chance(20)) {
      const NodeId node{static_cast<uint32_t>(dice_.Between(1, 3))};
      cluster_.Must(NodeSteered{.id = node, .cordoned = false, .draining = dice_.Chance(50)});
      cluster_.Must(NodeSteered{.id = node});
    } else {
      cluster_.Must(JobSuspended{.id = id, .suspended = suspend, .freeze = freeze});
    }
  }

  void Report(JobId id) {
    for (uint32_t i = 0; i < cluster_.job(id).tasks.size(); ++i) {
      const Task& task = cluster_.job(id).tasks[i];
      if (!calm_ && dice_.Chance(40)) continue;
      if (task.state == TaskState::kBound) cluster_.Report(id, i, ReportState::kPrepared);
      if (task.state == TaskState::kStarting) cluster_.Report(id, i, ReportState::kRunning);
      if (task.state == TaskState::kReleasing) cluster_.Report(id, i, ReportState::kExited, 143);
      if (task.state != TaskState::kRunning) continue;
      const bool ends = task.pause == PauseState::kRuns && dice_.Chance(3);
      if (BeingFrozen(task)) cluster_.Report(id, i, ReportState::kPaused);
      if (ends) cluster_.Report(id, i, ReportState::kExited, 0);
    }
  }

  void Note(const EventBody& decision) {
    if (const auto* released = std::get_if<TasksReleased>(&decision)) {
      if (IsEviction(released->reason)) seen_.evictions += static_cast<int>(released->tasks.size());
    }
    const auto* paused = std::get_if<TasksPaused>(&decision);
    if (paused == nullptr || paused->beneficiary == JobId{}) return;
    ++seen_.pauses;
    const Job* other = cluster_.state().jobs().Find(paused->beneficiary);
    const Job* victim = cluster_.state().jobs().Find(paused->job);
    if (other == nullptr || victim == nullptr) return;
    REQUIRE(victim->priority <= other->priority);
    REQUIRE(victim->queue == other->queue);
    REQUIRE(victim->preempt_mode == PreemptMode::kPause);
    seen_.turns += victim->priority == other->priority ? 1 : 0;
  }

  void Check() const {
    const ClusterState& state = cluster_.state();
    const absl::Status status = CheckConsistency(state);
    INFO(status.ToString());
    REQUIRE(status.ok());
    // From the tasks alone: those that are frozen use no CPU, and keep their memory.
    std::map<NodeId, std::pair<int64_t, int64_t>> used;
    state.jobs().ForEach([&](JobId, const Job& job) {
      bool frozen = false, runs = false;
      for (uint32_t i = 0; i < job.tasks.size(); ++i) {
        const Task& task = job.tasks[i];
        if (!Occupies(task.state)) continue;
        const Resources& each = state.interner().Shape(job.groups[GroupOf(job, i)].shape).resources;
        used[task.node].first += Frozen(task) ? 0 : each[kCpu];
        used[task.node].second += each[kMemory];
        frozen |= task.state == TaskState::kRunning && task.pause != PauseState::kRuns;
        runs |= task.state == TaskState::kRunning && task.pause == PauseState::kRuns;
      }
      std::string pauses;
      for (const Task& task : job.tasks) pauses += "RF#~"[static_cast<size_t>(task.pause)];
      INFO(job.name << " " << pauses << " " << cluster_.Tasks(job.id));
      if (Yields(job.status) && !job.status.suspended) REQUIRE_FALSE((frozen && runs));
    });
    for (const auto& [id, sum] : used) {
      REQUIRE(sum.first <= state.nodes().At(id).capacity[kCpu]);
      REQUIRE(sum.second <= state.nodes().At(id).capacity[kMemory]);
    }
    state.queues().ForEach([](QueueId, const Queue& queue) {
      REQUIRE((queue.allocated - queue.nominated).FitsIn(queue.limit));
    });
  }

  Dice dice_;
  TestCluster cluster_;
  Seen seen_;
  int submitted_ = 0;
  bool calm_ = false;
};

TEST_CASE("pauses for other jobs: nothing is allocated twice, and all jobs end") {
  Seen all;
  for (uint32_t seed = 1; seed <= Seeds(60); ++seed) {
    INFO("seed " << seed);
    PauseWorld world(seed);
    for (int i = 0; i < 200; ++i) world.Step();
    world.Calm();
    for (int i = 0; i < 3000 && !world.Active().empty(); ++i) world.Step();
    INFO(world.Left());
    REQUIRE(world.Active().empty());
    all.pauses += world.seen().pauses;
    all.turns += world.seen().turns;
    all.evictions += world.seen().evictions;
  }
  CHECK(all.pauses > 300);
  CHECK(all.turns > 50);
  CHECK(all.evictions > 300);
}

}  // namespace
}  // namespace berth
