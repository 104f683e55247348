// Reservations, and which jobs may backfill around them.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/timeline.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::TestCluster;
using testing::Timeline;
using testing::WithBackfill;

constexpr Duration kForever = absl::InfiniteDuration();

JobShape Gpus(int tasks, int gpus, Duration walltime, const std::string& queue = "") {
  return {.queue = queue, .groups = {{.replicas = tasks, .gpus = gpus}}, .walltime = walltime};
}

TEST_CASE(
    "the first blocked gang gets a reservation, and jobs backfill only if they do not delay it") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 8});
  const JobId running = cluster.Submit("running", Gpus(1, 6, absl::Minutes(60)));
  line.To(0);
  const JobId big = cluster.Submit("big", Gpus(1, 8, absl::Minutes(30)));
  const JobId quick = cluster.Submit("short", Gpus(1, 1, absl::Minutes(60)));
  const JobId slow = cluster.Submit("long", Gpus(1, 1, absl::Minutes(61)));
  const JobId endless = cluster.Submit("endless", Gpus(1, 1, kForever));
  line.To(0);
  CHECK(line.StartOf(running) == 0);
  CHECK(line.ReservedAt(big) == 60);
  CHECK(line.StartOf(quick) == 0);
  CHECK(line.StartOf(slow) == -1);
  CHECK(line.StartOf(endless) == -1);
  const auto why = cluster.Why(slow);
  REQUIRE(why.size() == 1);
  CHECK(why[0].code == WaitCode::kReserved);
  CHECK(why[0].job == big);
  CHECK(why[0].until == line.At(60));
  CHECK(cluster.Why(big)[0].code == WaitCode::kInsufficientResources);
  CHECK(cluster.Why(big)[0].until == line.At(60));
  line.To(60);
  CHECK(line.StartOf(big) == 60);
  CHECK(line.ReservedAt(big) == -1);
  line.To(90);
  CHECK(line.StartOf(slow) == 90);
  CHECK(line.StartOf(endless) == 90);
}

TEST_CASE("a changed walltime moves reservations") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 8});
  const JobId running = cluster.Submit("running", Gpus(1, 6, absl::Minutes(60)));
  line.To(0);
  const JobId big = cluster.Submit("big", Gpus(1, 8, absl::Minutes(30)));
  line.To(10);
  CHECK(line.ReservedAt(big) == 60);
  cluster.Must(JobUpdated{.id = running, .walltime = absl::Minutes(120)});
  line.To(10);
  CHECK(line.ReservedAt(big) == 120);
  const JobId quick = cluster.Submit("quick", Gpus(1, 1, absl::Minutes(100)));
  line.To(10);
  CHECK(line.StartOf(quick) == 10);
  cluster.Must(JobUpdated{.id = quick, .walltime = absl::Minutes(20)});
  cluster.Must(JobUpdated{.id = running, .walltime = absl::Minutes(40)});
  line.To(10);
  CHECK(line.ReservedAt(big) == 40);
  line.To(40);
  CHECK(line.StartOf(big) == 40);
}

TEST_CASE("a job that does not touch the reserved places starts, however long it is") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("small", {.gpus = 2});
  cluster.AddNode("large", {.gpus = 8});
  cluster.Submit("running", Gpus(1, 6, absl::Minutes(60)));
  line.To(0);
  const JobId big = cluster.Submit("big", Gpus(1, 8, kForever));
  const JobId a = cluster.Submit("a", Gpus(1, 2, kForever));
  const JobId b = cluster.Submit("b", Gpus(1, 2, kForever));
  line.To(0);
  CHECK(line.ReservedAt(big) == 60);
  CHECK(cluster.Where(a) == "small");
  CHECK(cluster.Where(b) == "-");
}

TEST_CASE("reserved cpu is added to the cpu of tasks that still run then") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.cpu = 8});
  const auto cpus = [](int64_t cpu, Duration walltime) {
    return JobShape{.groups = {{.cpu = cpu}}, .walltime = walltime};
  };
  cluster.Submit("A", cpus(4, absl::Minutes(60)));
  cluster.Submit("B", cpus(2, kForever));
  line.To(0);
  const JobId reserved = cluster.Submit("reserved", cpus(5, absl::Minutes(10)));
  const JobId two = cluster.Submit("two", cpus(2, kForever));
  const JobId one = cluster.Submit("one", cpus(1, kForever));
  const JobId zero = cluster.Submit("zero", cpus(0, kForever));
  line.To(0);
  CHECK(line.ReservedAt(reserved) == 60);
  CHECK(line.StartOf(two) == -1);
  CHECK(line.StartOf(one) == 0);
  CHECK(line.StartOf(zero) == 0);
  line.To(60);
  CHECK(line.StartOf(reserved) == 60);
  line.To(70);
  CHECK(line.StartOf(two) == 70);
}

TEST_CASE("reservations count equivalent devices, restricted requests reserve specific devices") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  NodeSpec spec = testing::MakeNode("n", {.gpus = 4});
  spec.devices[0].model = spec.devices[1].model = "A100";
  cluster.Must(NodeRegistered{
      .id = cluster.state().next_node_id(), .spec = spec, .epoch = 1, .agent_id = "n"});
  JobShape picky = Gpus(1, 2, absl::Minutes(60));
  picky.groups[0].models = {"A100"};
  cluster.Submit("running", picky);
  line.To(0);
  SECTION("restricted") {
    const JobId kept = cluster.Submit("kept", picky);
    const JobId other = cluster.Submit("other", Gpus(1, 2, kForever));
    line.To(0);
    CHECK(line.ReservedAt(kept) == 60);
    CHECK(line.StartOf(other) == 0);  // on the two that do not match `kept`
  }
  SECTION("unrestricted") {
    const JobId kept = cluster.Submit("kept", Gpus(1, 3, absl::Minutes(10)));
    const JobId two = cluster.Submit("two", Gpus(1, 2, kForever));
    const JobId one = cluster.Submit("one", Gpus(1, 1, kForever));
    line.To(0);
    CHECK(line.ReservedAt(kept) == 60);
    CHECK(line.StartOf(two) == -1);
    CHECK(line.StartOf(one) == 0);
    line.To(60);
    CHECK(line.StartOf(kept) == 60);
  }
}

TEST_CASE("a task that requests nothing backfills on any node, whatever is reserved") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.cpu = 4});
  cluster.Submit("running", {.groups = {{.cpu = 4}}, .walltime = absl::Minutes(60)});
  line.To(0);
  const JobId big = cluster.Submit("big", {.groups = {{.cpu = 4}}});
  const JobId zero = cluster.Submit("zero", {.groups = {{.replicas = 5, .cpu = 0}}});
  line.To(0);
  CHECK(line.ReservedAt(big) == 60);
  CHECK(cluster.Where(zero) == "n n n n n");
}

// Schedules computed by hand for 10 devices. Easy: only the head of the queue is protected.
//   A 6 for 60, B 8 for 30, C 4 for 60, D 4 for 90, E 2 for 30, all submitted at 0.
//   easy          A 0-60. B reserved 60. C 0-60 ends by then. D, E must wait. 60: B 60-90, E 60-90.
//                 90: D.
//   conservative  the same until D, which gets 4 from 90, and E 2 from 60 alongside B.
TEST_CASE("a schedule computed by hand") {
  const BackfillMode mode = GENERATE(BackfillMode::kEasy, BackfillMode::kConservative);
  Timeline line({.mode = mode});
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 10});
  const JobId a = cluster.Submit("A", Gpus(1, 6, absl::Minutes(60)));
  const JobId b = cluster.Submit("B", Gpus(1, 8, absl::Minutes(30)));
  const JobId c = cluster.Submit("C", Gpus(1, 4, absl::Minutes(60)));
  const JobId d = cluster.Submit("D", Gpus(1, 4, absl::Minutes(90)));
  const JobId e = cluster.Submit("E", Gpus(1, 2, absl::Minutes(30)));
  line.To(0);
  CHECK(line.ReservedAt(b) == 60);
  CHECK(line.ReservedAt(d) == (mode == BackfillMode::kEasy ? -1 : 90));
  CHECK(line.ReservedAt(e) == (mode == BackfillMode::kEasy ? -1 : 60));
  line.To(200);
  CHECK(line.StartOf(a) == 0);
  CHECK(line.StartOf(b) == 60);
  CHECK(line.StartOf(c) == 0);
  CHECK(line.StartOf(d) == 90);
  CHECK(line.StartOf(e) == 60);
}

// 10 devices. A 4 until 60 and B 5 until 100 run, 1 is free.
//   C needs 6 for 10: reserved from 100. D needs 9 for 10: from 110, if it has a reservation.
//   E 1 for 105 starts at once: 1 + 6 fit at 100, and it has ended by 110.
//   F needs 3 for 55: at 60 there is room. At 100 it fits alongside C and E; it would run until
//   115, so it delays D, which only conservative prevents.
TEST_CASE("conservative protects every blocked job, easy only the first") {
  const BackfillMode mode = GENERATE(BackfillMode::kEasy, BackfillMode::kConservative);
  Timeline line({.mode = mode});
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 10});
  cluster.Submit("A", Gpus(1, 4, absl::Minutes(60)));
  cluster.Submit("B", Gpus(1, 5, absl::Minutes(100)));
  line.To(0);
  const JobId c = cluster.Submit("C", Gpus(1, 6, absl::Minutes(10)));
  const JobId d = cluster.Submit("D", Gpus(1, 9, absl::Minutes(10)));
  const JobId e = cluster.Submit("E", Gpus(1, 1, absl::Minutes(105)));
  const JobId f = cluster.Submit("F", Gpus(1, 3, absl::Minutes(55)));
  line.To(60);
  CHECK(line.ReservedAt(c) == 100);
  const bool easy = mode == BackfillMode::kEasy;
  CHECK(line.ReservedAt(d) == (easy ? -1 : 110));
  CHECK(line.StartOf(e) == 0);
  CHECK(line.StartOf(f) == (easy ? 60 : -1));
  line.To(300);
  CHECK(line.StartOf(c) == 100);
  CHECK(line.StartOf(d) == (easy ? 115 : 110));
  CHECK(line.StartOf(f) == (easy ? 60 : 120));
}

TEST_CASE("when all blocked jobs get reservations, equal jobs each get one") {
  Timeline line({.mode = BackfillMode::kConservative});
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 4});
  cluster.Submit("running", Gpus(1, 4, absl::Minutes(10)));
  line.To(0);
  std::vector<JobId> equal;
  for (int i = 0; i < 3; ++i) {
    equal.push_back(cluster.Submit(absl::StrCat("j", i), Gpus(1, 4, absl::Minutes(10))));
  }
  line.To(0);
  CHECK(line.ReservedAt(equal[0]) == 10);
  CHECK(line.ReservedAt(equal[1]) == 20);
  CHECK(line.ReservedAt(equal[2]) == 30);
  const JobId late = cluster.Submit("late", Gpus(1, 4, absl::Minutes(10)));
  line.To(1);
  CHECK(line.ReservedAt(late) == 40);
}

TEST_CASE("an earlier start replaces a reservation, and a lost place renews it") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNodes("n", 2, {.gpus = 4});
  const JobId first = cluster.Submit("first", Gpus(1, 4, absl::Minutes(30)));
  const JobId second = cluster.Submit("second", Gpus(1, 4, absl::Minutes(60)));
  line.To(0);
  const JobId gang = cluster.Submit("gang", Gpus(2, 4, absl::Minutes(10)));
  line.To(0);
  REQUIRE(line.ReservedAt(gang) == 60);
  SECTION("a job ends before its walltime") {
    line.To(10);
    const JobId third = cluster.Submit("third", Gpus(1, 3, absl::Minutes(50)));
    cluster.Exit(second, 0);
    line.To(10);
    CHECK(line.ReservedAt(gang) == 30);
    CHECK(line.StartOf(third) == -1);  // it would end at 60
    line.To(30);
    CHECK(line.StartOf(gang) == 30);
  }
  SECTION("a node leaves") {
    cluster.Must(NodeSteered{.id = cluster.node_id("n2"), .cordoned = true, .reason = "test"});
    line.To(1);
    CHECK(line.ReservedAt(gang) == -1);
    CHECK(cluster.Why(gang)[0].code != WaitCode::kNone);
    cluster.Must(NodeSteered{.id = cluster.node_id("n2"), .cordoned = false, .reason = "test"});
    line.To(2);
    CHECK(line.ReservedAt(gang) == 60);
  }
  SECTION("the job is cancelled") {
    cluster.Must(JobCancelled{.id = gang, .reason = "test"});
    line.To(1);
    CHECK(line.ReservedAt(gang) == -1);
  }
  CHECK(line.StartOf(first) == 0);
}

TEST_CASE("a job that goes first takes over the reservation") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 4});
  cluster.Submit("running", Gpus(1, 2, absl::Minutes(60)));
  line.To(0);
  const JobId low = cluster.Submit("low", Gpus(1, 4, absl::Minutes(10)));
  line.To(0);
  REQUIRE(line.ReservedAt(low) == 60);
  JobShape urgent = Gpus(1, 4, absl::Minutes(20));
  urgent.priority = 5;
  const JobId high = cluster.Submit("high", urgent);
  urgent.groups[0].gpus = 2;
  urgent.walltime = kForever;
  line.To(1);
  CHECK(line.ReservedAt(low) == -1);
  CHECK(line.ReservedAt(high) == 60);
  line.To(80);
  CHECK(line.StartOf(high) == 60);
  CHECK(line.StartOf(low) == 80);
}

TEST_CASE("a job of higher priority is not delayed by a reservation of its queue") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 4});
  cluster.Submit("running", Gpus(1, 2, absl::Minutes(60)));
  line.To(0);
  const JobId low = cluster.Submit("low", Gpus(1, 4, absl::Minutes(10)));
  line.To(0);
  JobShape urgent = Gpus(1, 2, kForever);
  urgent.priority = 5;
  const JobId high = cluster.Submit("high", urgent);
  line.To(1);
  CHECK(line.StartOf(high) == 0);
  CHECK(line.ReservedAt(low) == -1);  // as no known event makes room for it
}

TEST_CASE("each queue has its own reservations, up to a total limit") {
  Timeline line({.reservations_per_queue = 2, .reservations = 3});
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 4});
  cluster.Submit("running", Gpus(1, 4, absl::Minutes(60)));
  line.To(0);
  std::vector<JobId> jobs;
  for (const char* queue : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) {
      jobs.push_back(cluster.Submit(absl::StrCat(queue, i), Gpus(1, 4, absl::Minutes(10), queue)));
    }
  }
  line.To(0);
  std::vector<int64_t> starts;
  for (JobId id : jobs) starts.push_back(line.ReservedAt(id));
  CHECK(starts == std::vector<int64_t>{60, 80, -1, 70, -1, -1});
}

TEST_CASE("a reservation counts as usage of its queue from its start") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n1", {.gpus = 4, .labels = {{"part", "x"}}});
  cluster.AddNode("n2", {.gpus = 4});
  cluster.AddQueue("a", {.limit = {{"gpu", 6}}});
  cluster.Submit("running", Gpus(1, 2, absl::Minutes(60), "a"));
  line.To(0);
  JobShape shape = Gpus(1, 4, absl::Minutes(10), "a");
  shape.groups[0].match_labels = {{"part", "x"}};
  const JobId big = cluster.Submit("big", shape);
  const JobId three = cluster.Submit("three", Gpus(1, 3, absl::Minutes(70), "a"));
  line.To(0);
  CHECK(line.StartOf(three) == -1);  // 3 + 4 > 6 at 60
  REQUIRE(cluster.Why(three).size() == 1);
  CHECK(cluster.Why(three)[0].code == WaitCode::kReserved);
  CHECK(cluster.Why(three)[0].queue == cluster.queue_id("a"));
  CHECK(cluster.Why(three)[0].job == big);
  const JobId brief = cluster.Submit("brief", Gpus(1, 3, absl::Minutes(60), "a"));
  const JobId two = cluster.Submit("two", Gpus(1, 1, absl::Minutes(70), "a"));
  line.To(0);
  REQUIRE(line.ReservedAt(big) == 60);
  CHECK(line.StartOf(three) == -1);
  CHECK(line.StartOf(brief) == 0);
  CHECK(line.StartOf(two) == 0);
  line.To(60);
  CHECK(line.StartOf(big) == 60);
}

TEST_CASE("without the backfill action nothing is reserved, and old reservations are cancelled") {
  TestCluster cluster;  // allocate only
  cluster.AddNode("n", {.gpus = 4});
  const JobId big = cluster.Submit("big", Gpus(1, 4, absl::Minutes(10)));
  cluster.Must(JobReserved{.job = big,
                           .reservation = {.start = cluster.now() + absl::Hours(1),
                                           .end = cluster.now() + absl::Hours(2),
                                           .places = {{0, cluster.node_id("n"), {}}}}});
  const JobId running = cluster.Submit("running", Gpus(1, 2, kForever));
  cluster.Settle();
  CHECK(cluster.state().reservations().empty());
  CHECK(cluster.StateOf(big) == "Binding");
  CHECK(cluster.StateOf(running) == "Pending");
}

TEST_CASE("planning wakes when a reservation starts, and then settles") {
  Timeline line;
  TestCluster& cluster = line.cluster;
  cluster.AddNode("n", {.gpus = 4});
  cluster.Submit("running", Gpus(1, 4, absl::Minutes(60)));
  line.To(0);
  cluster.Submit("big", Gpus(1, 4, kForever));
  line.To(0);
  const Plan plan = cluster.Cycle();
  CHECK(plan.decisions.empty());
  CHECK(plan.wake_at == line.At(60));
}

}  // namespace
}  // namespace berth
