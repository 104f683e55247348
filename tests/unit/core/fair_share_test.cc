// Tables for the division of fair shares, by the rules in core/engine/shares/fair_share.h.
#include "core/engine/shares/fair_share.h"

#include <catch2/catch.hpp>

#include "core/engine/shares/usage_stage.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::QueueShape;
using testing::TestCluster;

std::string Got(int64_t amount, std::vector<Claim> claims) {
  const int64_t given = Fill(amount, claims);
  std::string text = absl::StrCat(given, ":");
  for (const Claim& claim : claims) absl::StrAppend(&text, " ", claim.got);
  return text;
}

TEST_CASE("filling: proportions, caps, remainders") {
  CHECK(Got(10, {}) == "0:");
  CHECK(Got(0, {{5, 1}}) == "0: 0");
  CHECK(Got(10, {{5, 1}, {3, 1}}) == "8: 5 3");
  CHECK(Got(10, {{9, 1}, {9, 1}}) == "10: 5 5");
  CHECK(Got(10, {{9, 3}, {9, 1}}) == "10: 8 2");  // 7.5 : 2.5, the odd one goes to the older
  CHECK(Got(10, {{9, 1}, {9, 3}}) == "10: 3 7");  // likewise
  CHECK(Got(10, {{9, 1}, {9, 1}, {9, 1}}) == "10: 4 3 3");
  CHECK(Got(11, {{9, 1}, {9, 1}, {9, 1}}) == "11: 4 4 3");
  CHECK(Got(10, {{9, 2}, {9, 5}, {9, 2}}) == "10: 2 6 2");  // 2.2 5.6 2.2: the largest fraction
  CHECK(Got(10, {{2, 1}, {9, 1}, {9, 1}}) == "10: 2 4 4");  // others take what one cannot use
  CHECK(Got(10, {{9, 0}, {4, 1}}) == "4: 0 4");             // weight 0 takes nothing
  CHECK(Got(7, {{1, 1}, {2, 1}, {3, 1}, {9, 1}}) == "7: 1 2 2 2");
  CHECK(Got(INT64_MAX, {{INT64_MAX, 65'535}, {INT64_MAX, 65'535}}) ==
        absl::StrCat(INT64_MAX, ": ", INT64_MAX / 2 + 1, " ", INT64_MAX / 2));
}

TEST_CASE("filling by whole units, except for fractional caps") {
  const auto got = [](int64_t amount, std::vector<Claim> claims) {
    std::string text = absl::StrCat(Fill(amount, claims, 10), ":");
    for (const Claim& claim : claims) absl::StrAppend(&text, " ", claim.got);
    return text;
  };
  CHECK(got(100, {{90, 1}, {90, 1}, {90, 1}}) == "100: 40 30 30");
  CHECK(got(100, {{5, 1}, {90, 1}, {90, 1}}) == "100: 5 50 45");
  CHECK(got(100, {{35, 1}, {36, 1}, {90, 1}}) == "100: 35 35 30");
  CHECK(got(105, {{90, 1}, {90, 1}}) == "105: 55 50");
  CHECK(got(99, {{33, 1}, {33, 1}, {34, 1}}) == "99: 33 33 33");
}

// Queues of one cluster of 16 GPUs, with their demand.
class Shares {
 public:
  explicit Shares(int gpus = 16) { cluster_.AddNode("n", {.cpu = 1000, .gpus = gpus}); }

  Shares& Queue(const std::string& name, const QueueShape& shape, int demand) {
    cluster_.AddQueue(name, shape);
    if (demand > 0) {
      cluster_.Submit(absl::StrCat(name, "-job"),
                      {.queue = name, .groups = {{.replicas = demand, .cpu = 0, .gpus = 1}}});
    }
    return *this;
  }
  FairShares Now() const { return FairSharesOf(cluster_.state(), parameters); }
  // GPUs, as "a 4, b 2".
  std::string Text() const {
    return List([](const FairShares::OfQueue& share) { return share.fair_share; });
  }
  std::string Deserved() const {
    return List([](const FairShares::OfQueue& share) { return share.deserved; });
  }
  TestCluster& cluster() { return cluster_; }

  FairShareParameters parameters;

 private:
  template <class What>
  std::string List(What&& what) const {
    const FairShares shares = Now();
    const ResourceKind gpu = *cluster_.state().interner().FindKind("gpu");
    std::string text;
    cluster_.state().queues().ForEach([&](QueueId id, const struct Queue& queue) {
      if (id == kRootQueue) return;
      absl::StrAppend(&text, text.empty() ? "" : ", ", queue.spec.name, " ",
                      AmountText(what(shares.At(id))[gpu], kWhole));
    });
    return text;
  }

  TestCluster cluster_;
};

std::vector<NamedAmount> Gpu(int64_t amount) { return {{"gpu", amount}}; }

TEST_CASE("without deserved: weighted proportion") {
  CHECK(Shares().Queue("a", {}, 20).Queue("b", {}, 20).Text() == "a 8, b 8");
  CHECK(Shares().Queue("a", {.weight = 3}, 20).Queue("b", {}, 20).Text() == "a 12, b 4");
  CHECK(Shares().Queue("a", {}, 2).Queue("b", {}, 20).Text() == "a 2, b 14");
  CHECK(Shares().Queue("a", {.weight = 0}, 20).Queue("b", {}, 5).Text() == "a 0, b 5");
  CHECK(Shares().Queue("a", {.limit = Gpu(3)}, 20).Queue("b", {}, 20).Text() == "a 3, b 13");
}

TEST_CASE("with deserved: each queue up to its deserved, then the surplus") {
  CHECK(
      Shares().Queue("a", {.deserved = Gpu(10)}, 20).Queue("b", {.deserved = Gpu(4)}, 20).Text() ==
      "a 11, b 5");
  CHECK(Shares()  // borrowed while the owner has no demand
            .Queue("a", {.deserved = Gpu(10)}, 1)
            .Queue("b", {.deserved = Gpu(4)}, 20)
            .Text() == "a 1, b 15");
  CHECK(Shares()  // the surplus by priority, whatever the weights
            .Queue("a", {.deserved = Gpu(4), .weight = 100}, 20)
            .Queue("b", {.deserved = Gpu(4), .priority = 1}, 9)
            .Text() == "a 7, b 9");
  CHECK(Shares()  // weight 0 keeps what it deserves
            .Queue("a", {.deserved = Gpu(4), .weight = 0}, 20)
            .Queue("b", {}, 20)
            .Text() == "a 4, b 12");
  CHECK(Shares()  // never more than the limit
            .Queue("a", {.limit = Gpu(3), .deserved = Gpu(8)}, 20)
            .Queue("b", {}, 5)
            .Text() == "a 3, b 5");
}

TEST_CASE("a guarantee is set aside even without demand") {
  CHECK(Shares().Queue("a", {.guarantee = Gpu(6)}, 0).Queue("b", {}, 20).Text() == "a 6, b 10");
  CHECK(Shares()
            .Queue("a", {.deserved = Gpu(4), .guarantee = Gpu(6)}, 8)
            .Queue("b", {.deserved = Gpu(10)}, 20)
            .Text() == "a 6, b 10");
  CHECK(Shares()  // also for a child of a queue without a guarantee
            .Queue("org", {}, 0)
            .Queue("a", {.parent = "org", .guarantee = Gpu(5)}, 0)
            .Queue("b", {}, 20)
            .Text() == "org 5, a 5, b 11");
}

TEST_CASE("deserved sums above the capacity are scaled, with a warning") {
  Shares shares;
  shares.Queue("a", {.deserved = Gpu(24)}, 30).Queue("b", {.deserved = Gpu(8)}, 30);
  CHECK(shares.Text() == "a 12, b 4");
  CHECK(shares.Deserved() == "a 12, b 4");
  CHECK(shares.Now().At(shares.cluster().queue_id("a")).deserved_scaled);

  Shares guaranteed;  // guarantees are not scaled
  guaranteed.Queue("a", {.deserved = Gpu(14), .guarantee = Gpu(6)}, 30)
      .Queue("b", {.deserved = Gpu(12)}, 30);
  CHECK(guaranteed.Text() == "a 10, b 6");

  Shares too_much;  // unless the guarantees alone exceed the capacity
  too_much.Queue("a", {.guarantee = Gpu(24)}, 0).Queue("b", {.guarantee = Gpu(8)}, 3);
  CHECK(too_much.Text() == "a 12, b 4");

  Shares idle;  // no queue must give way while the other has no demand
  idle.Queue("a", {.deserved = Gpu(16)}, 2).Queue("b", {.deserved = Gpu(16)}, 30);
  CHECK(idle.Text() == "a 2, b 14");
  CHECK(idle.Deserved() == "a 8, b 8");

  Shares fits;
  fits.Queue("a", {.deserved = Gpu(8)}, 30).Queue("b", {.deserved = Gpu(8)}, 30);
  CHECK_FALSE(fits.Now().At(fits.cluster().queue_id("a")).deserved_scaled);
}

TEST_CASE("children divide what their parent got") {
  Shares shares;
  shares.Queue("org", {.deserved = Gpu(6)}, 0)
      .Queue("a", {.parent = "org", .deserved = Gpu(4)}, 20)
      .Queue("b", {.parent = "org", .deserved = Gpu(4)}, 20)
      .Queue("c", {.deserved = Gpu(10)}, 20);
  CHECK(shares.Text() == "org 6, a 3, b 3, c 10");
  CHECK(shares.Deserved() == "org 6, a 3, b 3, c 10");
  CHECK(shares.Now().At(shares.cluster().queue_id("a")).deserved_scaled);
  CHECK_FALSE(shares.Now().At(shares.cluster().queue_id("org")).deserved_scaled);
}

TEST_CASE("ready nodes are divided, including cordoned ones") {
  Shares shares(4);
  shares.Queue("a", {}, 20);
  shares.cluster().AddNode("m", {.gpus = 8});
  CHECK(shares.Text() == "a 12");
  shares.cluster().Must(NodeSteered{.id = shares.cluster().node_id("m"), .cordoned = true});
  CHECK(shares.Text() == "a 12");
  shares.cluster().Must(NodeSilenced{.id = shares.cluster().node_id("m")});
  CHECK(shares.Text() == "a 4");
}

TEST_CASE("each resource is divided separately") {
  TestCluster cluster;
  cluster.AddNode("n", {.cpu = 8, .gpus = 8});
  cluster.AddQueue("a");
  cluster.AddQueue("b");
  cluster.Submit("cpus", {.queue = "a", .groups = {{.replicas = 20, .cpu = 1}}});
  cluster.Submit("gpus", {.queue = "b", .groups = {{.replicas = 20, .cpu = 0, .gpus = 1}}});
  const FairShares shares = FairSharesOf(cluster.state(), {});
  const ResourceKind gpu = *cluster.state().interner().FindKind("gpu");
  CHECK(shares.At(cluster.queue_id("a")).fair_share[kCpu] == 8000);
  CHECK(shares.At(cluster.queue_id("a")).fair_share[gpu] == 0);
  CHECK(shares.At(cluster.queue_id("b")).fair_share[gpu] == 8 * kWhole);
}

TEST_CASE("borrowed and lent") {
  Shares shares;
  shares.Queue("a", {.deserved = Gpu(10), .guarantee = Gpu(2)}, 1)
      .Queue("b", {.deserved = Gpu(6)}, 0);
  TestCluster& cluster = shares.cluster();
  cluster.Submit(
      "big",
      {.queue = "b", .groups = {{.replicas = 12, .cpu = 0, .gpus = 1}}, .preemptible = true});
  cluster.Settle();
  const ResourceKind gpu = *cluster.state().interner().FindKind("gpu");
  const std::vector<QueueShares> all = QueueSharesOf(cluster.state(), shares.Now());
  REQUIRE(all.size() == 3);
  CHECK(all[1].allocated[gpu] == 1 * kWhole);
  CHECK(all[1].borrowed[gpu] == 0);
  CHECK(all[1].lent[gpu] ==
        6 * kWhole);  // b uses 6 beyond its deserved 6; a can lend 8, all but its guarantee
  CHECK(all[2].allocated[gpu] == 12 * kWhole);
  CHECK(all[2].borrowed[gpu] == 6 * kWhole);
  CHECK(all[2].lent[gpu] == 0);
}

TEST_CASE("only parents with changed input are divided again") {
  Shares shares;
  shares.Queue("x", {}, 0)
      .Queue("x1", {.parent = "x"}, 3)
      .Queue("x2", {.parent = "x"}, 3)
      .Queue("y", {}, 0)
      .Queue("y1", {.parent = "y"}, 3);
  TestCluster& cluster = shares.cluster();
  StateEditor editor(cluster.state());
  FairShares cached;
  const auto refresh = [&] {
    const uint64_t before = cached.divisions();
    cached.Refresh(cluster.state(), editor.TakeChangedQueues(), shares.parameters);
    return cached.divisions() - before;
  };
  CHECK(refresh() == 3);
  CHECK(refresh() == 0);
  cluster.Cycle();  // binding does not change demand
  CHECK(refresh() == 0);
  cluster.Submit("more", {.queue = "x1"});
  CHECK(refresh() == 2);  // root and x
  cluster.AddNode("m", {.gpus = 8});
  CHECK(refresh() == 3);  // what x and y may promise depends on the capacity, too
}

TEST_CASE("usage history: the heavier user gets less of the surplus until the usage decays") {
  Shares shares;
  shares.Queue("a", {}, 0).Queue("b", {}, 0);
  TestCluster& cluster = shares.cluster();
  const auto demand = [&](const char* queue) {
    cluster.Submit(absl::StrCat("j-", queue),
                   {.queue = queue, .groups = {{.replicas = 16, .cpu = 0, .gpus = 1}}});
  };
  demand("a");
  demand("b");
  StateEditor editor(cluster.state());
  editor.SetQueueUsage(cluster.queue_id("a"), {{"gpu", 8 * 1024 * kWhole}});  // half of the cluster
  CHECK(shares.Text() == "a 8, b 8");  // without a half-life, past usage does not count
  shares.parameters.half_life = absl::Hours(1);
  CHECK(shares.Text() == "a 5, b 11");  // 0.5 + (0.5 - 0.5) : 0.5 + (0.5 - 0) = 1 : 2
  shares.parameters.usage_weight = 0;
  CHECK(shares.Text() == "a 8, b 8");
  shares.parameters.usage_weight = 1;
  editor.SetQueueUsage(cluster.queue_id("a"), {{"gpu", 16 * 1024 * kWhole}});
  CHECK(shares.Text() == "a 0, b 16");
  cluster.Must(JobCancelled{.id = cluster.state().FindJob("j-b")->id});
  cluster.Settle();
  CHECK(shares.Text() == "a 16, b 0");  // no surplus is left to divide by usage
}

// ---- The usage stage

PolicyConfig Remembering(Duration half_life) {
  PolicyConfig config;
  config.fair_share.half_life = half_life;
  return config;
}

int64_t UsageOf(const TestCluster& cluster, const std::string& queue) {
  const auto& usage = cluster.state().FindQueue(queue)->usage;
  for (const NamedAmount& one : usage) {
    if (one.name == "gpu") return one.amount / kWhole;
  }
  return 0;
}

TEST_CASE("usage is charged every 64th of a half-life, and only while there is any") {
  TestCluster cluster(*Policies::Create(Remembering(absl::Seconds(640))));
  cluster.AddNode("n", {.gpus = 8});
  CHECK(cluster.Cycle().wake_at == absl::InfiniteFuture());  // nothing to charge
  CHECK(cluster.state().usage_charged() == absl::InfinitePast());
  const JobId job = cluster.Submit("j", {.queue = "q", .groups = {{.cpu = 0, .gpus = 8}}});
  cluster.RunAll(job);
  CHECK(cluster.state().usage_charged() == cluster.now());
  CHECK(UsageOf(cluster, "q") == 0);  // the clock started just before the first job
  CHECK(cluster.Cycle().wake_at == cluster.now() + absl::Seconds(10));
  cluster.Advance(absl::Seconds(9));
  CHECK(cluster.state().usage_charged() == cluster.now() - absl::Seconds(9));
  for (int i = 0; i < 64; ++i) cluster.Advance(absl::Seconds(10));
  CHECK(UsageOf(cluster, "q") > 4 * 1024 - 32);
  CHECK(UsageOf(cluster, "q") < 4 * 1024 + 64);
  cluster.Exit(job, 0);
  cluster.Advance(absl::Seconds(640 * 60));
  cluster.Advance(absl::Seconds(10));
  CHECK(UsageOf(cluster, "q") == 0);
  CHECK(cluster.Cycle().wake_at == absl::InfiniteFuture());
}

TEST_CASE("without a half-life nothing is charged") {
  TestCluster cluster;
  cluster.AddNode("n", {.gpus = 8});
  cluster.RunAll(cluster.Submit("j", {.queue = "q", .groups = {{.gpus = 8}}}));
  cluster.Advance(absl::Hours(1));
  CHECK(cluster.state().usage_charged() == absl::InfinitePast());
}

TEST_CASE("a queue that waited catches up with one that used everything") {
  TestCluster cluster(*Policies::Create(Remembering(absl::Seconds(100))));
  cluster.AddNode("n", {.cpu = 1000, .gpus = 8});
  std::map<std::string, int> served;
  const auto submit = [&](const std::string& queue, int i) {
    const JobId id =
        cluster.Submit(absl::StrCat(queue, i), {.queue = queue, .groups = {{.cpu = 0, .gpus = 1}}});
    return id;
  };
  std::vector<JobId> running;
  const auto round = [&] {  // all running jobs end; which start next?
    for (JobId id : running) cluster.Exit(id, 0);
    running.clear();
    cluster.Advance(absl::Seconds(10));
    cluster.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (job.status.state == JobState::kBinding) running.push_back(id);
    });
    served.clear();
    for (JobId id : running) {
      ++served[cluster.state().queues().At(cluster.job(id).queue).spec.name];
      cluster.RunAll(id);
    }
  };
  for (int i = 0; i < 200; ++i) submit("a", i);
  for (int i = 0; i < 20; ++i) round();
  CHECK(served["a"] == 8);
  for (int i = 0; i < 200; ++i) submit("b", i);
  round();
  CHECK(served["b"] > served["a"]);
  round();
  CHECK(served["b"] > served["a"]);
}

}  // namespace
}  // namespace berth
