// Promises of explanations, on random clusters. Seeds are fixed.
//   - a dry run leaves no trace, and the submit that follows gets the predicted result
//   - every offered remedy has the promised effect once the job is replaced
//   - counts of nodes and devices add up; constraints block if and only if tasks lack room
//   - without new jobs, the jobs of one queue without limits start by the predicted time; between
//     queues the service order may change until then
#include <catch2/catch.hpp>
#include <map>

#include "core/engine/explain/explain.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/timeline.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::MakeJob;
using testing::TestCluster;
using testing::Timeline;

bool SaysNever(const WaitReason& reason) {
  return reason.code == WaitCode::kNeverFits || reason.code == WaitCode::kNoMatchingNode;
}

class World {
 public:
  explicit World(uint32_t seed, bool one_queue = false)
      : one_queue_(one_queue),
        dice_(seed),
        line_({.mode = BackfillMode::kConservative}),
        cluster_(line_.cluster) {
    for (int i = 0; i < 5; ++i) {
      testing::NodeShape shape{
          .cpu = dice_.Between(4, 12), .gpus = dice_.Between(0, 4), .tasks_per_gpu = 4};
      shape.model = dice_.Chance(50) ? "H100" : "A100";
      if (dice_.Chance(70)) shape.labels = {{"zone", "a"}};
      cluster_.AddNode(absl::StrCat("n", i), shape);
    }
    const int limit = dice_.Between(2, 8);
    cluster_.AddQueue(
        "a", one_queue_ ? testing::QueueShape{} : testing::QueueShape{.limit = {{"gpu", limit}}});
    cluster_.AddQueue("b", {.deserved = {{"gpu", dice_.Between(2, 8)}}});
    if (dice_.Chance(50)) {
      cluster_.Must(NodeSteered{.id = cluster_.node_id("n0"), .cordoned = true});
    }
    minute_ = 0;
    for (int i = 0; i < 12; ++i) {
      Submit();
      line_.To(minute_ += dice_.Below(3));
    }
  }

  std::vector<JobId> Waiting() const {
    std::vector<JobId> waiting;
    cluster_.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (job.status.state == JobState::kPending) waiting.push_back(id);
    });
    return waiting;
  }

  void CheckExplanation(JobId id) {
    const uint64_t before = Fingerprint(cluster_.state());
    const Explanation why = Explain(cluster_.state(), cluster_.policies(), id, cluster_.now());
    REQUIRE(Fingerprint(cluster_.state()) == before);
    REQUIRE_FALSE(why.reasons.empty());
    for (const GroupConstraints& counts : why.groups) CheckCounts(counts);
    for (const Remedy& remedy : why.remedies) CheckRemedy(id, why, remedy);
    if (why.estimate.unknown.empty()) {
      REQUIRE(why.estimate.earliest <= why.estimate.likely);
      REQUIRE(why.estimate.likely <= why.estimate.latest);
      REQUIRE(why.estimate.latest >= cluster_.now());
    }
    explained_ += 1;
  }

  void CheckDryRun() {
    const JobShape shape = RandomShape();
    const std::string name = absl::StrCat("j", ++submitted_);
    const auto said = DryRun(cluster_.state(), cluster_.policies(),
                             MakeJob(name, cluster_.queue_id(shape.queue), shape), cluster_.now());
    REQUIRE(said.ok());
    const JobId id = cluster_.Submit(name, shape);
    cluster_.Settle();
    REQUIRE(said->StartsNow() == (cluster_.status(id).starts > 0));
    for (const Placement& place : said->placements) {
      const Task& task = cluster_.job(id).tasks[place.task];
      REQUIRE(task.node == place.node);
      REQUIRE(task.devices == place.devices);
    }
    if (said->StartsNow()) return;
    REQUIRE(cluster_.Why(id).at(0).code == said->blockers.at(0).code);
  }

  // Every pending job with an estimate starts by its latest time.
  void CheckEstimates() {
    std::map<JobId, Time> foreseen;
    for (JobId id : Waiting()) {
      const auto estimate =
          EstimateStart(cluster_.state(), cluster_.policies(), id, cluster_.now());
      if (estimate.unknown.empty()) foreseen[id] = estimate.latest;
    }
    for (int i = 0; i < 600 && !foreseen.empty(); ++i) {
      line_.To(++minute_);
      for (auto it = foreseen.begin(); it != foreseen.end();) {
        const JobStatus& status = cluster_.status(it->first);
        INFO("job " << cluster_.job(it->first).name);
        if (status.starts > 0) {
          REQUIRE(status.bound <= it->second);
          estimated_ += 1;
          it = foreseen.erase(it);
        } else {
          REQUIRE(cluster_.now() <= it->second);
          ++it;
        }
      }
    }
  }

  // Applies the first remedy that starts a job at once, of the first job that has one.
  bool FollowOne() {
    for (JobId id : Waiting()) {
      const Explanation why = Explain(cluster_.state(), cluster_.policies(), id, cluster_.now());
      for (const Remedy& remedy : why.remedies) {
        if (!remedy.starts_now) continue;
        JobSpec changed = Applied(remedy, SpecOf(cluster_.state(), cluster_.job(id)));
        changed.name = "changed";
        cluster_.Must(JobCancelled{.id = id});
        const JobId twin = cluster_.state().next_job_id();
        cluster_.Must(JobSubmitted{.id = twin, .spec = changed});
        cluster_.Settle();
        REQUIRE(cluster_.status(twin).starts == 1);
        return true;
      }
    }
    return false;
  }

  int explained() const { return explained_; }
  int remedies() const { return remedies_; }
  int estimated() const { return estimated_; }

 private:
  JobShape RandomShape() {
    JobShape shape{.queue = one_queue_ || dice_.Chance(50) ? "a" : "b",
                   .groups = {{.replicas = dice_.Chance(50) ? 1 : dice_.Between(2, 5),
                               .cpu = dice_.Between(0, 5),
                               .gpus = dice_.Below(4)}},
                   .walltime = absl::Minutes(dice_.Between(1, 30)),
                   .preemptible = dice_.Chance(50)};
    if (dice_.Chance(25)) shape.groups[0].share = 50 * dice_.Between(1, 19);
    const bool any = shape.groups[0].gpus + shape.groups[0].share > 0;
    if (dice_.Chance(30) && any) shape.groups[0].models = {"H100"};
    if (dice_.Chance(30)) shape.groups[0].match_labels = {{"zone", "a"}};
    return shape;
  }
  void Submit() { cluster_.Submit(absl::StrCat("j", ++submitted_), RandomShape()); }

  void CheckCounts(const GroupConstraints& counts) {
    int64_t nodes = counts.nodes_left;
    int64_t devices = 0;
    for (const ConstraintCount& count : counts.constraints) {
      INFO(count.name);
      nodes += count.nodes_in_order;
      devices += count.devices_in_order;
      REQUIRE(count.nodes_in_order <= count.nodes_alone);
      REQUIRE(count.nodes_alone <= counts.nodes);
    }
    REQUIRE(nodes == counts.nodes);
    REQUIRE(devices <= counts.devices);
    REQUIRE(counts.blocking.empty() == (counts.tasks_left >= counts.needed_tasks));
  }

  void CheckRemedy(JobId id, const Explanation& why, const Remedy& remedy) {
    ++remedies_;
    if (remedy.kind == RemedyKind::kWait) {
      REQUIRE(remedy.time == why.estimate.latest);
      return;
    }
    const JobSpec changed = Applied(remedy, SpecOf(cluster_.state(), cluster_.job(id)));
    const auto tried = DryRun(cluster_.state(), cluster_.policies(), changed, cluster_.now(), id);
    REQUIRE(tried.ok());
    REQUIRE(tried->StartsNow() == remedy.starts_now);
    if (remedy.starts_now) return;
    REQUIRE(SaysNever(why.reasons[0]));
    REQUIRE((!tried->nominated.empty() || !SaysNever(tried->blockers.at(0))));
  }

  const bool one_queue_;
  Dice dice_;
  Timeline line_;
  TestCluster& cluster_;
  int minute_ = 0;
  int submitted_ = 0;
  int explained_ = 0;
  int remedies_ = 0;
  int estimated_ = 0;
};

TEST_CASE("explanations add up, and their remedies work") {
  int explained = 0, remedies = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (JobId id : world.Waiting()) world.CheckExplanation(id);
    explained += world.explained();
    remedies += world.remedies();
  }
  CHECK(explained > 100);  // otherwise the test proves little
  CHECK(remedies > 100);
}

// Like a user: cancel the job, submit it again with the remedy.
TEST_CASE("applying a remedy starts the job") {
  int followed = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    followed += world.FollowOne() ? 1 : 0;
  }
  CHECK(followed > 10);
}

TEST_CASE("a submit gets the result of its dry run") {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int i = 0; i < 10; ++i) world.CheckDryRun();
  }
}

TEST_CASE("without new jobs, jobs start by the estimated time") {
  int estimated = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    World world(seed, /*one_queue=*/true);
    world.CheckEstimates();
    estimated += world.estimated();
  }
  CHECK(estimated > 50);
}

}  // namespace
}  // namespace berth
