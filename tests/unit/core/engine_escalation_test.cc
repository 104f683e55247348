// Failures that follow soon after another one restart more.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::TestCluster;

// Two elastic groups of two; the first failure restarts a task, the second within 2 min its group,
// the third within 10 min the job.
struct Escalating : TestCluster {
  Escalating() {
    AddNodes("n", 4);
    JobShape shape;
    shape.max_retries = 9;
    shape.groups = {GroupShape{.name = "a", .replicas = 2, .min_available = 0},
                    GroupShape{.name = "b", .replicas = 2, .min_available = 0}};
    shape.min_available = 1;
    const auto rung = [&](int number, PolicyAction action, Duration within) {
      shape.policies.push_back({.event = PolicyEvent::kTaskFailed,
                                .exit_codes = {},
                                .action = action,
                                .rung = number,
                                .within = within});
    };
    shape.policies.push_back(
        {.event = PolicyEvent::kTaskFailed, .exit_codes = {93}, .action = PolicyAction::kAbort});
    rung(1, PolicyAction::kRestartTask, absl::Minutes(2));
    rung(2, PolicyAction::kRestartGroup, absl::Minutes(10));
    rung(3, PolicyAction::kRestartJob, absl::ZeroDuration());
    id = Submit("job", shape);
    RunAll(id);
    Again();
    REQUIRE(Tasks(id) == "RRRR");
  }
  // All that waits or is on its way runs again.
  void Again() {
    for (int i = 0; i < 4; ++i) {
      GoneAll(id);
      Advance(absl::Seconds(10));
      PrepareAll(id);
      ReportAll(id, TaskState::kStarting, ReportState::kRunning);
    }
  }
  // Attempts of the tasks: "1 1 1 1".
  std::string Attempts() const {
    std::string text;
    for (const Task& task : job(id).tasks)
      absl::StrAppend(&text, text.empty() ? "" : " ", task.attempt);
    return text;
  }
  void Fail(uint32_t task, int code = 1) {
    Exit(id, task, code);
    Again();
  }
  JobId id;
};

TEST_CASE("escalation: each failure that comes soon restarts more, the widest again and again") {
  Escalating c;
  c.Fail(0);
  CHECK(c.Attempts() == "2 1 1 1");
  CHECK(c.status(c.id).rung == 1);
  c.Advance(absl::Seconds(30));
  c.Fail(0);
  CHECK(c.Attempts() == "3 2 1 1");
  CHECK(c.status(c.id).rung == 2);
  c.Advance(absl::Minutes(5));
  c.Fail(2);
  CHECK(c.Attempts() == "4 3 2 2");
  CHECK(c.status(c.id).rung == 3);
  c.Advance(absl::Hours(5));
  c.Fail(2);
  CHECK(c.Attempts() == "5 4 3 3");
  CHECK(c.status(c.id).retries == 4);
}

TEST_CASE("escalation: after a quiet time it begins anew") {
  Escalating c;
  c.Fail(0);
  c.Advance(absl::Minutes(3));
  c.Fail(2);
  CHECK(c.Attempts() == "2 1 2 1");
  CHECK(c.status(c.id).rung == 1);
}

TEST_CASE("escalation: what follows from a failure stays on its rung") {
  Escalating c;
  c.Report(c.id, 0, ReportState::kExited, 1);
  c.Settle();
  c.Advance(absl::Seconds(1));
  c.Report(c.id, 2, ReportState::kExited, 1);
  c.Settle();
  c.Again();
  CHECK(c.Attempts() == "2 1 2 1");
  CHECK(c.status(c.id).retries == 1);
  CHECK(c.status(c.id).rung == 1);
}

TEST_CASE("escalation: other actions come first, and it does not save a job without retries") {
  Escalating c;
  SECTION("abort") {
    c.Exit(c.id, 0, 93);
    c.GoneAll(c.id);
    CHECK(c.StateOf(c.id) == "Failed");
  }
  SECTION("a lost node begins anew") {
    c.Fail(0);
    const NodeId lost = c.job(c.id).tasks[3].node;
    c.Must(NodeSilenced{lost});
    c.Settle();
    c.Must(NodeFenced{lost});
    c.Settle();
    c.Again();
    CHECK(c.status(c.id).retries == 1);
    CHECK(c.Tasks(c.id) == "RRRR");
  }
}

}  // namespace
}  // namespace berth
