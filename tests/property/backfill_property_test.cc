// Promises of reservations, over long random runs with exact walltimes. Seeds are fixed.
#include <catch2/catch.hpp>
#include <map>

#include "tests/property/dice.h"
#include "tests/unit/core/testing/timeline.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;
using testing::Timeline;

class Life {
 public:
  Life(uint32_t seed, BackfillMode mode)
      : dice_(seed),
        line_({.mode = mode,
               .reservations_per_queue = dice_.Between(1, 2),
               .reservations = dice_.Between(2, 4)}) {
    for (int i = 0; i < 4; ++i) {
      line_.cluster.AddNode(absl::StrCat("n", i), {.cpu = dice_.Between(4, 12),
                                                   .gpus = dice_.Between(0, 4),
                                                   .tasks_per_gpu = dice_.Between(1, 4),
                                                   .model = dice_.Chance(50) ? "H100" : "A100"});
    }
    for (const char* queue : {"a", "b"}) {
      line_.cluster.AddQueue(queue, {.limit = {{"gpu", dice_.Between(3, 12)}}});
    }
    line_.cluster.AddQueue("c");
  }

  void Step() {
    if (dice_.Chance(70)) Submit();
    minute_ += dice_.Chance(50) ? dice_.Below(8) : 0;
    line_.To(minute_);
    Check();
  }

  int64_t promises() const { return promises_; }

 private:
  void Submit() {
    static constexpr const char* kQueues[] = {"a", "b", "c"};
    JobShape shape{.queue = kQueues[dice_.Below(3)],
                   .groups = {{.replicas = dice_.Chance(70) ? 1 : dice_.Between(2, 4),
                               .cpu = dice_.Between(0, 5),
                               .gpus = dice_.Below(3)}},
                   .walltime = absl::Minutes(dice_.Between(1, 30))};
    if (dice_.Chance(20)) shape.groups[0].share = 100 * dice_.Between(1, 9);
    if (dice_.Chance(20)) shape.groups[0].models = {"H100"};
    const bool any = shape.groups[0].gpus + shape.groups[0].share > 0;
    if (!any) shape.groups[0].models.clear();
    line_.cluster.Submit(absl::StrCat("j", ++submitted_), shape);
  }

  // A promised start never moves later, and the job starts by then. Otherwise a promise ends only
  // when an older job of the queue gets a reservation.
  void Check() {
    const ClusterState& state = line_.cluster.state();
    for (auto it = promised_.begin(); it != promised_.end();) {
      const Job& job = state.jobs().At(it->first);
      const auto held = state.reservations().find(job.id);
      INFO("job " << job.name << " at " << minute_);
      if (job.status.starts > 0) {
        REQUIRE(job.status.bound <= it->second);
        it = promised_.erase(it);
      } else if (held == state.reservations().end()) {
        REQUIRE(OlderHasOne(job));
        it = promised_.erase(it);
      } else {
        REQUIRE(held->second.start <= it->second);
        REQUIRE(held->second.start > line_.cluster.now());
        ++it;
      }
    }
    for (const auto& [id, reservation] : state.reservations()) {
      promises_ += promised_.insert_or_assign(id, reservation.start).second ? 1 : 0;
    }
  }
  bool OlderHasOne(const Job& job) const {
    for (const auto& [id, reservation] : line_.cluster.state().reservations()) {
      const Job& other = line_.cluster.job(id);
      if (other.queue == job.queue && KeyOf(other) < KeyOf(job)) return true;
    }
    return false;
  }

  Dice dice_;
  Timeline line_;
  int minute_ = 0;
  int submitted_ = 0;
  int64_t promises_ = 0;
  std::map<JobId, Time> promised_;
};

TEST_CASE("no reserved start moves later, and jobs with a reservation start by then") {
  const BackfillMode mode = GENERATE(BackfillMode::kEasy, BackfillMode::kConservative);
  int64_t promises = 0;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Life life(seed, mode);
    for (int i = 0; i < 150; ++i) life.Step();
    promises += life.promises();
  }
  CHECK(promises > 100);  // otherwise the test proves little
}

TEST_CASE("a gang of all nodes starts under an endless stream of small jobs") {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    Timeline line;
    TestCluster& cluster = line.cluster;
    cluster.AddNodes("n", 64, {.cpu = 4, .gpus = 2});
    int submitted = 0;
    const auto stream = [&](int minute) {  // always more than there is room for
      while (cluster.state().pending().job_count() < 20) {
        cluster.Submit(absl::StrCat("s", ++submitted),
                       {.queue = "small",
                        .groups = {{.gpus = 1}},
                        .walltime = absl::Minutes(dice.Between(1, 20))});
        if (submitted % 64 == 0) line.To(minute);
      }
      line.To(minute);
    };
    for (int minute = 0; minute < 12; ++minute) stream(minute);
    Time longest = cluster.now();
    for (const auto& [end, id] : cluster.state().planned_ends()) longest = end;
    const JobId gang = cluster.Submit(
        "gang",
        {.queue = "large", .groups = {{.replicas = 64, .gpus = 2}}, .walltime = absl::Minutes(5)});
    for (int minute = 12; minute < 40 && cluster.status(gang).starts == 0; ++minute) {
      stream(minute);
    }
    REQUIRE(cluster.status(gang).starts == 1);
    CHECK(cluster.status(gang).bound <= longest);
    CHECK(submitted > 150);  // other jobs kept starting
  }
}

}  // namespace
}  // namespace berth
