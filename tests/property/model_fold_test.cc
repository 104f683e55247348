// Whatever happens, in any order: sums equal facts, a rejected event changes nothing, a load equals
// the fold, and undone trials leave no trace.
#include <catch2/catch.hpp>
#include <variant>
#include <vector>

#include "tests/property/model_random.h"
#include "tests/property/ranks.h"

namespace berth {
namespace {

constexpr uint64_t kSeeds = 80;
constexpr int kEvents = 440;

// Random edits like a planner's, undone in reverse order.
void TryAndUndo(World& world, RandomEvents& events) {
  Random& random = events.random();
  StateEditor editor(world.state, EditMode::kTentative);
  std::vector<std::pair<TaskKey, Task>> tasks;
  std::vector<std::pair<JobId, JobStatus>> statuses;
  std::vector<bool> order;  // true: a task
  for (uint64_t i = random.Below(30); i > 0; --i) {
    const JobId id = events.AnyJob();
    const Job* job = world.state.jobs().Find(id);
    if (job == nullptr) continue;
    if (random.Below(4) == 0) {
      JobStatus status = job->status;
      status.state = static_cast<JobState>(random.Below(kJobStates));
      status.starts += static_cast<uint32_t>(random.Below(2));
      statuses.emplace_back(id, editor.SetJobStatus(id, status));
      order.push_back(false);
    } else {
      const TaskKey key{id, static_cast<uint32_t>(random.Below(job->tasks.size()))};
      Task task = job->tasks[key.task];
      const NodeId node = events.AnyNode();
      const bool known = world.state.nodes().Find(node) != nullptr;
      const auto state = static_cast<TaskState>(random.Below(kTaskStates));
      const bool stays = Occupies(state) && Occupies(task.state);
      if ((Occupies(state) || Reserves(state)) && !known && !stays) continue;
      if (!stays) {
        task.node = node;
        task.devices = DeviceSet{};
      }
      task.moves = state == TaskState::kReleasing && known && random.Below(2) == 0;
      task.next_node = task.moves ? node : NodeId{};
      task.next_devices = DeviceSet{};
      task.state = state;
      const bool leaves = state == TaskState::kReleasing && !task.moves;
      task.claimed = (Occupies(state) || Reserves(state)) && !leaves && random.Below(2) == 0;
      tasks.emplace_back(key, editor.SetTask(key, task));
      order.push_back(true);
    }
    if (random.Below(3) == 0) editor.Sync();
  }
  for (; !order.empty(); order.pop_back()) {
    if (order.back()) {
      editor.SetTask(tasks.back().first, tasks.back().second);
      tasks.pop_back();
    } else {
      editor.SetJobStatus(statuses.back().first, statuses.back().second);
      statuses.pop_back();
    }
  }
}

void Settle(ClusterState& state, Random& random) {
  StateEditor editor(state, EditMode::kTentative);
  while (!state.unsettled().empty()) editor.Settle(*state.unsettled().begin());
  if (!state.pending().ready().empty() && random.Below(2) == 0) {
    editor.Block(state.pending().ready().begin()->second.begin()->second, BlockedVerdict{});
  }
}

TEST_CASE("random events keep every sum equal to the facts", "[model][property]") {
  uint64_t accepted = 0;
  std::vector<uint64_t> accepted_by_kind(std::variant_size_v<AnyFact>, 0);
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    World world;
    world.AddQueue("q0");
    RandomEvents events(world, seed);
    for (int i = 0; i < kEvents; ++i) {
      const EventBody event = events.Next();
      const uint64_t before = Fingerprint(world.state);
      const absl::Status applied = world.Try(event);
      INFO("seed " << seed << " event " << i << " kind " << event.index());
      if (applied.ok()) {
        ++accepted;
        ++accepted_by_kind[event.index()];
      } else {
        REQUIRE(Fingerprint(world.state) == before);
      }
      const absl::Status consistent = CheckConsistency(world.state);
      INFO(std::string(consistent.message()));
      REQUIRE(consistent.ok());
      REQUIRE(RanksAreUnique(world.state));
      if (i % 7 == 0) Settle(world.state, events.random());
      if (i % 11 == 0) StateEditor(world.state).PassTime(world.now);
    }
  }
  CHECK(accepted > kSeeds * kEvents / 5);
  for (size_t kind = 0; kind < accepted_by_kind.size(); ++kind) {
    INFO("event kind " << kind);
    CHECK(accepted_by_kind[kind] > 0);
  }
}

TEST_CASE("loading equals folding at any time", "[model][property]") {
  for (uint64_t seed = 100; seed < 100 + kSeeds; ++seed) {
    World world;
    world.AddQueue("q0");
    RandomEvents events(world, seed);
    for (int i = 0; i < kEvents; ++i) {
      (void)world.Try(events.Next());
      world.state.StampDirty(static_cast<uint64_t>(i));
      world.state.TakeDirty();
      if (i % 40 != 39) continue;
      StateEditor(world.state).PassTime(world.now);
      ClusterState loaded = Reload(world.state);
      StateEditor(loaded).PassTime(world.now);
      INFO("seed " << seed << " event " << i);
      REQUIRE(Fingerprint(loaded) == Fingerprint(world.state));
      REQUIRE(CheckConsistency(loaded).ok());
      REQUIRE(loaded.timers() == world.state.timers());
      REQUIRE(loaded.backoffs() == world.state.backoffs());
      REQUIRE(loaded.free().nodes() == world.state.free().nodes());
    }
  }
}

TEST_CASE("undone trials leave no trace", "[model][property]") {
  for (uint64_t seed = 200; seed < 200 + kSeeds; ++seed) {
    World world;
    world.AddQueue("q0");
    RandomEvents events(world, seed);
    for (int i = 0; i < kEvents; ++i) {
      (void)world.Try(events.Next());
      if (i % 20 != 19) continue;
      Settle(world.state, events.random());
      world.state.TakeDirty();
      const uint64_t before = Fingerprint(world.state);
      const auto ready = world.state.pending().ready();
      TryAndUndo(world, events);
      INFO("seed " << seed << " event " << i);
      REQUIRE(Fingerprint(world.state) == before);
      const absl::Status consistent = CheckConsistency(world.state);
      INFO(std::string(consistent.message()));
      REQUIRE(consistent.ok());
      REQUIRE(world.state.TakeDirty().empty());
      REQUIRE(world.state.unsettled().empty());
      REQUIRE(world.state.pending().ready().size() == ready.size());
    }
  }
}

}  // namespace
}  // namespace berth
