// Conditions of jobs: derived from the state, or counted from events.
#include "server/listeners/job_conditions.h"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/core/testing/running.h"

namespace berth::testing {
namespace {

// A gang of two whose tasks restart one by one when they fail.
JobShape PiecemealGang() {
  JobShape shape = Gang(2);
  shape.groups[0].membership = GangMembership::kRendezvous;
  shape.groups.push_back({.name = "rdzv", .coordinator = true});
  shape.max_retries = 100;
  return shape;
}

void FailAndRestart(Running& running, uint32_t task) {
  running.cluster.Exit(running.job, task, 1);
  for (int i = 0; i < 200 && running.Tasks() != "RRR"; ++i) {
    running.cluster.Advance(kSecond);
    running.cluster.RunAll(running.job);
  }
  REQUIRE(running.Tasks() == "RRR");
}

std::vector<v1::JobCondition::Kind> KindsOf(const TestCluster& cluster, JobId job,
                                            int32_t restarts = 0) {
  v1::JobStatus status;
  RenderConditions(cluster.state(), cluster.job(job), restarts, &status);
  std::vector<v1::JobCondition::Kind> kinds;
  for (const v1::JobCondition& condition : status.conditions()) kinds.push_back(condition.kind());
  return kinds;
}

void RefuseGang(TestCluster& cluster, JobId job) {
  for (int i = 0; i < 1000 && cluster.StateOf(job) != "Binding"; ++i) cluster.Advance(kSecond);
  REQUIRE(cluster.StateOf(job) == "Binding");
  cluster.Must(TaskReported{.task = {job, 0},
                            .attempt = cluster.job(job).tasks[0].attempt,
                            .state = ReportState::kRefused,
                            .message = "disk full"});
  cluster.Settle();
  cluster.GoneAll(job);
}

Event Now(Time time, EventBody body) { return {time, std::move(body)}; }
void Tell(RestartWatch& watch, std::vector<Event> events) {
  watch.OnTurnDurable(1, std::make_shared<const std::vector<Event>>(std::move(events)), nullptr);
}

}  // namespace

TEST_CASE("a gang whose tasks have all restarted one by one has a condition") {
  Running running(PiecemealGang());
  CHECK(RestartedPiecemeal(running.cluster.job(running.job)) == 0);
  running.cluster.Advance(kSecond);
  FailAndRestart(running, 0);
  CHECK(RestartedPiecemeal(running.cluster.job(running.job)) == 0);  // one has not restarted
  FailAndRestart(running, 1);
  REQUIRE(running.cluster.status(running.job).starts == 1);
  CHECK(RestartedPiecemeal(running.cluster.job(running.job)) == 2);
  CHECK(KindsOf(running.cluster, running.job) ==
        std::vector{v1::JobCondition::GANG_RESTARTED_PIECEMEAL});
}

TEST_CASE("a gang that restarts as a whole has no such condition") {
  JobShape shape = Gang(2);
  shape.policies = {On(PolicyEvent::kTaskFailed, PolicyAction::kRestartJob)};
  shape.max_retries = 3;
  Running running(shape);
  running.cluster.Advance(kSecond);
  running.cluster.Exit(running.job, 0, 1);
  running.cluster.GoneAll(running.job);
  running.cluster.Advance(absl::Minutes(1));
  running.cluster.RunAll(running.job);
  REQUIRE(running.Tasks() == "RR");
  REQUIRE(running.cluster.status(running.job).starts == 2);
  CHECK(KindsOf(running.cluster, running.job).empty());
}

TEST_CASE("a job that is first in its queue and is refused three times in a row has a condition") {
  TestCluster cluster;
  cluster.AddNodes("n", 8);
  const JobId job = cluster.Submit("j", Gang(1));
  cluster.Settle();
  RefuseGang(cluster, job);
  RefuseGang(cluster, job);
  CHECK(KindsOf(cluster, job).empty());
  RefuseGang(cluster, job);
  CHECK(RefusedAtHead(cluster.state(), cluster.job(job)) == 3);
  CHECK(KindsOf(cluster, job) == std::vector{v1::JobCondition::START_REFUSED});
  JobShape first = Gang(1000);  // pending, and ahead of it
  first.priority = 1;
  cluster.Submit("first", first);
  CHECK(KindsOf(cluster, job).empty());
}

TEST_CASE("more than ten restarts in a minute are frequent") {
  RestartWatch watch;
  const Time start = absl::FromUnixSeconds(1'000'000);
  const JobId job{7};
  for (int i = 0; i < 10; ++i) {
    Tell(watch, {Now(start + i * kSecond, TasksRequeued{.job = job, .tasks = {0}})});
  }
  CHECK(watch.Often(job, start + 9 * kSecond) == 0);
  Tell(watch, {Now(start + 10 * kSecond, TasksRequeued{.job = job, .tasks = {1}})});
  CHECK(watch.Often(job, start + 10 * kSecond) == 11);
  CHECK(watch.JobsOften(start + 10 * kSecond) == 1);
  CHECK(watch.Often(JobId{8}, start + 10 * kSecond) == 0);
  CHECK(watch.Often(job, start + 60 * kSecond) == 0);  // the first was a minute ago
  CHECK(watch.JobsOften(start + 60 * kSecond) == 0);
}

TEST_CASE(
    "a restart of a gang counts once, a refused start never, and the end of the job resets it") {
  RestartWatch watch;
  const Time start = absl::FromUnixSeconds(1'000'000);
  const JobId job{7};
  std::vector<uint32_t> tasks(20);
  JobStatus restarting;
  restarting.state = JobState::kRestarting;
  const std::vector<Event> restart = {Now(start, TasksRequeued{.job = job, .tasks = tasks}),
                                      Now(start, JobStatusChanged{job, restarting})};
  for (int i = 0; i < 10; ++i) Tell(watch, restart);
  CHECK(watch.Often(job, start) == 0);
  const TaskReported refused{.task = {job, 3}, .attempt = 1, .state = ReportState::kRefused};
  Tell(watch, {Now(start, refused), Now(start, TasksRequeued{.job = job, .tasks = {3}})});
  CHECK(watch.Often(job, start) == 0);
  Tell(watch, restart);
  CHECK(watch.Often(job, start) == 11);
  JobStatus failed;
  failed.state = JobState::kFailed;
  Tell(watch, {Now(start, JobStatusChanged{job, failed})});
  CHECK(watch.Often(job, start) == 0);
}

}  // namespace berth::testing
