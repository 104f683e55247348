// The usage fold by example: what is held, lost and free, minute by minute.
#include "core/history/usage_fold.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/core/model_world.h"

namespace berth {
namespace {

constexpr int64_t kStart = 1'800'000'000;  // a full hour

// A model world and its fold, which sees the same events.
struct FoldWorld {
  World world;
  UsageFold fold;
  HistoryChanges seen;

  explicit FoldWorld(size_t keys = 100)
      : fold({.account_of = [](const auto&) { return std::string(); }, .keys = keys}) {
    world.now = At(kStart);
    fold.Begin(world.now);
    Do(QueueCreated{QueueId{1}, [] {
                      QueueSpec spec;
                      spec.name = "q";
                      return spec;
                    }()});
  }
  void Do(EventBody body) {
    const absl::Status applied = world.Try(body);
    INFO(std::string(applied.message()));
    REQUIRE(applied.ok());
    REQUIRE(fold.Apply({world.now, std::move(body)}).ok());
  }
  void Wait(int64_t seconds) { world.now += absl::Seconds(seconds); }
  NodeId AddNode(const std::string& name, int gpus) {
    const NodeId id = world.state.next_node_id();
    Do(NodeRegistered{id, NodeWith(name, gpus), 1, "agent", "boot", "1"});
    return id;
  }
  JobId Submit(const std::string& name, int tasks, int gpus, const std::string& user = "ada") {
    const JobId id = world.state.next_job_id();
    JobSpec spec = JobOf(name, QueueId{1}, {GroupOfGpus("w", tasks, gpus)});
    spec.user = user;
    Do(JobSubmitted{id, spec});
    return id;
  }
  // One task on all GPUs from `first` on.
  void Run(JobId job, uint32_t task, NodeId node, std::initializer_list<size_t> gpus) {
    Do(TasksBound{job, true, {{task, node, Devices(gpus)}}, 1});
    Report(job, task, ReportState::kRunning);
  }
  void Report(JobId job, uint32_t task, ReportState state, int32_t code = 0,
              ExitCause cause = ExitCause::kItself) {
    TaskReported report;
    report.task = {job, task};
    report.attempt = world.task(job, task).attempt;
    report.state = state;
    report.exit_code = code;
    report.cause = cause;
    Do(report);
  }
  // Of all rows so far of that period: amount times seconds.
  double Sum(HistoryPeriod period, Measure measure, const std::string& resource = "gpu") {
    fold.PassTime(world.now, SIZE_MAX);
    AmountTime sum = 0;
    Collect();
    for (const UsageRow& row : seen.usage) {
      if (row.period != period) continue;
      for (const auto& named : row.meters) {
        UsageMeter meter = named.meter;
        if (row.open) meter.AddUp(MsOf(world.now));
        if (named.resource == resource) sum += meter.sum[static_cast<size_t>(measure)];
      }
    }
    return static_cast<double>(sum) / (resource == "gpu" ? 1e6 : 1e3);
  }
  // Keeps closed rows, and of open ones the last.
  void Collect() {
    fold.TouchRows();
    HistoryChanges more = fold.TakeChanges();
    std::erase_if(seen.usage, [](const UsageRow& row) { return row.open; });
    std::erase_if(seen.capacity, [](const CapacityRow& row) { return row.open; });
    for (UsageRow& row : more.usage) seen.usage.push_back(std::move(row));
    for (CapacityRow& row : more.capacity) seen.capacity.push_back(std::move(row));
    for (EndedJobFacts& job : more.ended) seen.ended.push_back(std::move(job));
  }
  double Capacity(CapacityPart part) {
    fold.PassTime(world.now, SIZE_MAX);
    Collect();
    AmountTime sum = 0;
    for (const CapacityRow& row : seen.capacity) {
      if (row.period != HistoryPeriod::kHour) continue;
      for (const auto& named : row.meters) {
        CapacityMeter meter = named.meter;
        if (row.open) meter.AddUp(MsOf(world.now));
        if (named.resource == "gpu") sum += meter.sum[static_cast<size_t>(part)];
      }
    }
    return static_cast<double>(sum) / 1e6;
  }
};

constexpr HistoryPeriod kHour = HistoryPeriod::kHour;

TEST_CASE("usage: a job waits, holds and ends, and minutes close when the time has passed") {
  FoldWorld f;
  const NodeId node = f.AddNode("n1", 8);
  const JobId job = f.Submit("j", 1, 4);
  f.Wait(30);
  f.Run(job, 0, node, {0, 1, 2, 3});
  f.Wait(90);
  f.Report(job, 0, ReportState::kExited);
  CHECK(f.Sum(kHour, Measure::kWaiting) == 4 * 30);
  CHECK(f.Sum(kHour, Measure::kHeld) == 4 * 90);
  CHECK(f.Sum(HistoryPeriod::kMinute, Measure::kHeld) == 4 * 90);
  size_t closed = 0;
  for (const UsageRow& row : f.seen.usage) {
    if (row.period != HistoryPeriod::kMinute || row.open) continue;
    ++closed;
    CHECK(row.key.queue == "q");
    CHECK(row.key.user.empty());
  }
  CHECK(closed == 2);
  f.Do(JobStatusChanged{job, [&] {
                          JobStatus status = f.world.job(job).status;
                          status.state = JobState::kSucceeded;
                          status.end = f.world.now;
                          return status;
                        }()});
  f.Wait(1000);
  CHECK(f.Sum(kHour, Measure::kHeld) == 4 * 90);
  REQUIRE(f.seen.ended.size() == 1);
  CHECK(f.seen.ended[0].key.user == "ada");
  for (const auto& named : f.seen.ended[0].meters) {
    if (named.resource != "gpu") continue;
    CHECK(named.meter.sum[0] == AmountTime(4) * kWhole * 90'000);
  }
}

TEST_CASE("usage: capacity is what tasks hold, what is free, and what nobody can use") {
  FoldWorld f;
  const NodeId node = f.AddNode("n1", 8);
  f.Wait(10);  // free
  const JobId job = f.Submit("j", 1, 2);
  f.Run(job, 0, node, {0, 1});
  f.Wait(10);  // 2 held, 6 fragmented
  f.Do(NodeSteered{node, /*cordoned=*/true, false, "why"});
  f.Wait(10);  // 2 held, 6 cordoned
  f.Do(NodeSilenced{node});
  f.Wait(10);  // 2 held, 6 down
  CHECK(f.Capacity(CapacityPart::kTotal) == 320);
  CHECK(f.Capacity(CapacityPart::kFree) == 80);
  CHECK(f.Capacity(CapacityPart::kHeld) == 60);
  CHECK(f.Capacity(CapacityPart::kFragmented) == 60);
  CHECK(f.Capacity(CapacityPart::kCordoned) == 60);
  CHECK(f.Capacity(CapacityPart::kDown) == 60);
  CHECK(f.Capacity(CapacityPart::kOvercommitted) == 0);
}

TEST_CASE("usage: evictions and lost nodes lose the work since the last checkpoint") {
  FoldWorld f;
  const NodeId node = f.AddNode("n1", 8);
  const JobId first = f.Submit("first", 1, 2), second = f.Submit("second", 1, 2);
  f.Run(first, 0, node, {0, 1});
  f.Run(second, 0, node, {2, 3});
  f.Wait(100);
  CheckpointRecorded saved;
  saved.task = {second, 0};
  saved.attempt = 1;
  f.Do(saved);
  f.Wait(20);
  TasksReleased evicted{first, {0}, true, ReleaseReason::kPreempted};
  evicted.beneficiary = second;
  f.Do(evicted);
  f.Wait(5);  // until it is gone, it works
  f.Report(first, 0, ReportState::kExited, 143);
  CHECK(f.Sum(kHour, Measure::kPreempted) == 2 * 125);
  CHECK(f.Sum(kHour, Measure::kFaulted) == 0);
  f.Do(NodeSilenced{node});
  f.Wait(15);
  f.Do(NodeFenced{node});
  CHECK(f.Sum(kHour, Measure::kFaulted) == 2 * 40);
  CHECK(f.Sum(kHour, Measure::kPreempted) == 2 * 125);
  CHECK(f.Sum(kHour, Measure::kHeld) == 2 * 125 + 2 * 140);
}

TEST_CASE("usage: what a job does to itself loses nothing, and its gang neither") {
  FoldWorld f;
  const NodeId node = f.AddNode("n1", 8);
  const JobId job = f.Submit("j", 2, 2);
  f.Do(TasksBound{job, true, {{0, node, Devices({0, 1})}, {1, node, Devices({2, 3})}}, 1});
  f.Report(job, 0, ReportState::kRunning);
  f.Report(job, 1, ReportState::kRunning);
  f.Wait(50);
  f.Report(job, 0, ReportState::kExited, 1);
  f.Do(TasksReleased{job, {1}, true, ReleaseReason::kGangBroken});
  f.Report(job, 1, ReportState::kExited, 143);
  CHECK(f.Sum(kHour, Measure::kFaulted) == 0);
  CHECK(f.Sum(kHour, Measure::kPreempted) == 0);
  CHECK(f.fold.FindJob(job)->life.exit_code == 1);
}

TEST_CASE("usage: the rest of a gang is lost for the reason of the first") {
  FoldWorld f;
  const NodeId node = f.AddNode("n1", 8), other = f.AddNode("n2", 8);
  const JobId job = f.Submit("j", 2, 2);
  f.Do(TasksBound{job, true, {{0, node, Devices({0, 1})}, {1, other, Devices({0, 1})}}, 1});
  f.Report(job, 0, ReportState::kRunning);
  f.Report(job, 1, ReportState::kRunning);
  f.Wait(50);
  f.Report(job, 0, ReportState::kExited, 1, ExitCause::kDevice);
  f.Do(TasksReleased{job, {1}, true, ReleaseReason::kGangBroken});
  f.Wait(10);
  f.Report(job, 1, ReportState::kExited, 143);
  CHECK(f.Sum(kHour, Measure::kFaulted) == 2 * 50 + 2 * 60);
}

TEST_CASE("usage: combinations beyond the bound are others of their queue") {
  FoldWorld f(/*keys=*/5);
  for (int user = 0; user < 20; ++user) {
    f.Submit("j" + std::to_string(user), 1, 1, "user" + std::to_string(user));
  }
  f.Wait(10);
  CHECK(f.Sum(kHour, Measure::kWaiting) == 20 * 10);
  double others = 0;
  for (const UsageRow& row : f.seen.usage) {
    if (row.period == kHour && row.key.user == kOthers) others += 1;
  }
  CHECK(others == 1);
  CHECK(f.fold.keys().size() <= 7);
}

TEST_CASE("usage: after a long time without events only the last minutes are yielded") {
  FoldWorld f;
  f.AddNode("n1", 8);
  f.Collect();
  f.Wait(86'400 * 60);
  while (!f.fold.PassTime(f.world.now, 1000)) f.Collect();
  f.Collect();
  size_t minutes = 0;
  AmountTime hours = 0;
  for (const CapacityRow& row : f.seen.capacity) {
    if (row.period == HistoryPeriod::kMinute) {
      ++minutes;
      continue;
    }
    for (const auto& named : row.meters) {
      if (named.resource == "gpu" && !row.open) hours += named.meter.sum[0];
    }
  }
  CHECK(minutes <= 60 * 24 * 30 * 2 + 10);  // with and without a model
  CHECK(hours == AmountTime(8) * kWhole * 86'400'000 * 60);
}

}  // namespace
}  // namespace berth
