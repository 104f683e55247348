// Arrays and schedules: jobs that make jobs.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::JobShape;
using testing::QueueShape;
using testing::TestCluster;

SeriesSpec ArrayOf(int64_t size, int32_t parallelism, int32_t max_failed = -1) {
  SeriesSpec series;
  series.indexes = {{.from = 0, .to = size - 1}};
  series.parallelism = parallelism;
  series.max_failed = max_failed;
  return series;
}

SeriesSpec Every(const std::string& cron, Overlap overlap = Overlap::kForbid) {
  SeriesSpec series;
  series.cron = cron;
  series.overlap = overlap;
  return series;
}

struct Series : TestCluster {
  explicit Series(SeriesSpec series, JobShape shape = {}) {
    AddNodes("n", 4, {.cpu = 4});
    shape.series = std::move(series);
    id = Submit("s", shape);
    Settle();
  }
  const SeriesStatus& status() const { return *job(id).status.series; }
  // "s.0 s.1": its jobs that have not ended.
  std::string Live() const {
    std::vector<std::string> names;
    for (JobId member : state().MembersOf(id)) {
      if (!Ended(job(member).status.state)) names.push_back(job(member).name);
    }
    return absl::StrJoin(names, " ");
  }
  JobId Named(const std::string& name) const {
    const Job* job = state().FindJob(name);
    REQUIRE(job != nullptr);
    return job->id;
  }
  void End(const std::string& name, int exit_code = 0) {
    RunAll(Named(name));
    Exit(Named(name), 0, exit_code);
  }
  JobId id;
};

TEST_CASE("indexes: read, counted, written and found by position") {
  std::string error;
  const auto ranges = ParseIndexRanges("0-9:3,12,20-22", 100, &error);
  REQUIRE(ranges.has_value());
  CHECK(CountOf(*ranges) == 8);
  std::string all;
  for (int64_t i = 0; i < CountOf(*ranges); ++i) absl::StrAppend(&all, IndexAt(*ranges, i), " ");
  CHECK(all == "0 3 6 9 12 20 21 22 ");
  CHECK(TextOf(*ranges, 100) == "0-9:3,12,20-22");
  for (const char* wrong : {"", "a", "3-1", "1,1", "5,3", "0-9,9", "1-2-3", "0-9:0", "101", "1:2",
                            "-1", "1,", "99999999999999999999"}) {
    INFO(wrong);
    CHECK_FALSE(ParseIndexRanges(wrong, 100, &error).has_value());
    CHECK_FALSE(error.empty());
  }
}

TEST_CASE("indexes that failed join into ranges") {
  IndexRanges ranges;
  for (int64_t index : {5, 7, 6, 1, 0, 6, 9}) AddIndex(index, ranges);
  CHECK(TextOf(ranges, 100) == "0-1,5-7,9");
  for (int64_t i = 100; i < 200; i += 2) AddIndex(i, ranges);
  CHECK(TextOf(ranges, 20) == "0-1,5-7,9,100,102,104,...");
}

TEST_CASE("an array makes a job of each index, at most `parallelism` at once") {
  Series c(ArrayOf(5, 2));
  CHECK(c.StateOf(c.id) == "Running");
  CHECK(c.job(c.id).tasks.size() == 0);
  CHECK(c.Live() == "s.0 s.1");
  CHECK(c.job(c.Named("s.1")).member->index == 1);
  c.End("s.0");
  CHECK(c.Live() == "s.1 s.2");
  c.End("s.2");
  c.End("s.1");
  CHECK(c.Live() == "s.3 s.4");
  c.End("s.3");
  c.End("s.4");
  CHECK(c.StateOf(c.id) == "Succeeded");
  CHECK(c.status().succeeded == 5);
}

TEST_CASE("an array of thousands is made in steps, and ends") {
  Series c(ArrayOf(3000, 2500));
  CHECK(c.status().next == 2500);
  CHECK(c.status().live.size() == 2500);
  CHECK(c.state().MembersOf(c.id).size() == 2500);
}

TEST_CASE("an index that fails leaves the others alone, and the array fails at its end") {
  Series c(ArrayOf(3, 3));
  c.End("s.1", 7);
  CHECK(c.StateOf(c.id) == "Running");
  CHECK(c.Live() == "s.0 s.2");
  c.End("s.0");
  c.End("s.2");
  CHECK(c.StateOf(c.id) == "Failed");
  CHECK(c.job(c.id).status.message == "1 of 3 failed: 1");
}

TEST_CASE("each index has its own retries") {
  Series c(ArrayOf(2, 2), {.max_retries = 1});
  c.End("s.0", 1);
  c.Advance(absl::Minutes(5));
  CHECK(c.job(c.Named("s.0")).status.retries == 1);
  CHECK(c.Live() == "s.0 s.1");
  CHECK(c.job(c.Named("s.1")).status.retries == 0);
}

TEST_CASE("too many failures end an array: what runs is cancelled first") {
  Series c(ArrayOf(10, 3, /*max_failed=*/1));
  c.End("s.0", 1);
  CHECK(c.StateOf(c.id) == "Running");
  c.RunAll(c.Named("s.2"));
  c.End("s.1", 1);
  CHECK(c.StateOf(c.id) == "Completing");
  CHECK(c.Tasks(c.Named("s.2")) == "L");
  for (const char* name : {"s.2", "s.3"}) c.GoneAll(c.Named(name));
  CHECK(c.StateOf(c.id) == "Failed");
  CHECK(c.status().cancelled == 2);
  CHECK_FALSE(c.state().FindJob("s.9"));
}

TEST_CASE("cancelling an array cancels its jobs") {
  Series c(ArrayOf(10, 2));
  c.RunAll(c.Named("s.0"));
  c.Must(JobCancelled{.id = c.id, .reason = "enough"});
  c.Settle();
  CHECK(c.StateOf(c.id) == "Completing");
  CHECK(c.StateOf(c.Named("s.1")) == "Completing");
  CHECK(c.job(c.Named("s.0")).status.message == "enough");
  for (const char* name : {"s.0", "s.1"}) c.GoneAll(c.Named(name));
  CHECK(c.StateOf(c.id) == "Cancelled");
  CHECK(c.Live() == "");
}

TEST_CASE("a job of an array that is cancelled counts as such") {
  Series c(ArrayOf(2, 1));
  c.Must(JobCancelled{.id = c.Named("s.0"), .reason = ""});
  c.Settle();
  c.GoneAll(c.Named("s.0"));
  CHECK(c.status().cancelled == 1);
  c.End("s.1");
  CHECK(c.StateOf(c.id) == "Succeeded");
}

TEST_CASE("an array on hold makes nothing, and holds what it made") {
  Series c(ArrayOf(4, 2));
  c.RunAll(c.Named("s.0"));
  c.Must(JobSuspended{.id = c.id, .suspended = true});
  c.Settle();
  for (const char* name : {"s.0", "s.1"}) c.GoneAll(c.Named(name));
  CHECK(c.StateOf(c.id) == "Suspended");
  CHECK(c.StateOf(c.Named("s.0")) == "Suspended");
  CHECK(c.StateOf(c.Named("s.1")) == "Suspended");
  c.Must(JobSuspended{.id = c.id, .suspended = false});
  c.Settle();
  CHECK(c.StateOf(c.id) == "Running");
  CHECK(c.StateOf(c.Named("s.1")) == "Binding");
}

TEST_CASE("an array waits for its dependencies, and others for it") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 4});
  const JobId before = c.Submit("before");
  const JobId array = c.Submit(
      "s", {.dependencies = {{before, DependencyCondition::kAfterOk}}, .series = ArrayOf(2, 2)});
  const JobId after = c.Submit("after", {.dependencies = {{array, DependencyCondition::kAfterOk}}});
  c.RunAll(before);
  CHECK(c.StateOf(array) == "Held");
  CHECK(c.state().MembersOf(array).empty());
  c.Exit(before, 0);
  CHECK(c.StateOf(array) == "Running");
  for (JobId member : c.state().MembersOf(array)) {
    CHECK(c.job(member).dependencies.empty());
    c.RunAll(member);
    c.Exit(member, 0);
  }
  CHECK(c.StateOf(array) == "Succeeded");
  CHECK(c.StateOf(after) == "Binding");
}

TEST_CASE("an array keeps to the limit of its queue, and goes on below it") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 4});
  c.AddQueue("q", QueueShape{.max_jobs = 3});
  const JobId array = c.Submit("s", {.queue = "q", .series = ArrayOf(6, 6)});
  c.Settle();
  CHECK(c.state().MembersOf(array).size() == 2);  // the array itself is the third
  const JobId first = c.state().MembersOf(array)[0];
  c.RunAll(first);
  c.Exit(first, 0);
  CHECK(c.state().MembersOf(array).size() == 3);
}

TEST_CASE("an array goes on once other jobs have left its queue, or it is opened") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 4});
  const QueueId queue = c.AddQueue("q", QueueShape{.max_jobs = 2});
  const JobId other = c.Submit("other", {.queue = "q"});
  const JobId array = c.Submit("s", {.queue = "q", .series = ArrayOf(1, 1)});
  c.RunAll(other);
  CHECK(c.state().MembersOf(array).empty());
  REQUIRE(c.Why(array).size() == 1);
  CHECK(c.Why(array)[0].detail.find("queue q") == 0);
  c.Must(QueueOpened{.id = queue, .open = false});
  c.Exit(other, 0);
  c.Advance(absl::Minutes(1));
  CHECK(c.state().MembersOf(array).empty());
  CHECK(c.Why(array)[0].code == WaitCode::kQueueClosed);
  c.Must(QueueOpened{.id = queue, .open = true});
  c.Advance(absl::Seconds(5));
  CHECK(c.state().MembersOf(array).size() == 1);
}

TEST_CASE("arrays that begin in one cycle keep to a limit of tasks together") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 64});
  c.AddQueue("q", QueueShape{.max_tasks = 10});
  const JobId wide =
      c.Submit("wide", {.queue = "q", .groups = {{.replicas = 8}}, .series = ArrayOf(1, 1)});
  const JobId many = c.Submit("many", {.queue = "q", .series = ArrayOf(10, 10)});
  c.Settle();
  CHECK(c.state().MembersOf(wide).size() == 1);
  CHECK(c.state().MembersOf(many).size() == 2);
}

TEST_CASE("one job of an array on hold stays so while the others run") {
  Series c(ArrayOf(3, 2));
  c.Must(JobSuspended{.id = c.Named("s.1"), .suspended = true});
  c.Settle();
  c.GoneAll(c.Named("s.1"));
  c.End("s.0");
  CHECK(c.StateOf(c.Named("s.1")) == "Suspended");
  CHECK(c.Live() == "s.1 s.2");
}

TEST_CASE("two arrays that begin in one cycle number their jobs apart") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 4});
  const JobId a = c.Submit("a", {.series = ArrayOf(3, 3)});
  const JobId b = c.Submit("b", {.series = ArrayOf(3, 3)});
  c.Settle();
  CHECK(c.state().MembersOf(a).size() == 3);
  CHECK(c.state().MembersOf(b).size() == 3);
}

TEST_CASE("an array goes after its jobs") {
  Series c(ArrayOf(2, 2), {.ttl = absl::Hours(1)});
  c.End("s.0");
  c.Advance(absl::Minutes(30));
  c.End("s.1");
  c.Advance(absl::Minutes(45));
  CHECK(c.state().FindJob("s.0") == nullptr);
  CHECK(c.state().FindJob("s") != nullptr);
  c.Advance(absl::Hours(1));
  CHECK(c.state().FindJob("s.1") == nullptr);
  CHECK(c.state().FindJob("s") == nullptr);
}

TEST_CASE("a schedule makes a job at each of its times") {
  Series c(Every("*/10 * * * *"));
  CHECK(c.StateOf(c.id) == "Held");
  CHECK(c.Live() == "");
  c.Advance(absl::Minutes(10));
  const std::string first = c.Live();
  CHECK(first.find("s.") == 0);
  c.End(first);
  c.Advance(absl::Minutes(10));
  CHECK(c.Live() != first);
  CHECK(c.status().succeeded == 1);
  CHECK(c.StateOf(c.id) == "Held");
}

TEST_CASE("a time is skipped while a job of the schedule runs, unless overlap is allowed") {
  Series forbid(Every("*/10 * * * *"));
  forbid.Advance(absl::Minutes(10));
  forbid.Advance(absl::Minutes(10));
  CHECK(forbid.status().live.size() == 1);
  CHECK(forbid.status().skipped == 1);
  Series allow(Every("*/10 * * * *", Overlap::kAllow));
  allow.Advance(absl::Minutes(10));
  allow.Advance(absl::Minutes(10));
  CHECK(allow.status().live.size() == 2);
}

TEST_CASE("a schedule that replaces cancels the job before") {
  Series c(Every("*/10 * * * *", Overlap::kReplace));
  c.Advance(absl::Minutes(10));
  const std::string first = c.Live();
  c.RunAll(c.Named(first));
  c.Advance(absl::Minutes(10));
  c.GoneAll(c.Named(first));
  CHECK(c.StateOf(c.Named(first)) == "Cancelled");
  CHECK(c.status().live.size() == 1);
  CHECK(c.status().cancelled == 1);
}

TEST_CASE("of times that passed while nobody looked, the latest is made up for") {
  Series c(Every("*/10 * * * *"));
  c.Advance(absl::Minutes(65));
  CHECK(c.status().live.size() == 1);
  CHECK(c.status().skipped == 5);
  SeriesSpec strict = Every("0 * * * *");
  strict.latest = absl::Minutes(5);
  Series late(strict);
  late.Advance(absl::Minutes(90));  // begins at a full hour: the last one was 30 minutes ago
  CHECK(late.status().live.empty());
  CHECK(late.status().skipped == 1);
}

TEST_CASE("after a long time the latest time counts, however often it would have run") {
  Series c(Every("* * * * *"));
  const Time begin = c.now();
  c.Advance(absl::Hours(24 * 30));
  REQUIRE(c.status().live.size() == 1);
  const Time made = absl::FromUnixSeconds(c.status().live[0].index);
  CHECK(c.now() - made < absl::Minutes(1));
  CHECK(c.status().skipped == 10'000);  // no more are counted
  Series yearly(Every("0 0 1 1 *"));
  yearly.Advance(absl::Hours(24 * 366 * 3));
  REQUIRE(yearly.status().live.size() == 1);
  CHECK(yearly.status().live[0].index > absl::ToUnixSeconds(begin));
  CHECK(yearly.status().skipped == 2);
}

TEST_CASE("a schedule in a time zone that the machine lacks waits and says so") {
  SeriesSpec series = Every("*/10 * * * *");
  series.time_zone = "Mars/Olympus";
  Series c(series);
  c.Advance(absl::Hours(2));
  CHECK(c.Live() == "");
  CHECK(c.StateOf(c.id) == "Held");
  CHECK(c.job(c.id).status.message.find("does not know the time zone Mars/Olympus") !=
        std::string::npos);
}

TEST_CASE("a schedule on hold lets its times pass") {
  Series c(Every("*/10 * * * *"));
  c.Must(JobSuspended{.id = c.id, .suspended = true});
  c.Settle();
  c.Advance(absl::Minutes(60));
  CHECK(c.StateOf(c.id) == "Suspended");
  CHECK(c.Live() == "");
  c.Must(JobSuspended{.id = c.id, .suspended = false});
  c.Settle();
  CHECK(c.Live() == "");
  c.Advance(absl::Minutes(10));
  CHECK(c.status().live.size() == 1);
}

TEST_CASE("a schedule keeps the latest of its ended jobs") {
  SeriesSpec series = Every("*/10 * * * *");
  series.history = 2;
  Series c(series, {.ttl = absl::Minutes(1)});
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) {
    c.Advance(absl::Minutes(10));
    names.push_back(c.Live());
    c.End(names.back());
  }
  CHECK(c.state().FindJob(names[0]) == nullptr);
  CHECK(c.state().FindJob(names[1]) == nullptr);
  CHECK(c.state().FindJob(names[3]) != nullptr);
  c.Must(JobCancelled{.id = c.id, .reason = ""});
  c.Settle();
  CHECK(c.StateOf(c.id) == "Cancelled");
  c.Advance(absl::Minutes(2));
  CHECK(c.state().MembersOf(c.id).empty());
  CHECK(c.state().FindJob("s") == nullptr);
}

TEST_CASE("a schedule of arrays makes an array at each of its times") {
  SeriesSpec series = Every("*/10 * * * *");
  series.indexes = {{.from = 0, .to = 2}};
  series.parallelism = 2;
  series.history = 1;
  Series c(series, {.ttl = absl::Minutes(1)});
  CHECK(c.StateOf(c.id) == "Held");
  std::vector<std::string> arrays;
  for (int i = 0; i < 3; ++i) {
    c.Advance(absl::Minutes(10));
    arrays.push_back(c.Live());
    const std::string& array = arrays.back();
    const JobId id = c.Named(array);
    REQUIRE(c.job(id).series);
    CHECK_FALSE(c.job(id).series->IsSchedule());
    CHECK(c.StateOf(id) == "Running");
    CHECK(c.state().FindJob(absl::StrCat(array, ".2")) == nullptr);  // at most two at once
    for (int index = 0; index < 3; ++index) c.End(absl::StrCat(array, ".", index));
    CHECK(c.StateOf(id) == "Succeeded");
    // Its jobs live as long as it does.
    c.Advance(absl::Minutes(2));
    CHECK(c.state().FindJob(absl::StrCat(array, ".0")) != nullptr);
  }
  CHECK(c.status().succeeded == 3);
  for (int i = 0; i < 3; ++i) {
    INFO(arrays[static_cast<size_t>(i)]);
    const bool kept = i == 2;
    CHECK((c.state().FindJob(arrays[static_cast<size_t>(i)]) != nullptr) == kept);
    CHECK((c.state().FindJob(arrays[static_cast<size_t>(i)] + ".1") != nullptr) == kept);
  }
  c.Must(JobCancelled{.id = c.id, .reason = ""});
  c.Settle();
  CHECK(c.StateOf(c.id) == "Cancelled");
  c.Advance(absl::Minutes(2));
  CHECK(c.state().jobs().size() == 0);
}

TEST_CASE("cancelling and holding a schedule reaches the jobs of its arrays") {
  SeriesSpec series = Every("*/10 * * * *");
  series.indexes = {{.from = 0, .to = 1}};
  series.parallelism = 1;
  Series c(series);
  c.Advance(absl::Minutes(10));
  const std::string array = c.Live();
  const JobId first = c.Named(array + ".0");
  c.RunAll(first);
  c.Must(JobSuspended{.id = c.id, .suspended = true});
  c.Settle();
  CHECK(c.job(first).status.suspended);
  c.Must(JobSuspended{.id = c.id, .suspended = false});
  c.Settle();
  CHECK_FALSE(c.job(first).status.suspended);
  c.Must(JobCancelled{.id = c.id, .reason = ""});
  c.Settle();
  c.GoneAll(first);
  CHECK(c.StateOf(first) == "Cancelled");
  CHECK(c.StateOf(c.Named(array)) == "Cancelled");
  CHECK(c.StateOf(c.id) == "Cancelled");
  CHECK(c.state().FindJob(array + ".1") == nullptr);
}

TEST_CASE("a schedule of arrays keeps to the limits of its queue") {
  TestCluster c;
  c.AddNodes("n", 4, {.cpu = 4});
  c.AddQueue("small", QueueShape{.max_tasks = 1});
  SeriesSpec series = Every("*/10 * * * *");
  series.indexes = {{.from = 0, .to = 2}};
  series.parallelism = 3;
  const JobId id = c.Submit("s", {.queue = "small", .series = series});
  c.Settle();
  c.Advance(absl::Minutes(10));
  const std::vector<JobId> arrays = c.state().MembersOf(id);
  REQUIRE(arrays.size() == 1);
  CHECK(c.state().MembersOf(arrays[0]).size() == 1);
}

TEST_CASE("a job succeeds with as many tasks as it wants") {
  TestCluster c;
  c.AddNodes("n", 4, {.cpu = 4});
  const JobId id = c.Submit("j", {.groups = {{.replicas = 3}}, .min_success = 2});
  c.RunAll(id);
  c.Exit(id, 0);
  CHECK(c.StateOf(id) == "Running");
  c.Exit(id, 1);
  CHECK(c.StateOf(id) == "Completing");
  c.GoneAll(id);
  CHECK(c.StateOf(id) == "Succeeded");
}

TEST_CASE("the first start is kept only of jobs that have a limit") {
  TestCluster c;
  c.AddNodes("n", 1, {.cpu = 4});
  const JobId id = c.Submit("j");
  c.RunAll(id);
  CHECK(c.job(id).status.first_start == absl::InfinitePast());
}

TEST_CASE("a run limit counts from the first start, restarts included") {
  TestCluster c;
  c.AddNodes("n", 2, {.cpu = 4});
  const JobId id = c.Submit("j", {.max_retries = 5, .run_limit = absl::Minutes(10)});
  c.RunAll(id);
  c.Advance(absl::Minutes(6));
  c.Exit(id, 0, 1);
  c.Advance(absl::Minutes(1));
  c.RunAll(id);
  CHECK(c.StateOf(id) == "Running");
  c.Advance(absl::Minutes(3));
  CHECK(c.StateOf(id) == "Completing");
  c.GoneAll(id);
  CHECK(c.StateOf(id) == "Failed");
  CHECK(c.job(id).status.message.find("run_limit of 10m") != std::string::npos);
}

}  // namespace
}  // namespace berth
