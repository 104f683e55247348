// Conditions of queues, counted from the starts of their jobs.
#include "server/listeners/queue_conditions.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "tests/unit/core/testing/running.h"

namespace berth::testing {
namespace {

// Jobs of one queue, whose events the watch receives.
class Line {
 public:
  Line() { cluster_.AddNodes("n", 8); }
  JobId Add(const std::string& name) { return cluster_.Submit(name, Gang(1)); }
  QueueId queue(JobId job) const { return cluster_.job(job).queue; }
  const ClusterState& state() const { return cluster_.state(); }

  // The job has been refused `own` times in total, and fails or stays pending.
  void Refuse(JobId job, int32_t own, JobState then = JobState::kPending) {
    JobStatus status;
    status.state = then;
    status.refusals.own = own;
    Tell(job, status);
  }
  void Run(JobId job, Duration ago = absl::ZeroDuration()) {
    JobStatus status;
    status.state = JobState::kRunning;
    status.start = time_ - ago;
    Tell(job, status);
  }
  // A job that is refused twice and fails.
  void Fail(const std::string& name) {
    const JobId job = Add(name);
    Refuse(job, 1);
    Refuse(job, 2, JobState::kFailed);
  }
  void Tell(JobId job, const JobStatus& status) { Tell({{time_, JobStatusChanged{job, status}}}); }
  void Tell(const std::vector<Event>& events) {
    Effect effect = watch.OnTurnApplied(cluster_.state(), events, {});
    if (effect != nullptr) std::move(effect)();
    time_ += kSecond;
  }

  RefusedStarts watch;

 private:
  TestCluster cluster_;
  Time time_ = absl::FromUnixSeconds(2'000'000'000);
};

}  // namespace

TEST_CASE("consecutive refused jobs are a condition of their queue") {
  Line line;
  const QueueId queue = line.queue(line.Add("first"));
  line.Fail("a");
  line.Fail("b");
  CHECK(line.watch.ConsecutiveRefusals(queue) == 0);
  line.Fail("c");
  CHECK(line.watch.ConsecutiveRefusals(queue) == 6);
  CHECK(line.watch.Queues() == 1);
  v1::QueueStatus status;
  RenderConditions(line.watch.ConsecutiveRefusals(queue), &status);
  REQUIRE(status.conditions_size() == 1);
  CHECK(status.conditions(0).kind() == v1::QueueCondition::STARTS_REFUSED);
  CHECK(status.conditions(0).count() == 6);
  CHECK(status.conditions(0).detail() ==
        "the last 6 starts of its jobs were refused, and none has run since");
  v1::QueueStatus none;
  RenderConditions(0, &none);
  CHECK(none.conditions_size() == 0);
}

TEST_CASE("a start that runs resets the count, and a job that has run for long does not") {
  Line line;
  const JobId old = line.Add("old");
  const QueueId queue = line.queue(old);
  for (const char* name : {"a", "b", "c"}) line.Fail(name);
  line.Run(old, absl::Hours(1));  // only its message changes
  CHECK(line.watch.ConsecutiveRefusals(queue) == 6);
  line.Run(line.Add("d"));
  CHECK(line.watch.ConsecutiveRefusals(queue) == 0);
  CHECK(line.watch.Queues() == 0);
  for (const char* name : {"e", "f"}) line.Fail(name);
  CHECK(line.watch.ConsecutiveRefusals(queue) == 0);
}

TEST_CASE("changes other than refusals do not count, nor does the end of the job") {
  Line line;
  const JobId job = line.Add("j");
  const QueueId queue = line.queue(job);
  for (int i = 0; i < 20; ++i) line.Refuse(job, 1);
  line.Refuse(job, 1, JobState::kCancelled);
  CHECK(line.watch.ConsecutiveRefusals(queue) == 0);
  for (int32_t i = 1; i <= 5; ++i)
    line.Refuse(line.Add(std::string(1, static_cast<char>('a' + i))), 1);
  CHECK(line.watch.ConsecutiveRefusals(queue) == 6);
}

TEST_CASE("a deleted queue has no count") {
  Line line;
  const QueueId queue = line.queue(line.Add("first"));
  for (const char* name : {"a", "b", "c"}) line.Fail(name);
  line.Tell({{absl::UnixEpoch(), QueueDeleted{queue}}});
  CHECK(line.watch.ConsecutiveRefusals(queue) == 0);
}

TEST_CASE("refusals from before the start of the process are not counted again") {
  Line line;
  TestCluster before;
  before.AddNodes("n", 8);
  const JobId job = before.Submit("j", Gang(1));
  JobStatus status = before.status(job);
  status.refusals.starts = 3;
  before.Must(JobStatusChanged{job, status});
  line.watch.Begin(before.state());
  line.Tell(line.Add("j"), status);  // same id
  CHECK(line.watch.Queues() == 0);
  for (int32_t i = 4; i <= 8; ++i) {
    status.refusals.starts = i;
    line.Tell(job, status);
  }
  CHECK(line.watch.ConsecutiveRefusals(line.queue(job)) == 5);
}

}  // namespace berth::testing
