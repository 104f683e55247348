// How fast the usage history folds the event log: one core, without the database.
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/history/usage_fold.h"
#include "tests/bench/core_cluster.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

// The life of jobs of one user and queue each out of many: submitted, bound, running, ended.
std::vector<Event> LivesOfJobs(int64_t nodes, int64_t jobs) {
  Time now = absl::FromUnixSeconds(1'800'000'000);
  std::vector<Event> events;
  const auto add = [&](EventBody body) { events.push_back({now, std::move(body)}); };
  constexpr uint32_t kQueues = 32;
  for (uint32_t q = 1; q <= kQueues; ++q) {
    add(QueueCreated{QueueId{q}, {.name = absl::StrCat("team-", q)}});
  }
  for (int64_t n = 1; n <= nodes; ++n) {
    NodeSpec spec{.name = absl::StrCat("n", n), .cpu_millis = 128'000};
    spec.memory_bytes = int64_t{1} << 40;
    for (int64_t g = 0; g < kGpusPerNode; ++g) {
      spec.devices.push_back({.kind = "gpu", .uuid = absl::StrCat(n, "-", g), .model = "H100"});
    }
    add(NodeRegistered{NodeId{static_cast<uint32_t>(n)}, spec, 1, "agent", "boot", "1"});
  }
  for (int64_t j = 1; j <= jobs; ++j) {
    now += absl::Milliseconds(5);
    const JobId id{static_cast<uint64_t>(j)};
    JobSpec spec{.name = absl::StrCat("job-", j)};
    spec.queue = QueueId{1 + static_cast<uint32_t>(j) % kQueues};
    spec.user = absl::StrCat("user-", j % 300);
    GroupSpec group{.name = "main"};
    group.shape.cpu_millis = 8000;
    group.shape.memory_bytes = int64_t{64} << 30;
    group.shape.devices.push_back({.kind = "gpu", .count = 1});
    spec.groups.push_back(std::move(group));
    add(JobSubmitted{id, std::move(spec)});
    // One GPU of one node after the other: each is free again by its next turn.
    const auto place = static_cast<uint64_t>(j) % static_cast<uint64_t>(nodes * kGpusPerNode);
    DeviceSet devices;
    devices.Add(place % kGpusPerNode);
    const NodeId node{1 + static_cast<uint32_t>(place / kGpusPerNode)};
    add(TasksBound{id, true, {{0, node, devices}}, 1});
    add(TaskReported{.task = {id, 0}, .attempt = 1, .state = ReportState::kRunning});
    JobStatus status{.state = JobState::kRunning, .starts = 1, .start = now};
    add(JobStatusChanged{id, status});
    const JobId ends{id.value - static_cast<uint64_t>(nodes * kGpusPerNode) + 1};
    if (j < nodes * kGpusPerNode) continue;
    add(TaskReported{.task = {ends, 0}, .attempt = 1, .state = ReportState::kExited});
    add(JobStatusChanged{ends, {.state = JobState::kSucceeded, .starts = 1, .end = now}});
    add(JobDeleted{ends});
  }
  return events;
}

Figures FoldFigures(int64_t nodes, int64_t jobs) {
  const std::vector<Event> events = LivesOfJobs(nodes, jobs);
  UsageFold fold({});
  fold.Begin(events.front().time);
  size_t rows = 0, ended = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const Event& event : events) {
    if (!fold.Apply(event).ok()) std::abort();
    if (fold.changes() < 20'000) continue;
    const HistoryChanges changes = fold.TakeChanges();
    rows += changes.usage.size() + changes.capacity.size();
    ended += changes.ended.size();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const auto count = static_cast<double>(events.size());
  return {{"events_per_s", count / took.count()}, {"events", count},
          {"nodes", static_cast<double>(nodes)},  {"rows", static_cast<double>(rows)},
          {"ended", static_cast<double>(ended)},  {"resident_mib", OwnResidentMib()}};
}

}  // namespace

std::vector<Row> HistoryFold(const Options& options) {
  const int64_t nodes = options.quick ? 10 : 1000;
  const int64_t jobs = options.quick ? 1000 : 200'000;
  return {FiguresRow("history.fold", "events/s", "events_per_s",
                     Runs(options, 5, [=] { return FoldFigures(nodes, jobs); }))};
}

}  // namespace berth::bench
