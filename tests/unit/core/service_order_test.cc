// Tables for the service order, and for the resources that queues allow a job.
#include "core/engine/order/service_order.h"

#include <catch2/catch.hpp>

#include "core/engine/place/placer.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::QueueShape;
using testing::TestCluster;

std::vector<NamedAmount> Gpu(int64_t amount) { return {{"gpu", amount}}; }

JobShape Gpus(const std::string& queue, int gpus, int tasks = 1) {
  return {
      .queue = queue, .groups = {{.replicas = tasks, .cpu = 0, .gpus = gpus}}, .preemptible = true};
}

// Names of jobs in the order in which they were bound, "a1 b1 a1+" with + for growth.
std::string Served(TestCluster& cluster, uint64_t budget = TestCluster::kNoBudget) {
  std::string text;
  for (const EventBody& decision : cluster.Settle(budget)) {
    const auto* bound = std::get_if<TasksBound>(&decision);
    if (bound == nullptr) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", cluster.job(bound->job).name,
                    bound->gang ? "" : "+");
  }
  return text;
}

TestCluster OneNode(int gpus) {
  TestCluster cluster;
  cluster.AddNode("n", {.cpu = 1000, .gpus = gpus});
  return cluster;
}

TEST_CASE("queues take turns by dominant share") {
  TestCluster cluster = OneNode(16);
  cluster.AddQueue("a");
  cluster.AddQueue("b");
  for (int i = 1; i <= 3; ++i) cluster.Submit(absl::StrCat("a", i), Gpus("a", 4));
  for (int i = 1; i <= 3; ++i) cluster.Submit(absl::StrCat("b", i), Gpus("b", 4));
  CHECK(Served(cluster) == "a1 b1 a2 b2");
}

TEST_CASE("turns follow weights") {
  TestCluster cluster = OneNode(12);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.weight = 2});
  for (int i = 1; i <= 12; ++i) cluster.Submit(absl::StrCat("a", i), Gpus("a", 1));
  for (int i = 1; i <= 12; ++i) cluster.Submit(absl::StrCat("b", i), Gpus("b", 1));
  CHECK(Served(cluster) == "b1 a1 b2 b3 a2 b4 b5 a3 b6 b7 a4 b8");
}

TEST_CASE("queues within their fair share go first, whatever the priorities") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("a", {.deserved = Gpu(4), .priority = 9});
  cluster.AddQueue("b", {.deserved = Gpu(4)});
  cluster.Submit("a1", Gpus("a", 5));
  cluster.Settle();
  cluster.Submit("a2", Gpus("a", 1));
  cluster.Submit("b1", Gpus("b", 3));
  CHECK(Served(cluster) == "b1");
}

TEST_CASE("then queues that stay within deserved with the job") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("a", {.deserved = Gpu(1), .priority = 9});
  cluster.AddQueue("b", {.deserved = Gpu(4)});
  cluster.Submit("a1", Gpus("a", 2));
  cluster.Submit("b1", Gpus("b", 4));
  CHECK(Served(cluster) == "b1 a1");
}

TEST_CASE("then higher queue priority, at every level") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("x");
  cluster.AddQueue("y", {.priority = 1});
  cluster.AddQueue("x1", {.parent = "x", .priority = 5});
  cluster.AddQueue("y1", {.parent = "y"});
  cluster.AddQueue("y2", {.parent = "y", .priority = 2});
  for (const char* queue : {"x1", "y1", "y2"}) cluster.Submit(queue, Gpus(queue, 2));
  CHECK(Served(cluster) == "y2 y1 x1");
}

TEST_CASE("a cpu job does not wait because its queue is over its share of gpus") {
  TestCluster cluster;
  cluster.AddNode("n", {.cpu = 4, .gpus = 8});
  cluster.AddQueue("a", {.deserved = Gpu(1), .priority = 1});
  cluster.AddQueue("b", {.deserved = Gpu(4)});
  cluster.Submit("a1", Gpus("a", 6));
  cluster.Settle();
  cluster.Submit("b0", Gpus("b", 4));  // a is now over its share of gpus, but not of cpu
  cluster.Submit("a2", {.queue = "a", .groups = {{.replicas = 4, .cpu = 1}}});
  cluster.Submit("b2", {.queue = "b", .groups = {{.replicas = 4, .cpu = 1}}});
  cluster.Settle();
  CHECK(cluster.Where(cluster.state().FindJob("a2")->id) == "n n n n");
}

TEST_CASE("in a leaf: priority, deadline, gangs before growth, older") {
  TestCluster cluster = OneNode(16);
  const Time soon = cluster.now() + absl::Hours(1);
  JobShape elastic = Gpus("q", 1, 3);
  elastic.groups[0].min_available = 1;
  JobShape urgent = Gpus("q", 1), due = Gpus("q", 1), later = Gpus("q", 1);
  urgent.priority = 1;
  due.deadline = soon;
  later.deadline = soon + absl::Hours(1);
  cluster.Submit("elastic", elastic);
  cluster.Submit("plain", Gpus("q", 1));
  cluster.Submit("later", later);
  cluster.Submit("due", due);
  cluster.Submit("urgent", urgent);
  CHECK(Served(cluster) == "urgent due later elastic plain elastic+ elastic+");
}

TEST_CASE("growth takes turns task by task between queues") {
  TestCluster cluster = OneNode(6);
  cluster.AddQueue("a");
  cluster.AddQueue("b");
  for (const char* queue : {"a", "b"}) {
    JobShape shape = Gpus(queue, 1, 4);
    shape.groups[0].min_available = 1;
    cluster.Submit(queue, shape);
  }
  CHECK(Served(cluster) == "a b a+ b+ a+ b+");
}

TEST_CASE("users of a fair queue take turns, users of other queues do not") {
  const auto fairness = GENERATE(UserFairness::kDrf, UserFairness::kNone);
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("q", {.user_fairness = fairness});
  for (const char* name : {"ann1", "ann2", "ann3", "bob1", "bob2"}) {
    JobShape shape = Gpus("q", 1);
    shape.user = std::string(name, 3);
    cluster.Submit(name, shape);
  }
  CHECK(Served(cluster) ==
        (fairness == UserFairness::kDrf ? "ann1 bob1 ann2 bob2" : "ann1 ann2 ann3 bob1"));
}

TEST_CASE("job priority overrides fairness between users") {
  TestCluster cluster = OneNode(2);
  cluster.AddQueue("q", {.user_fairness = UserFairness::kDrf});
  for (const char* name : {"bob1", "ann1", "ann2"}) {
    JobShape shape = Gpus("q", 1);
    shape.user = std::string(name, 3);
    shape.priority = shape.user == "ann" ? 1 : 0;
    cluster.Submit(name, shape);
  }
  CHECK(Served(cluster) == "ann1 ann2");
}

TEST_CASE("fifo_strict: the head of the queue blocks its queue, and no other") {
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("line", {.order = QueueOrder::kFifoStrict});
  cluster.AddQueue("other");
  const JobId first = cluster.Submit("first", Gpus("line", 1));
  const JobId big = cluster.Submit("big", Gpus("line", 4));
  const JobId small = cluster.Submit("small", Gpus("line", 1));
  cluster.Submit("free", Gpus("other", 1));
  CHECK(Served(cluster) == "first free");
  CHECK(cluster.Why(big)[0].code == WaitCode::kInsufficientResources);
  REQUIRE(cluster.Why(small).size() == 1);
  CHECK(cluster.Why(small)[0].code == WaitCode::kBehindHead);
  CHECK(cluster.Why(small)[0].job == big);
  CHECK(cluster.Why(small)[0].queue == cluster.queue_id("line"));

  SECTION("also for later jobs") {
    cluster.Submit("late", Gpus("line", 1));
    CHECK(Served(cluster).empty());
  }
  SECTION("a job of higher priority goes before the head") {
    JobShape urgent = Gpus("line", 1);
    urgent.priority = 1;
    cluster.Submit("urgent", urgent);
    CHECK(Served(cluster) == "urgent");
  }
  SECTION("until the head is gone") {
    cluster.Must(JobCancelled{.id = big});
    CHECK(Served(cluster) == "small");
  }
  SECTION("until it fits") {
    for (JobId id : {first, cluster.state().FindJob("free")->id}) {
      cluster.RunAll(id);
      CHECK(cluster.Where(big) == "-");
      cluster.Exit(id, 0);
    }
    CHECK(cluster.Where(big) == "n");
    CHECK(cluster.Where(small) == "-");
  }
}

TEST_CASE("fifo_strict: a head blocked by its queue's limit blocks the queue too") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("line", {.limit = Gpu(3), .order = QueueOrder::kFifoStrict});
  const JobId big = cluster.Submit("big", Gpus("line", 4));
  const JobId small = cluster.Submit("small", Gpus("line", 1));
  CHECK(Served(cluster).empty());
  CHECK(cluster.Why(big)[0].code == WaitCode::kQueueLimit);
  CHECK(cluster.Why(small)[0].code == WaitCode::kBehindHead);
  cluster.Must(JobUpdated{.id = small, .priority = 1});
  CHECK(Served(cluster) == "small");
}

TEST_CASE("fifo_strict: growth that does not fit blocks no job") {
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("line", {.order = QueueOrder::kFifoStrict});
  JobShape elastic = Gpus("line", 3, 2);
  elastic.groups[0].min_available = 1;
  elastic.priority = 1;
  cluster.Submit("elastic", elastic);
  cluster.Submit("small", Gpus("line", 1));
  CHECK(Served(cluster) == "elastic small");
}

// ---- Gates

TEST_CASE("non-preemptible use stays within deserved, at every level") {
  TestCluster cluster = OneNode(16);
  cluster.AddQueue("org", {.deserved = Gpu(6)});
  cluster.AddQueue("a", {.parent = "org", .deserved = Gpu(4)});
  cluster.AddQueue("b", {.parent = "org"});
  const auto firm = [](const char* queue, int gpus) {
    JobShape shape = Gpus(queue, gpus);
    shape.preemptible = false;
    return shape;
  };
  const JobId a1 = cluster.Submit("a1", firm("a", 4));
  const JobId a2 = cluster.Submit("a2", firm("a", 1));
  const JobId b1 = cluster.Submit("b1", firm("b", 3));
  const JobId b2 = cluster.Submit("b2", firm("b", 2));
  const JobId soft = cluster.Submit("soft", Gpus("a", 8));
  cluster.Settle();
  CHECK(cluster.Where(a1) == "n");
  CHECK(cluster.Where(b2) == "n");
  CHECK(cluster.Where(soft) == "n");  // preemptible jobs borrow freely
  const WaitReason own = cluster.Why(a2)[0];
  CHECK(own.code == WaitCode::kNonPreemptibleQuota);
  CHECK(own.queue == cluster.queue_id("a"));
  CHECK(own.resource == "gpu");
  CHECK(own.needed == 1 * kWhole);
  CHECK(own.free == 0);
  CHECK(own.limit == 4 * kWhole);
  const WaitReason above = cluster.Why(b1)[0];
  CHECK(above.code == WaitCode::kNonPreemptibleQuota);
  CHECK(above.queue == cluster.queue_id("org"));
  CHECK(above.needed == 3 * kWhole);
}

TEST_CASE("a non-preemptible job starts when one of its queue has ended") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("a", {.deserved = Gpu(2)});
  JobShape firm = Gpus("a", 2);
  firm.preemptible = false;
  const JobId first = cluster.Submit("first", firm);
  const JobId second = cluster.Submit("second", firm);
  cluster.RunAll(first);
  CHECK(cluster.Where(second) == "-");
  cluster.Exit(first, 0);
  CHECK(cluster.Where(second) == "n");
}

TEST_CASE("other queues cannot use a guarantee, even while it is idle") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.guarantee = Gpu(3)});
  const JobId big = cluster.Submit("big", Gpus("a", 6));
  const JobId fits = cluster.Submit("fits", Gpus("a", 5));
  CHECK(Served(cluster) == "fits");
  const WaitReason why = cluster.Why(big)[0];
  CHECK(why.code == WaitCode::kGuaranteeKept);
  CHECK(why.queue == kRootQueue);
  CHECK(why.resource == "gpu");
  CHECK(why.needed == 6 * kWhole);
  CHECK(why.free == 5 * kWhole);
  CHECK(why.limit == 8 * kWhole);
  CHECK(why.detail == "3 are set aside for other queues");
  cluster.Submit("own", Gpus("b", 3));
  CHECK(Served(cluster) == "own");
  CHECK(cluster.Where(fits) == "n");
}

TEST_CASE("guarantees below other queues are kept too") {
  TestCluster cluster = OneNode(8);
  cluster.AddQueue("org");
  cluster.AddQueue("b", {.parent = "org", .guarantee = Gpu(3)});
  cluster.AddQueue("c", {.parent = "org"});
  cluster.AddQueue("a");
  const JobId out = cluster.Submit("out", Gpus("a", 6));
  const JobId beside = cluster.Submit("beside", Gpus("c", 6));
  CHECK(Served(cluster).empty());
  CHECK(cluster.Why(out)[0].code == WaitCode::kGuaranteeKept);
  CHECK(cluster.Why(beside)[0].code == WaitCode::kGuaranteeKept);
  QueueSpec spec = cluster.state().FindQueue("b")->spec;
  spec.guarantee = Gpu(2);
  cluster.Must(QueueUpdated{.id = cluster.queue_id("b"), .spec = spec});
  CHECK(Served(cluster) == "beside");  // org is older than a
}

TEST_CASE("a guarantee inside a limited parent is kept within that limit") {
  TestCluster cluster = OneNode(16);
  cluster.AddQueue("org", {.limit = Gpu(8)});
  cluster.AddQueue("b", {.parent = "org", .guarantee = Gpu(3)});
  cluster.AddQueue("c", {.parent = "org"});
  const JobId six = cluster.Submit("six", Gpus("c", 6));
  CHECK(Served(cluster).empty());
  CHECK(cluster.Why(six)[0].queue == cluster.queue_id("org"));
  CHECK(cluster.Why(six)[0].limit == 8 * kWhole);
}

TEST_CASE("if guarantees exceed the capacity, their owners still use what is there") {
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("a", {.guarantee = Gpu(4)});
  cluster.AddQueue("b", {.guarantee = Gpu(4)});
  cluster.Submit("a1", Gpus("a", 2));
  cluster.Submit("b1", Gpus("b", 2));
  CHECK(Served(cluster) == "a1 b1");
}

TEST_CASE("a deleted queue's guarantee becomes free for others") {
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.guarantee = Gpu(4)});
  cluster.Submit("a1", Gpus("a", 2));
  CHECK(Served(cluster).empty());
  cluster.Must(QueueDeleted{.id = cluster.queue_id("b")});
  CHECK(Served(cluster) == "a1");
}

// ---- Use by other actions

TEST_CASE("among gangs that lack room, the order returns the first") {
  TestCluster cluster = OneNode(4);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.priority = 1});
  const JobId a_big = cluster.Submit("a-big", Gpus("a", 4));
  const JobId b_big = cluster.Submit("b-big", Gpus("b", 4));
  cluster.Submit("a-hold", [] {
    JobShape shape = Gpus("a", 1);
    shape.priority = 1;
    return shape;
  }());
  cluster.Submit("b-hold", [] {
    JobShape shape = Gpus("b", 1);
    shape.priority = 1;
    return shape;
  }());
  CHECK(Served(cluster) == "b-hold a-hold");
  Policies policies = testing::PoliciesWith({"allocate"});
  Cycle cycle(cluster.state(), policies, cluster.now(), TestCluster::kNoBudget);
  CHECK_FALSE(ServiceOrder(cycle, ServiceOrder::Offer::kReady).Next().has_value());
  ServiceOrder order(cycle, ServiceOrder::Offer::kReadyAndShort);
  auto head = order.Next();
  REQUIRE(head.has_value());
  CHECK(head->job == b_big);
  CHECK(head->short_of_room);
  CHECK(order.Next()->job == b_big);  // again, until it is skipped
  order.Skip(*head);
  head = order.Next();
  REQUIRE(head.has_value());
  CHECK(head->job == a_big);
  order.Skip(*head);
  CHECK_FALSE(order.Next().has_value());
}

// A backfill action after allocate may let other jobs start first; this one does not.
class NoBackfill final : public Action {
 public:
  absl::string_view name() const override { return "backfill"; }
  void Run(Cycle&) const override {}
};

TestCluster OneNodeInOrder(int gpus) {
  static const bool registered =
      RegisterPolicy(
          "test/no_backfill",
          +[]() -> std::unique_ptr<Action> { return std::make_unique<NoBackfill>(); })
          .ok();
  REQUIRE(registered);
  PolicyConfig config;
  config.actions = {"allocate", "test/no_backfill"};
  TestCluster cluster(*Policies::Create(config));
  cluster.AddNode("n", {.cpu = 1000, .gpus = gpus});
  return cluster;
}

TEST_CASE("with backfill configured, allocate overtakes no gang that lacks room") {
  TestCluster cluster = OneNodeInOrder(4);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.priority = 1});
  cluster.Submit("b-first", Gpus("b", 1));
  cluster.Submit("b-big", Gpus("b", 4));
  cluster.Submit("a-small", Gpus("a", 1));
  CHECK(Served(cluster) == "b-first");
  cluster.Submit("a-late", Gpus("a", 1));  // nor one that was blocked before
  CHECK(Served(cluster).empty());
  JobShape urgent = Gpus("b", 1);
  urgent.priority = 1;
  cluster.Submit("b-urgent", urgent);  // goes before the gang, so does not overtake it
  CHECK(Served(cluster) == "b-urgent");
}

TEST_CASE("with backfill configured, a gang over its queue's limit is not overtaken either") {
  TestCluster cluster = OneNodeInOrder(4);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.limit = Gpu(3), .priority = 1});
  cluster.Submit("b-first", Gpus("b", 1));
  cluster.Submit("b-over", Gpus("b", 3));
  cluster.Submit("b-small", Gpus("b", 1));  // would make the gang wait longer
  CHECK(Served(cluster) == "b-first");
}

TEST_CASE("with backfill configured, growth does not stop allocate") {
  TestCluster cluster = OneNodeInOrder(4);
  cluster.AddQueue("a");
  cluster.AddQueue("b", {.limit = Gpu(3), .priority = 1});
  JobShape elastic = Gpus("b", 2, 2);
  elastic.groups[0].min_available = 1;
  cluster.Submit("b-elastic", elastic);
  JobShape wide = Gpus("a", 2, 2);
  wide.groups[0].min_available = 1;
  wide.priority = 1;
  cluster.Submit("a-elastic", wide);
  cluster.Submit("a-small", {.queue = "a", .groups = {{.cpu = 1}}});
  CHECK(Served(cluster) == "b-elastic a-elastic a-small");
}

}  // namespace
}  // namespace berth
