// CheckConsistency finds index entries that should not exist: stale ones and duplicates.
#include <catch2/catch.hpp>
#include <functional>

#include "core/model/free_index.h"
#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

// No editor would produce such a state.
template <class Index>
Index& Forced(const Index& index) {
  return const_cast<Index&>(index);
}

// Two nodes; one of the two tasks on the first node is being released.
struct Releasing : World {
  Releasing() {
    REQUIRE(Try(TasksBound{job, true, {{0, first, Devices({0})}, {1, first, Devices({1})}}}).ok());
    REQUIRE(Report(job, 0, ReportState::kRunning).ok());
    REQUIRE(Report(job, 1, ReportState::kRunning).ok());
    REQUIRE(Try(TasksReleased{job, {0}, false, ReleaseReason::kCancelled}).ok());
    REQUIRE(state.free().soon().size() == 1);
    REQUIRE(CheckConsistency(state).ok());
  }

  const NodeId first = AddNode("n0", 4), second = AddNode("n1", 4);
  const QueueId queue = AddQueue("q");
  const JobId job = Submit(JobOf("j", queue, {GroupOfGpus("w", 2, 1)}));
};

TEST_CASE("consistency: stale entries of the index of nodes free after release") {
  Releasing world;
  auto& soon = Forced(world.state.free().soon());
  const FreeIndex::Key now = *soon.begin();
  std::string found;
  SECTION("an additional entry of the node under its old key") {
    soon.insert({now.room + 1, now.node});
    found = "free after release lists 2 nodes, not 1";
  }
  SECTION("only an entry of the node under its old key") {
    soon.erase(now);
    soon.insert({now.room + 1, now.node});
    found = "free after release of node n0";
  }
  SECTION("a node on which nothing is being released") {
    soon.insert({FreeIndex::Room(3, 1), world.second});
    found = "free after release lists 2 nodes, not 1";
  }
  SECTION("a node that does not exist") {
    soon.insert({FreeIndex::Room(3, 1), NodeId{99}});
    found = "free after release lists 2 nodes, not 1";
  }
  const absl::Status status = CheckConsistency(world.state);
  CHECK_THAT(std::string(status.message()), Contains(found));
}

TEST_CASE("consistency: stale entries of the free index") {
  Releasing world;
  auto& nodes = Forced(world.state.free().nodes());
  const FreeIndex::Key now = *nodes.begin();
  nodes.insert({now.room + 1, now.node});
  CHECK_FALSE(CheckConsistency(world.state).ok());
}

TEST_CASE("consistency: times without an owner") {
  Releasing world;
  std::string found;
  SECTION("a timer") {
    Forced(world.state.timers()).insert({At(5), world.job});
    found = "number of timers";
  }
  SECTION("a job below its minimum") {
    Forced(world.state.short_jobs()).insert({At(5), world.job});
    found = "number of jobs below their minimum";
  }
  SECTION("a back-off") {
    Forced(world.state.backoffs()).insert({At(5), world.second});
    found = "number of back-offs";
  }
  const absl::Status status = CheckConsistency(world.state);
  CHECK_THAT(std::string(status.message()), Contains(found));
}

void Corrupt(int32_t& sum) { ++sum; }
void Corrupt(int64_t& sum) { ++sum; }
void Corrupt(Resources& sum) { ++sum[kCpu]; }
void Corrupt(DeviceUse& sum) { sum.whole.Add(3); }
void Corrupt(DeviceSet& sum) { sum.Add(3); }

// Corrupts each sum of the object, one at a time.
template <class Sums, class Object>
void CheckEachSum(const ClusterState& state, const Object& object, const std::string& of) {
  const uint64_t fingerprint = Fingerprint(state);
  Sums::ForEach(
      [&](const std::string& name, auto& sum) {
        const auto before = sum;
        Corrupt(sum);
        CHECK_THAT(std::string(CheckConsistency(state).message()), Contains(name + " of " + of));
        // What is wanted depends on what planning found out.
        CHECK((Fingerprint(state) != fingerprint) == (name != "wanted"));
        sum = before;
      },
      Forced(object));
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE("consistency and the fingerprint cover each sum of queues and nodes") {
  Releasing world;
  CheckEachSum<QueueSums>(world.state, world.state.queues().At(world.queue), "queue q");
  CheckEachSum<NodeSums>(world.state, world.node(world.first), "node n0");
}

}  // namespace
}  // namespace berth
