// Timers, dirty records, revisions, the free index.
#include <catch2/catch.hpp>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

struct Fixture : World {
  QueueId q = AddQueue("q");
  NodeId n = AddNode("n", 4);
  JobSpec spec = JobOf("j", q, {GroupOfGpus("w", 2, 0)});
  Time Due(JobId id) const { return NextDue(job(id), absl::InfinitePast()); }
};

TEST_CASE_METHOD(Fixture, "the next due time is the earliest of all possible ones", "[model]") {
  const JobId id = Submit(spec);
  CHECK(Due(id) == absl::InfiniteFuture());
  CHECK(state.timers().empty());
  const auto with = [&](auto change) {
    Job copy = job(id);
    change(copy);
    return NextDue(copy, At(0));
  };
  CHECK(with([](Job& j) { j.start_after = At(50); }) == At(50));
  CHECK(with([](Job& j) { j.status.hold_until = At(60); }) == At(60));
  const auto running = [](Job& j) {
    j.walltime = absl::Seconds(100);
    j.status.start = At(30);
    j.status.state = JobState::kRunning;
  };
  CHECK(with(running) == At(130));
  CHECK(with([&](Job& j) {
          running(j);
          j.status.state = JobState::kRestarting;  // no walltime runs any more
        }) == absl::InfiniteFuture());
  CHECK(with([&](Job& j) {
          running(j);
          j.status.delayed = {{PolicyAction::kAbort, 0, 1, At(90), ""},
                              {PolicyAction::kAbort, 0, 1, At(70), ""}};
        }) == At(70));
  CHECK(with([](Job& j) {
          j.status.state = JobState::kFailed;
          j.status.end = At(10);
          j.ttl_after_finished = absl::Seconds(5);
          j.start_after = At(12);  // no longer relevant
        }) == At(15));
}

TEST_CASE_METHOD(Fixture, "members that are not prepared in time are due, oldest first",
                 "[model]") {
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{0, n, {}}}).ok());
  const Time first = now + absl::Seconds(60);
  now += absl::Seconds(7);
  REQUIRE(Bind(id, {{1, n, {}}}, false).ok());
  CHECK(Due(id) == first);
  CHECK(state.timers().begin()->first == first);
  REQUIRE(Report(id, 0, ReportState::kPrepared).ok());
  CHECK(Due(id) == now + absl::Seconds(60));
  REQUIRE(Report(id, 1, ReportState::kPrepared).ok());
  CHECK(state.timers().empty());
}

TEST_CASE_METHOD(Fixture, "when time passes, due jobs are unsettled once", "[model]") {
  spec.start_after = now + absl::Seconds(10);
  const JobId id = Submit(spec);
  StateEditor(state).Settle(id);
  StateEditor(state).PassTime(now + absl::Seconds(9));
  CHECK(state.unsettled().empty());
  CHECK(state.timers().size() == 1);
  StateEditor(state).PassTime(now + absl::Seconds(10));
  CHECK(state.unsettled().contains(id));
  CHECK(state.timers().empty());     // whatever the lifecycle stage does: no busy loop
  StateEditor(state).PassTime(now);  // time never goes back
  CHECK(state.passed_time() == now + absl::Seconds(10));
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE_METHOD(Fixture, "changes are dirty until they are taken, and get a revision", "[model]") {
  Dirty dirty = state.TakeDirty();
  CHECK(dirty.queues == std::vector<QueueId>{q});
  CHECK(dirty.nodes == std::vector<NodeId>{n});
  CHECK(state.TakeDirty().empty());
  const JobId id = Submit(spec);
  REQUIRE(Bind(id, {{1, n, {}}, {0, n, {}}}).ok());
  state.StampDirty(42);
  dirty = state.TakeDirty();
  CHECK(dirty.new_jobs == std::vector<JobId>{id});
  CHECK(dirty.jobs == std::vector<JobId>{id});
  CHECK(dirty.tasks == std::vector<TaskKey>{{id, 0}, {id, 1}});
  CHECK(dirty.nodes.empty());  // its record holds no allocation
  CHECK(job(id).revision == 42);
  CHECK(node(n).revision == 0);
}

TEST_CASE_METHOD(Fixture, "tentative edits mark nothing dirty", "[model]") {
  const JobId id = Submit(spec);
  StateEditor(state).Settle(id);
  state.TakeDirty();
  const uint64_t before = Fingerprint(state);
  {
    StateEditor editor(state, EditMode::kTentative);
    Task bound = task(id, 0);
    bound.state = TaskState::kBound;
    bound.node = n;
    bound.since = now;
    const Task old = editor.SetTask({id, 0}, bound);
    JobStatus status = job(id).status;
    status.state = JobState::kBinding;
    JobStatus old_status = editor.SetJobStatus(id, status);
    editor.Sync();
    CHECK(CheckConsistency(state).code() == absl::StatusCode::kInternal);  // its timer is not set
    editor.SetJobStatus(id, old_status);
    editor.SetTask({id, 0}, old);
  }
  CHECK(Fingerprint(state) == before);
  CHECK(state.TakeDirty().empty());
  CHECK(state.unsettled().empty());
  CHECK(CheckConsistency(state).ok());
}

TEST_CASE("the free index goes from the tightest sufficient node upward", "[model]") {
  World world;
  const NodeId big = world.AddNode("big", 8);
  const NodeId mid = world.AddNode("mid", 4);
  const NodeId cpu = world.AddNode("cpu", 0);
  NodeSpec weak = NodeWith("weak", 4);
  weak.cpu_millis = 1000;
  const NodeId weak_id = world.AddNode(weak);
  const NodeId mid2 = world.AddNode("mid2", 4);
  const auto from = [&](int devices, int64_t cpu_millis) {
    std::vector<NodeId> order;
    world.state.free().ForEach(devices, cpu_millis, [&](NodeId id, const Resources&) {
      order.push_back(id);
      return true;
    });
    return order;
  };
  CHECK(from(0, 0) == std::vector<NodeId>{cpu, weak_id, mid, mid2, big});
  CHECK(from(1, 500) == std::vector<NodeId>{weak_id, mid, mid2, big});
  CHECK(from(1, 2000) == std::vector<NodeId>{mid, mid2, big});
  CHECK(from(5, 2000) == std::vector<NodeId>{big});
  CHECK(from(9, 0).empty());
  int visits = 0;
  world.state.free().ForEach(0, 0, [&](NodeId, const Resources&) { return ++visits < 2; });
  CHECK(visits == 2);
  CHECK(world.state.free().total()[kCpu] == 4 * 64'000 + 1000);
}

}  // namespace
}  // namespace berth
