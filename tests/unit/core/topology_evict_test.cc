// Evictions for a gang that a hard constraint keeps in one domain, and its reservations.
#include "tests/unit/core/testing/evictions.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Evicting;
using testing::Fabric;
using testing::GroupShape;
using testing::Hard;
using testing::JobShape;
using testing::Soft;

GroupShape Whole(int replicas) { return {.replicas = replicas, .cpu = 0, .gpus = 4}; }
JobShape Low() {
  JobShape shape;
  shape.preemptible = true;
  return shape;
}
JobShape High() { return {.priority = 5}; }

std::string Evictions(Fabric& fabric) {
  std::string text;
  for (const EventBody& decision : fabric.Settle()) {
    const auto* released = std::get_if<TasksReleased>(&decision);
    if ((released != nullptr && IsEviction(released->reason)) ||
        std::holds_alternative<TasksNominated>(decision)) {
      absl::StrAppend(&text, testing::Describe(fabric.state(), decision), "\n");
    }
  }
  return text;
}

TEST_CASE("all victims are in one domain: the one with most room already") {
  Fabric fabric(Evicting({"allocate", "preempt"}));
  fabric.AddRacks(3, 3, {.gpus = 4});
  for (const char* node : {"r1n1", "r1n2", "r1n3", "r2n1", "r3n1", "r3n2"}) {
    fabric.Occupy(node, 4, Low());
  }
  fabric.Ask("gang", Hard("rack"), Whole(3), High());
  CHECK(Evictions(fabric) == "nominate gang: 0@r2n1 1@r2n2 2@r2n3\nrelease fill-4: 0 for gang\n");
}

TEST_CASE("no eviction where no domain can hold the gang") {
  Fabric fabric(Evicting({"allocate", "consolidate", "preempt"}));
  fabric.AddRacks(2, 3, {.gpus = 4});
  for (const char* node : {"r1n1", "r2n1"}) fabric.Occupy(node, 4, Low());
  SECTION("too large for any domain") {
    fabric.Ask("gang", Hard("rack"), Whole(4), High());
    CHECK(Evictions(fabric).empty());
  }
  SECTION("the tasks there may not be evicted") {
    for (const char* node : {"r1n2", "r2n2"}) fabric.Occupy(node, 4);
    fabric.Ask("gang", Hard("rack"), Whole(3), High());
    CHECK(Evictions(fabric).empty());
  }
}

TEST_CASE("a lower tier is preferred to fewer victims at a higher one") {
  Fabric fabric(Evicting({"allocate", "preempt"}));
  fabric.AddRacks(4, 2, {.gpus = 4});
  fabric.AddAbove("p", 2, "pod", "r", 2);
  // r1 and r2 have one node free each: the pod has two without evictions.
  for (const char* node : {"r1n1", "r2n1", "r3n1", "r3n2", "r4n1", "r4n2"}) {
    fabric.Occupy(node, 4, Low());
  }
  fabric.Ask("wide", Hard("pod"), Whole(2), High());
  fabric.Settle();
  CHECK(fabric.Racks(fabric.state().FindJob("wide")->id) == "r1 r2");
  fabric.Ask("narrow", Hard("rack"), Whole(2), High());
  CHECK(Evictions(fabric) ==
        "nominate narrow: 0@r3n1 1@r3n2\nrelease fill-3: 0 for narrow\nrelease fill-4: 0 for "
        "narrow\n");
}

TEST_CASE("reclaim takes from one domain") {
  PolicyConfig config;
  config.actions = {"allocate", "reclaim"};
  config.eviction = testing::Unprotected();
  Fabric fabric(*Policies::Create(config));
  fabric.AddRacks(2, 2, {.gpus = 4});
  fabric.AddQueue("owner", {.deserved = {{"gpu", 8}}});
  fabric.AddQueue("guest", {.deserved = {{"gpu", 8}}});
  JobShape guest = Low();
  guest.queue = "guest";
  for (const char* node : {"r1n1", "r1n2", "r2n1", "r2n2"}) fabric.Occupy(node, 4, guest);
  JobShape owner;
  owner.queue = "owner";
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(2), owner);
  fabric.Settle();
  CHECK(fabric.Racks(gang) == "r1");
  CHECK(fabric.state().releasing().size() == 2);
}

TEST_CASE("consolidation moves jobs out of one domain") {
  Fabric fabric(Evicting({"allocate", "consolidate"}));
  fabric.AddRacks(2, 2, {.gpus = 4});
  JobShape half = Low();
  half.strategy = Strategy::kSpread;
  half.groups = {{.cpu = 0, .gpus = 2}};
  for (const char* name : {"a", "b", "c"}) fabric.RunAll(fabric.Submit(name, half));
  REQUIRE(fabric.Where(fabric.state().FindJob("c")->id) == "r2n1");
  fabric.Ask("gang", Hard("rack"), Whole(2), Low());
  CHECK(Evictions(fabric) == "nominate gang: 0@r2n1 1@r2n2\nrelease c: 0 for gang to 0@r1n1\n");
}

TEST_CASE("of a victim that spans racks, only the tasks in one rack are needed") {
  Fabric fabric(Evicting({"allocate", "preempt"}));
  fabric.AddRacks(2, 2, {.gpus = 4});
  JobShape elastic = Low();
  GroupShape group = Whole(4);
  group.min_available = 2;
  const JobId wide = fabric.Ask("wide", Soft(), group, elastic);
  for (int i = 0; i < 4; ++i) fabric.RunAll(wide);
  REQUIRE(fabric.Tasks(wide) == "RRRR");
  fabric.Ask("gang", Hard("rack"), Whole(2), High());
  CHECK(Evictions(fabric) == "nominate gang: 0@r2n1 1@r2n2\nrelease wide: 2 3 for gang\n");
}

TEST_CASE("a partitioned gang evicts only tasks that make room for whole partitions") {
  Fabric fabric(Evicting({"allocate", "preempt"}));
  fabric.AddRacks(3, 3, {.gpus = 4});
  for (const char* node : {"r1n1", "r2n1", "r2n2"}) fabric.Occupy(node, 4, Low());
  for (const char* node : {"r3n1", "r3n2"}) fabric.Occupy(node, 4);
  JobSpec spec = fabric.SpecFor("gang", {}, Whole(4), High());
  spec.groups[0].partition_size = 2;
  spec.groups[0].partition_topology = Hard("rack");
  fabric.SubmitSpec(spec);
  // r1 has room for one partition, r2 and r3 for half of one each: four tasks in all.
  CHECK(Evictions(fabric) ==
        "nominate gang: 0@r1n2 1@r1n3 2@r2n2 3@r2n3\nrelease fill-3: 0 for gang\n");
}

Policies Backfilling() {
  PolicyConfig config;
  config.actions = {"allocate", "backfill"};
  return *Policies::Create(config);
}
JobShape Until(int minutes) { return {.walltime = absl::Minutes(minutes)}; }

TEST_CASE("a reservation is for the first moment at which one domain has room") {
  Fabric fabric(Backfilling());
  fabric.AddRacks(2, 2, {.gpus = 4});
  fabric.Occupy("r1n1", 4, Until(10));
  fabric.Occupy("r2n1", 4, Until(20));
  fabric.Occupy("r1n2", 4, Until(50));
  fabric.Occupy("r2n2", 4, Until(30));
  // By minute 20 two nodes are free, but in two racks.
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(2), Until(60));
  const JobId any = fabric.Ask("any", Soft(), Whole(1), Until(25));
  const JobId late = fabric.Ask("late", Soft(), Whole(1), Until(15));
  fabric.Settle();
  const auto found = fabric.state().reservations().find(gang);
  REQUIRE(found != fabric.state().reservations().end());
  CHECK(absl::ToInt64Minutes(found->second.start - fabric.now()) == 30);
  for (const Placement& place : found->second.places) {
    CHECK(fabric.state().DomainOf(fabric.state().nodes().At(place.node), "network")->spec.name ==
          "r2");
  }
  (void)any;
  (void)late;
}

TEST_CASE("many ends that help no domain do not use up the tries of a reservation") {
  Fabric fabric(Backfilling());
  // 150 racks of two nodes: the first of each ends early, one by one; only one rack becomes free.
  fabric.AddRacks(150, 2, {.gpus = 1});
  JobShape shape;
  for (int r = 1; r <= 150; ++r) {
    shape.walltime = absl::Minutes(10 + r);
    fabric.Occupy(absl::StrCat("r", r, "n1"), 1, shape);
    shape.walltime = r == 77 ? absl::Minutes(400) : absl::InfiniteDuration();
    fabric.Occupy(absl::StrCat("r", r, "n2"), 1, shape);
  }
  const JobId gang = fabric.Ask("gang", Hard("rack"), {.replicas = 2, .gpus = 1}, Until(60));
  fabric.Settle();
  const auto found = fabric.state().reservations().find(gang);
  REQUIRE(found != fabric.state().reservations().end());
  CHECK(absl::ToInt64Minutes(found->second.start - fabric.now()) == 400);
}

TEST_CASE("room in a domain that is reserved for others is not taken") {
  Fabric fabric(Backfilling());
  fabric.AddRacks(2, 2, {.gpus = 4});
  fabric.Occupy("r1n1", 4, Until(10));
  fabric.Occupy("r2n1", 4);
  fabric.Occupy("r2n2", 4);
  const JobId first = fabric.Ask("first", Hard("rack"), Whole(2), Until(60));
  const JobId second = fabric.Ask("second", Hard("rack"), Whole(1), Until(60));
  fabric.Settle();
  CHECK(fabric.Tasks(first) == "..");
  CHECK(fabric.Tasks(second) == ".");
  CHECK(fabric.Why(second)[0].code == WaitCode::kReserved);
  const JobId third = fabric.Ask("third", Hard("rack"), Whole(1), Until(5));
  fabric.Settle();
  CHECK(fabric.Where(third) == "r1n2");
}

TEST_CASE("patience: a job waits for the preferred tier if it is free in time") {
  Fabric fabric(Backfilling());
  fabric.AddRacks(2, 2, {.gpus = 4});
  fabric.Occupy("r1n1", 4, Until(5));
  fabric.Occupy("r2n1", 4);
  SECTION("in time") {
    const JobId gang = fabric.Ask("gang", Soft("rack", absl::Minutes(10)), Whole(2));
    fabric.Settle();
    CHECK(fabric.Tasks(gang) == "..");
    CHECK(fabric.Why(gang)[0].code == WaitCode::kWaitsForBetterTier);
    CHECK(fabric.state().reservations().empty());
    // It lasts longer than predicted.
    fabric.Advance(absl::Minutes(4));
    CHECK(fabric.Tasks(gang) == "..");
    fabric.Exit(fabric.state().FindJob("fill-1")->id, 0);
    CHECK(fabric.Where(gang) == "r1n1 r1n2");
  }
  SECTION("not in time") {
    const JobId gang = fabric.Ask("gang", Soft("rack", absl::Minutes(4)), Whole(2));
    fabric.Settle();
    CHECK(fabric.Racks(gang) == "r1 r2");
  }
  SECTION("the tier never becomes free") {
    const JobId gang = fabric.Ask("gang", Soft("rack", absl::Minutes(10)), Whole(2));
    fabric.Settle();
    REQUIRE(fabric.Tasks(gang) == "..");
    fabric.Must(NodeSteered{.id = fabric.node_id("r1n1"), .cordoned = true});
    fabric.AddRack(1, {.gpus = 4});
    fabric.Settle();
    CHECK(fabric.Tasks(gang) == "BB");
  }
  SECTION("the tier is free: the job does not wait") {
    const JobId gang = fabric.Ask("gang", Soft("rack", absl::Minutes(10)), Whole(1));
    fabric.Settle();
    CHECK(fabric.Where(gang) == "r1n2");
  }
}

TEST_CASE("a nomination whose domain no longer exists is cancelled") {
  Fabric fabric(Evicting({"allocate", "preempt"}));
  fabric.AddRacks(2, 2, {.gpus = 4});
  for (const char* node : {"r1n1", "r1n2"}) fabric.Occupy(node, 4, Low());
  for (const char* node : {"r2n1", "r2n2"}) fabric.Occupy(node, 4);
  const JobId gang = fabric.Ask("gang", Hard("rack"), Whole(2), High());
  fabric.Settle();
  REQUIRE(fabric.Racks(gang) == "r1");
  fabric.Must(NodesJoined{.domain = fabric.state().FindHyperNode("r2")->id,
                          .nodes = {fabric.node_id("r1n1")}});
  fabric.Settle();
  CHECK(TallyOf(fabric.job(gang)).Nominated() == 0);
}

}  // namespace
}  // namespace berth
