// Tables for allocate: which job gets which place, and why others wait.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::Describe;
using testing::GroupShape;
using testing::JobShape;
using testing::NodeShape;
using testing::TestCluster;

JobShape Gpus(int tasks, int gpus, const std::string& queue = "") {
  return {.queue = queue, .groups = {{.replicas = tasks, .gpus = gpus}}};
}

TEST_CASE("a gang is placed whole, or takes nothing while it is pending") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 2});
  const JobId gang = cluster.Submit("gang", Gpus(4, 2));
  const JobId small = cluster.Submit("small", Gpus(3, 2));
  cluster.Settle();
  CHECK(cluster.Where(gang) == "- - - -");
  CHECK(cluster.Where(small) == "n1 n2 n3");
  CHECK(cluster.StateOf(gang) == "Pending");
  CHECK(cluster.StateOf(small) == "Binding");
  CHECK(cluster.status(small).starts == 1);
}

TEST_CASE("the reason why a gang does not fit has numbers") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 2});
  const JobId first = cluster.Submit("first", Gpus(2, 1));
  const JobId gang = cluster.Submit("gang", Gpus(4, 2));
  cluster.Settle();
  REQUIRE(cluster.Where(first) == "n1 n1");
  const auto why = cluster.Why(gang);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kInsufficientResources);
  CHECK(why[0].resource == "gpu");
  CHECK(why[0].needed == 8 * kWhole);
  CHECK(why[0].free == 6 * kWhole);
  CHECK(why[0].detail == "3 of 4 tasks fit");
}

TEST_CASE("a job that can never fit is distinguished from one that does not fit now") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 4});
  const JobId wide = cluster.Submit("wide", Gpus(1, 5));
  const JobId many = cluster.Submit("many", Gpus(7, 2));
  const JobId labelled =
      cluster.Submit("labelled", {.groups = {{.match_labels = {{"zone", "a"}}}}});
  const JobId none = cluster.Submit("none", {.groups = {{.cpu = 65}}});
  cluster.Settle();
  CHECK(cluster.Why(wide)[0].code == WaitCode::kNoMatchingNode);
  CHECK(cluster.Why(wide)[0].resource == "gpu");
  CHECK(cluster.Why(many)[0].code == WaitCode::kNeverFits);
  CHECK(cluster.Why(many)[0].needed == 14 * kWhole);
  CHECK(cluster.Why(many)[0].free == 12 * kWhole);
  CHECK(cluster.Why(labelled)[0].code == WaitCode::kNoMatchingNode);
  CHECK(cluster.Why(none)[0].code == WaitCode::kNoMatchingNode);
  CHECK(cluster.Why(none)[0].resource == "cpu");
}

TEST_CASE("higher priority first, then submission order") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 1});
  JobShape urgent = Gpus(1, 1);
  urgent.priority = 5;
  const JobId a = cluster.Submit("a", Gpus(1, 1));
  const JobId b = cluster.Submit("b", Gpus(1, 1));
  const JobId c = cluster.Submit("c", urgent);
  cluster.Settle();
  CHECK(cluster.Where(c) == "n1");
  CHECK(cluster.Where(a) == "n2");
  CHECK(cluster.Where(b) == "-");
}

TEST_CASE("a job that does not fit lets others go first") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 2});
  const JobId big = cluster.Submit("big", Gpus(2, 2));
  const JobId small = cluster.Submit("small", Gpus(1, 1));
  cluster.Settle();
  CHECK(cluster.Where(big) == "- -");
  CHECK(cluster.Where(small) == "n1");
}

TEST_CASE("limits apply at every level of the queue tree") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 4});
  cluster.AddQueue("org", {.limit = {{"gpu", 6}}});
  cluster.AddQueue("a", {.parent = "org", .limit = {{"gpu", 4}}, .priority = 1});
  cluster.AddQueue("b", {.parent = "org"});
  const JobId a1 = cluster.Submit("a1", Gpus(1, 4, "a"));
  const JobId a2 = cluster.Submit("a2", Gpus(1, 1, "a"));
  const JobId b1 = cluster.Submit("b1", Gpus(1, 3, "b"));
  const JobId b2 = cluster.Submit("b2", Gpus(1, 2, "b"));
  cluster.Settle();
  CHECK(cluster.Where(a1) == "n1");
  CHECK(cluster.Where(b2) == "n2");
  const auto own = cluster.Why(a2);
  REQUIRE(own.size() == 1);
  CHECK(own[0].code == WaitCode::kQueueLimit);
  CHECK(own[0].queue == cluster.queue_id("a"));
  CHECK(own[0].resource == "gpu");
  CHECK(own[0].limit == 4 * kWhole);
  CHECK(own[0].free == 0);
  const auto parent = cluster.Why(b1);
  REQUIRE(parent.size() == 1);
  CHECK(parent[0].queue == cluster.queue_id("org"));
  CHECK(parent[0].needed == 3 * kWhole);
  CHECK(parent[0].free == 2 * kWhole);
}

TEST_CASE("max_running_jobs limits the whole subtree") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 4});
  cluster.AddQueue("org", {.max_running_jobs = 2});
  cluster.AddQueue("a", {.parent = "org"});
  cluster.AddQueue("b", {.parent = "org"});
  const JobId a1 = cluster.Submit("a1", Gpus(1, 1, "a"));
  const JobId b1 = cluster.Submit("b1", Gpus(1, 1, "b"));
  const JobId a2 = cluster.Submit("a2", Gpus(1, 1, "a"));
  cluster.Settle();
  CHECK(cluster.Where(a2) == "-");
  CHECK(cluster.Why(a2)[0].code == WaitCode::kQueueRunningJobs);
  CHECK(cluster.Why(a2)[0].queue == cluster.queue_id("org"));
  CHECK(cluster.Why(a2)[0].limit == 2);
  cluster.RunAll(a1);
  cluster.Exit(a1, 0);
  CHECK(cluster.StateOf(a1) == "Succeeded");
  CHECK(cluster.Where(a2) == "n1");
  CHECK(cluster.Where(b1) == "n1");
}

TEST_CASE("a closed queue starts nothing, nor does a queue below a closed one") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 4});
  cluster.AddQueue("org");
  cluster.AddQueue("a", {.parent = "org"});
  const JobId job = cluster.Submit("j", Gpus(1, 1, "a"));
  cluster.Must(QueueOpened{.id = cluster.queue_id("org"), .open = false});
  cluster.Settle();
  CHECK(cluster.Where(job) == "-");
  CHECK(cluster.Why(job)[0].code == WaitCode::kQueueClosed);
  CHECK(cluster.Why(job)[0].queue == cluster.queue_id("org"));
  cluster.Must(QueueOpened{.id = cluster.queue_id("org"), .open = true});
  cluster.Settle();
  CHECK(cluster.Where(job) == "n1");
}

TEST_CASE("best fit: fewest free devices, then least free cpu, then lowest id") {
  struct Row {
    const char* name;
    int gpus;
    int64_t cpu;
    const char* where;
  };
  const Row row = GENERATE(Row{"smallest node that holds it", 2, 1, "two"},
                           Row{"next level when too small", 3, 1, "four-tight"},
                           Row{"least free cpu among equals", 4, 1, "four-tight"},
                           Row{"cpu jumps over the tight one", 4, 9, "four-roomy"},
                           Row{"without devices: the node without", 0, 1, "cpu"},
                           Row{"without devices, too much cpu for it", 0, 32, "two"});
  TestCluster cluster;
  cluster.AddNode("four-roomy", {.cpu = 64, .gpus = 4});
  cluster.AddNode("two", {.cpu = 64, .gpus = 2});
  cluster.AddNode("four-tight", {.cpu = 8, .gpus = 4});
  cluster.AddNode("cpu", {.cpu = 16});
  const JobId job = cluster.Submit("j", {.groups = {{.cpu = row.cpu, .gpus = row.gpus}}});
  cluster.Settle();
  INFO(row.name);
  CHECK(cluster.Where(job) == row.where);
}

TEST_CASE("the lowest matching devices are chosen, and nodes without matching models are skipped") {
  TestCluster cluster;
  cluster.AddNode("a", {.gpus = 4, .model = "A100"});
  cluster.AddNode("h", {.gpus = 8, .model = "H100"});
  const JobId any = cluster.Submit("any", Gpus(2, 1));
  const JobId h100 =
      cluster.Submit("h100", {.groups = {{.replicas = 1, .gpus = 3, .models = {"H100", "H200"}}}});
  cluster.Settle();
  CHECK(cluster.Where(any) == "a a");
  CHECK(cluster.job(any).tasks[1].devices.bits[0] == 2);
  CHECK(cluster.Where(h100) == "h");
  CHECK(cluster.job(h100).tasks[0].devices.bits[0] == 7);
}

TEST_CASE("uuid lists, minimum memory and denied models restrict devices") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 4, .gpu_memory_gib = 40});
  JobSpec spec = testing::MakeJob("j", cluster.AddQueue("q"), Gpus(1, 1));
  DeviceRequest& gpu = spec.groups[0].shape.devices[0];
  SECTION("allowed") {
    gpu.allow_uuids = {"n-gpu-2", "n-gpu-3"};
    cluster.Must(JobSubmitted{.id = JobId{1}, .spec = spec});
    cluster.Settle();
    CHECK(cluster.job(JobId{1}).tasks[0].devices.bits[0] == 4);
  }
  SECTION("denied") {
    gpu.deny_uuids = {"n-gpu-0"};
    cluster.Must(JobSubmitted{.id = JobId{1}, .spec = spec});
    cluster.Settle();
    CHECK(cluster.job(JobId{1}).tasks[0].devices.bits[0] == 2);
  }
  SECTION("too little memory") {
    gpu.min_memory_bytes = int64_t{80} << 30;
    cluster.Must(JobSubmitted{.id = JobId{1}, .spec = spec});
    cluster.Settle();
    CHECK(cluster.Why(JobId{1})[0].code == WaitCode::kNoMatchingNode);
  }
  SECTION("denied model") {
    gpu.deny_models = {"H100"};
    cluster.Must(JobSubmitted{.id = JobId{1}, .spec = spec});
    cluster.Settle();
    CHECK(cluster.Why(JobId{1})[0].code == WaitCode::kNoMatchingNode);
  }
}

TEST_CASE("tasks that do not tolerate a taint stay off the node") {
  struct Row {
    Toleration toleration;
    bool fits;
  };
  const Row row = GENERATE(Row{{"team", "x"}, true}, Row{{"team", ""}, true}, Row{{"", ""}, true},
                           Row{{"team", "y"}, false}, Row{{"other", "x"}, false});
  TestCluster cluster;
  cluster.AddNode("n", {.taints = {{"team", "x"}}});
  const JobId job = cluster.Submit("j", {.groups = {{.tolerations = {row.toleration}}}});
  cluster.Settle();
  CHECK((cluster.Where(job) == "n") == row.fits);
}

TEST_CASE("node selector: all labels must match, and excluded nodes are skipped") {
  TestCluster cluster;
  cluster.AddNode("n1", {.labels = {{"zone", "a"}, {"disk", "ssd"}}});
  cluster.AddNode("n2", {.labels = {{"zone", "a"}}});
  cluster.AddNode("n3", {.labels = {{"zone", "b"}}});
  const JobId both =
      cluster.Submit("both", {.groups = {{.match_labels = {{"zone", "a"}, {"disk", "ssd"}}}}});
  const JobId excluding = cluster.Submit(
      "ex", {.groups = {{.match_labels = {{"zone", "a"}}, .exclude_nodes = {"n1"}}}});
  cluster.Settle();
  CHECK(cluster.Where(both) == "n1");
  CHECK(cluster.Where(excluding) == "n2");
}

TEST_CASE("cordoned, silent and draining nodes accept no new tasks") {
  TestCluster cluster;
  cluster.AddNodes("n", 3);
  cluster.Must(NodeSteered{.id = cluster.node_id("n1"), .cordoned = true});
  cluster.Must(NodeSilenced{.id = cluster.node_id("n2")});
  const JobId job = cluster.Submit("j", {.groups = {{.replicas = 3, .cpu = 40}}});
  cluster.Settle();
  CHECK(cluster.Where(job) == "- - -");
  CHECK(cluster.Why(job)[0].code == WaitCode::kInsufficientResources);  // not "never"
  cluster.Must(NodeSteered{.id = cluster.node_id("n1")});
  cluster.Must(NodeRegistered{
      .id = cluster.node_id("n2"), .spec = cluster.node("n2").spec, .epoch = 2, .agent_id = "n2"});
  cluster.Settle();
  CHECK(cluster.Where(job) == "n1 n2 n3");
}

TEST_CASE("an elastic gang starts with its minimum and grows when there is room") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 1});
  const JobId elastic =
      cluster.Submit("e", {.groups = {{.replicas = 4, .min_available = 2, .gpus = 1}}});
  cluster.Settle();
  CHECK(cluster.Where(elastic) == "n1 n2 n3 -");
  CHECK(cluster.status(elastic).starts == 1);
  cluster.AddNode("n4", {.gpus = 1});
  cluster.Settle();
  CHECK(cluster.Where(elastic) == "n1 n2 n3 n4");
}

TEST_CASE("among equal jobs, minimums come before growth") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 1});
  const JobId elastic =
      cluster.Submit("e", {.groups = {{.replicas = 4, .min_available = 1, .gpus = 1}}});
  const JobId gang = cluster.Submit("g", Gpus(2, 1));
  cluster.Settle();
  CHECK(cluster.Where(elastic) == "n1 n4 - -");
  CHECK(cluster.Where(gang) == "n2 n3");
}

TEST_CASE("growth stops at the queue's limit and does not block the job") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.gpus = 1});
  cluster.AddQueue("q", {.limit = {{"gpu", 3}}});
  const JobId elastic = cluster.Submit(
      "e", {.queue = "q", .groups = {{.replicas = 4, .min_available = 1, .gpus = 1}}});
  cluster.RunAll(elastic);
  CHECK(cluster.Where(elastic) == "n1 n2 n3 -");
  CHECK(cluster.StateOf(elastic) == "Running");
  CHECK(cluster.Why(elastic).empty());
}

TEST_CASE("a gang of several groups needs the minimum of each group and the minimum of the job") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 2});
  JobShape shape{.groups = {{.name = "master", .replicas = 1, .gpus = 1},
                            {.name = "worker", .replicas = 6, .min_available = 1, .gpus = 1}},
                 .min_available = 4};
  const JobId job = cluster.Submit("j", shape);
  const Plan plan = cluster.Cycle();
  CHECK(cluster.Where(job) == "n1 n1 n2 n2 n3 n3 -");
  CHECK(Describe(cluster.state(), plan.decisions[0]) == "gang j: 0@n1/1 1@n1/2 2@n2/1 3@n2/2");
}

TEST_CASE("a blocked class is not re-evaluated until something could help") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 1});
  const JobId first = cluster.Submit("first", Gpus(1, 1));
  for (int i = 0; i < 50; ++i) cluster.Submit(absl::StrCat("j", i), Gpus(1, 1));
  cluster.Settle();
  CHECK(cluster.state().pending().ready().empty());
  CHECK(cluster.Cycle().counters.work == 0);
  cluster.RunAll(first);
  const uint64_t before = cluster.Cycle().counters.work;
  CHECK(before == 0);
  cluster.Exit(first, 0);
  CHECK(cluster.Where(JobId{2}) == "n1");
  CHECK(cluster.state().pending().ready().empty());
}

TEST_CASE("the same state gives the same plan, byte for byte") {
  const auto plan = [](bool shuffled) {
    TestCluster cluster;
    // Interned kinds, shapes and hash tables differ in order; names and ids do not.
    if (shuffled) {
      cluster.AddQueue("zz");
      cluster.Submit("warm", {.queue = "zz", .groups = {{.gpus = 1, .models = {"none"}}}});
      cluster.Must(JobCancelled{.id = JobId{1}});
      cluster.Settle();
    } else {
      cluster.AddQueue("zz");
      cluster.Submit("warm", {.queue = "zz"});
      cluster.Must(JobCancelled{.id = JobId{1}});
      cluster.Settle();
    }
    for (int i = 0; i < 8; ++i) {
      NodeShape shape{.cpu = 8 + i % 3, .gpus = i % 4};
      if (i % 2 == 0) shape.extended = {{"licence", 2}};
      cluster.AddNode(absl::StrCat("n", i), shape);
    }
    for (int i = 0; i < 12; ++i) {
      cluster.Submit(absl::StrCat("j", i),
                     {.priority = i % 3, .groups = {{.replicas = 1 + i % 2, .gpus = i % 3}}});
    }
    return Describe(cluster.state(), PlanCycle(cluster.state(), cluster.policies(), cluster.now(),
                                               TestCluster::kNoBudget)
                                         .decisions);
  };
  CHECK(plan(false) == plan(false));
  CHECK(plan(false) == plan(true));
}

TEST_CASE("the service order does not depend on where the budget ends") {
  const auto outcome = [](uint64_t budget) {
    TestCluster cluster;
    cluster.AddNodes("n", 6, {.cpu = 16, .gpus = 4});
    cluster.AddQueue("a", {.limit = {{"gpu", 10}}});
    cluster.AddQueue("b");
    for (int i = 0; i < 40; ++i) {
      JobShape shape{.queue = i % 2 == 0 ? "a" : "b", .priority = i % 4};
      shape.groups = {{.replicas = 2 + i % 5, .min_available = 1 + i % 2, .gpus = i % 3}};
      cluster.Submit(absl::StrCat("j", i), shape);
    }
    cluster.Settle(budget);
    std::string all;
    for (uint64_t id = 1; id <= 40; ++id) absl::StrAppend(&all, cluster.Where(JobId{id}), "\n");
    return all;
  };
  const std::string whole = outcome(TestCluster::kNoBudget);
  for (uint64_t budget : {0u, 1u, 2u, 3u, 7u, 20u, 100u}) CHECK(outcome(budget) == whole);
}

TEST_CASE("one gang is always completed, whatever the budget") {
  TestCluster cluster;
  cluster.AddNodes("n", 20, {.gpus = 1});
  const JobId gang = cluster.Submit("g", Gpus(20, 1));
  const Plan first = cluster.Cycle(1);  // the lifecycle stage handles the new job
  const Plan plan = cluster.Cycle(1);
  CHECK(cluster.StateOf(gang) == "Binding");
  CHECK(first.counters.work + plan.counters.work > 20);
}

// ---- External policies

class LeastIdLast final : public NodeScore {
 public:
  absl::string_view name() const override { return "test/last_node"; }
  std::optional<NodeRank> Prepare(const ScoreRequest&) const override {
    return [](const Offer& offer) { return -static_cast<int64_t>(offer.node.id.value); };
  }
};

class YoungestFirst final : public JobOrder {
 public:
  absl::string_view name() const override { return "test/youngest"; }
  JobCompare Prepare(const ClusterState&, Time) const override {
    return [](const Job& a, const Job& b) {
      return a.submit == b.submit ? 0 : (a.submit > b.submit ? -1 : 1);
    };
  }
};

TEST_CASE("registered policies are used, and unknown or repeated names are errors") {
  static const bool registered = [] {
    using Score = std::unique_ptr<NodeScore>;
    using Order = std::unique_ptr<JobOrder>;
    return RegisterPolicy(
               "test/last_node", +[]() -> Score { return std::make_unique<LeastIdLast>(); })
               .ok() &&
           RegisterPolicy(
               "test/youngest", +[]() -> Order { return std::make_unique<YoungestFirst>(); })
               .ok();
  }();
  REQUIRE(registered);
  CHECK(RegisterPolicy(
            "test/youngest", +[]() -> std::unique_ptr<JobOrder> { return nullptr; })
            .code() == absl::StatusCode::kAlreadyExists);

  PolicyConfig config;
  config.scores = {"test/last_node", "best_fit"};
  config.job_orders = {"test/youngest"};
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNodes("n", 3, {.gpus = 1});
  const JobId old = cluster.Submit("old", Gpus(2, 1));
  cluster.state();
  const JobId young = [&] {
    TestCluster& c = cluster;
    c.Must(JobSuspended{.id = old});  // out of the way while time passes
    c.Advance(absl::Seconds(1));
    c.Must(JobSuspended{.id = old, .suspended = false});
    return c.Submit("young", Gpus(1, 1));
  }();
  cluster.Cycle();
  CHECK(cluster.Where(young) == "n3");
  CHECK(cluster.Where(old) == "n2 n1");

  config.filters = {"taints", "taints", "gone"};
  config.actions = {"teleport"};
  const auto bad = Policies::Create(config);
  CHECK(bad.status().message() ==
        "unknown action \"teleport\" (known: allocate, backfill, consolidate, expire_gangs, "
        "migrate, preempt, reclaim, rotate); filter \"taints\" is listed twice; unknown filter "
        "\"gone\" "
        "(known: node_selector, resources/devices, taints)");
}

TEST_CASE("an action order in which one action could never do anything is rejected") {
  const auto refused = [](std::vector<std::string> actions) {
    PolicyConfig config;
    config.actions = std::move(actions);
    return std::string(Policies::Create(config).status().message());
  };
  CHECK(refused({"preempt"}) ==
        "action \"preempt\" would never do anything: it makes room for jobs for which an earlier "
        "action found none; put \"allocate\" or \"backfill\" before it");
  CHECK(refused({"reclaim", "allocate"}).find("\"reclaim\" would never") != std::string::npos);
  CHECK(refused({"expire_gangs", "consolidate", "preempt"}).find("\"consolidate\" would never") !=
        std::string::npos);
  CHECK(refused({"allocate", "reclaim", "backfill"}).empty());
  CHECK(refused({"backfill", "preempt", "expire_gangs"}).empty());
  CHECK(refused({"expire_gangs", "allocate"}).empty());
}

}  // namespace
}  // namespace berth
