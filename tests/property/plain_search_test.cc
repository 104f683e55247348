// What planning leaves out, because it would find nothing, changes nothing: twin clusters, one of
// them with a filter that lets everything pass but may depend on anything, so that there every
// search is made. Both decide the same, and give the same reasons.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "core/engine/policies.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::TestCluster;

class Anywhere final : public NodeFilter {
 public:
  absl::string_view name() const override { return "test/anywhere"; }
  NodeTest Prepare(const ShapeRequest&) const override { return nullptr; }
};

Policies WithFilter(bool anywhere) {
  static const bool registered =
      RegisterPolicy(
          "test/anywhere",
          +[]() -> std::unique_ptr<NodeFilter> { return std::make_unique<Anywhere>(); })
          .ok();
  REQUIRE(registered);
  PolicyConfig config;
  config.actions = {"allocate", "backfill", "consolidate", "reclaim", "preempt", "expire_gangs"};
  if (anywhere) config.filters.push_back("test/anywhere");
  return *Policies::Create(config);
}

class Twins {
 public:
  explicit Twins(uint32_t seed) : dice_(seed), preemptible_(30 * dice_.Below(3)) {
    const int nodes = dice_.Between(3, 7);
    for (int n = 1; n <= nodes; ++n) {
      testing::NodeShape node{.cpu = 16 * dice_.Between(1, 3), .gpus = 8};
      node.memory_gib = 128 * dice_.Between(1, 3);
      node.model = dice_.Chance(70) ? "H100" : "A100";
      if (dice_.Chance(20)) node.taints = {{.key = "dedicated", .value = "x"}};
      Both([&](TestCluster& cluster) { cluster.AddNode(absl::StrCat("n", n), node); });
    }
    for (const char* name : {"a", "b", "c"}) {
      testing::QueueShape queue{.weight = dice_.Between(1, 3)};
      if (dice_.Chance(30)) queue.deserved = {{"gpu", dice_.Between(4, 24)}};
      if (dice_.Chance(20)) queue.limit = {{"gpu", dice_.Between(8, 32)}};
      if (dice_.Chance(20)) queue.guarantee = {{"gpu", dice_.Between(0, 4)}};
      Both([&](TestCluster& cluster) { cluster.AddQueue(name, queue); });
    }
  }

  void Step() {
    const auto pending = fast_.state().pending().job_count();
    for (int i = dice_.Below(8); i > 0 && pending < 60; --i) Submit();
    const Duration passed = absl::Seconds(dice_.Below(40));
    Both([&](TestCluster& cluster) { cluster.Advance(passed); });
    Plan();
    Report();
    Plan();
  }

  int64_t decisions() const { return decisions_; }
  int64_t waiting() const { return waiting_; }

 private:
  template <class Do>
  void Both(Do&& what) {
    what(fast_);
    what(plain_);
  }

  // Hardly two alike.
  void Submit() {
    static constexpr const char* kQueues[] = {"a", "b", "c"};
    static constexpr int kGpus[] = {0, 1, 1, 2, 4, 8};
    JobShape job{.queue = kQueues[dice_.Below(3)], .priority = dice_.Chance(20) ? 1 : 0};
    testing::GroupShape& group = job.groups[0];
    group.replicas = dice_.Chance(80) ? 1 : dice_.Between(2, 3);
    group.gpus = kGpus[dice_.Below(6)];
    group.cpu = dice_.Between(1, 1 + 4 * std::max(group.gpus, 1));
    group.memory_gib = dice_.Below(40);
    if (group.gpus > 0 && dice_.Chance(20)) group.models = {"H100"};
    if (dice_.Chance(20)) group.tolerations = {{.key = "dedicated", .value = "x"}};
    if (dice_.Chance(10)) group.strategy = Strategy::kSpread;
    if (dice_.Chance(80)) job.walltime = absl::Seconds(dice_.Between(20, 2000));
    job.preemptible = dice_.Chance(preemptible_);
    const std::string name = absl::StrCat("j", ++submitted_);
    Both([&](TestCluster& cluster) { cluster.Submit(name, job); });
  }

  // Tasks do what they were told, and a few jobs end.
  void Report() {
    std::vector<TaskReported> reports;
    fast_.state().jobs().ForEach([&](JobId id, const Job& job) {
      const bool ends = dice_.Chance(6);
      for (uint32_t t = 0; t < job.tasks.size(); ++t) {
        TaskReported report{.task = {id, t}, .attempt = job.tasks[t].attempt};
        const TaskState state = job.tasks[t].state;
        if (state == TaskState::kReleasing) {
          report.state = ReportState::kExited;
          report.exit_code = 143;
          report.cause = ExitCause::kKilled;
        } else if (state == TaskState::kRunning && ends) {
          report.state = ReportState::kExited;
        } else if (state == TaskState::kStarting) {
          report.state = ReportState::kRunning;
        } else if (state != TaskState::kBound) {
          continue;
        }
        reports.push_back(report);
      }
    });
    for (const TaskReported& report : reports) {
      Both([&](TestCluster& cluster) { cluster.Must(report); });
    }
  }

  void Plan() {
    while (true) {
      const berth::Plan fast = fast_.Cycle(), plain = plain_.Cycle();
      REQUIRE(fast.decisions.size() == plain.decisions.size());
      REQUIRE(Fingerprint(fast_.state()) == Fingerprint(plain_.state()));
      CompareReasons();
      if (fast.decisions.empty()) return;
      decisions_ += static_cast<int64_t>(fast.decisions.size());
    }
  }

  void CompareReasons() {
    fast_.state().jobs().ForEach([&](JobId id, const Job& job) {
      const auto why = WhyWaiting(fast_.state(), job, fast_.now());
      INFO(job.name);
      REQUIRE(why == WhyWaiting(plain_.state(), plain_.job(id), plain_.now()));
      waiting_ += why.empty() ? 0 : 1;
    });
  }

  Dice dice_;
  const int preemptible_;  // percent
  TestCluster fast_{WithFilter(false)}, plain_{WithFilter(true)};
  int submitted_ = 0;
  int64_t decisions_ = 0, waiting_ = 0;
};

TEST_CASE("plans are the same as with every search made") {
  const char* seeds = std::getenv("BERTH_SEEDS");
  const auto last = seeds == nullptr ? 40u : static_cast<uint32_t>(std::atoi(seeds));
  int64_t decisions = 0, waiting = 0;
  for (uint32_t seed = 1; seed <= last; ++seed) {
    INFO("seed " << seed);
    Twins twins(seed);
    for (int i = 0; i < 60; ++i) twins.Step();
    decisions += twins.decisions();
    waiting += twins.waiting();
  }
  CHECK(decisions > 10 * last);  // otherwise the test proves little
  CHECK(waiting > 100 * last);
}

}  // namespace
}  // namespace berth
