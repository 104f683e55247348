// What a restart of a gang keeps: the reason of its releases, its places; and when it is asked to
// save its work.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/running.h"

namespace berth {
namespace {

using testing::Gang;
using testing::JobShape;
using testing::kSecond;
using testing::Running;

TEST_CASE("a job that is drained keeps its time to save when it gives up its places") {
  Running run(Gang(2));
  run.cluster.Must(
      NodeSteered{.id = run.cluster.node_id("n2"), .cordoned = true, .draining = true});
  run.cluster.Settle();
  const auto task = [&](uint32_t index) -> const Task& {
    return run.cluster.job(run.job).tasks[index];
  };
  CHECK(task(0).moves);        // to its own place
  CHECK_FALSE(task(1).moves);  // its node is left
  SECTION("as the user suspends it") {
    run.cluster.Must(JobSuspended{.id = run.job});
    run.cluster.Settle();
  }
  SECTION("as its node takes no tasks any more") {
    run.cluster.Must(NodeSteered{.id = run.cluster.node_id("n1"), .cordoned = true});
    run.cluster.Settle();
  }
  CHECK_FALSE(task(0).moves);
  CHECK(task(0).released == ReleaseReason::kDrain);
  CHECK(task(1).released == ReleaseReason::kDrain);
}

TEST_CASE("a gang is asked to save once before its walltime ends, and again if it grows") {
  JobShape shape = Gang(2);
  shape.walltime = absl::Minutes(10);
  shape.walltime_notice = absl::Minutes(2);
  Running run(shape);
  const Time start = run.cluster.status(run.job).start;
  const auto asked = [&] { return run.cluster.status(run.job).checkpoint_asked - start; };
  run.cluster.Advance(absl::Minutes(8) - kSecond);
  CHECK(asked() == -absl::InfiniteDuration());
  run.cluster.Advance(kSecond);
  CHECK(asked() == absl::Minutes(8));
  run.cluster.Advance(absl::Minutes(1));
  CHECK(asked() == absl::Minutes(8));
  run.cluster.Must(JobUpdated{.id = run.job, .walltime = absl::Minutes(30)});
  run.cluster.Advance(absl::Minutes(19) - kSecond);
  CHECK(asked() == absl::Minutes(8));
  run.cluster.Advance(kSecond);
  CHECK(asked() == absl::Minutes(28));
  CHECK(run.State() == "Running");
}

}  // namespace
}  // namespace berth
