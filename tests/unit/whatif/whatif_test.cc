// Forecasts compared with schedules that were calculated by hand.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/sim/reload.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_load.h"
#include "offline/whatif/whatif_command.h"
#include "storage/memory/memory_store.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth {
namespace {

constexpr double kHour = 3600;

// A scenario's state as a snapshot.
std::unique_ptr<Snapshot> SnapshotOf(const std::string& text) {
  const auto documents = ReadScenarios(text, "cluster.yaml");
  INFO(documents.status().ToString());
  REQUIRE(documents.ok());
  SimCluster cluster(*Policies::Create(PolicyConfig{}), ScenarioStart(), SimOptions{});
  const absl::Status loaded = LoadScenario(documents->front().scenario, &cluster);
  INFO(loaded.ToString());
  REQUIRE(loaded.ok());
  auto snapshot = std::make_unique<Snapshot>();
  REQUIRE(LoadInOrder(cluster.state(), &snapshot->state).ok());
  snapshot->time = ScenarioStart();
  snapshot->revision = 7;
  return snapshot;
}

sim::v1::WhatifResult Must(const Snapshot& snapshot, const Changes& changes = {},
                           ForecastOptions options = {.horizon = absl::Hours(2)}) {
  const auto result = Whatif(snapshot, changes, options);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return *result;
}

// A file that is removed with this object.
class File {
 public:
  File(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              absl::StrCat("berth-whatif-", getpid(), "-", name)) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

// One job has run for half an hour and runs for another half; the other waits for its node.
constexpr const char* kOneWaits =
    "nodes: [{name: n, gpus: 4}]\n"
    "jobs:\n"
    "- {name: runs, gpus: 4, walltime: 1h, age: 30m, on: [n]}\n"
    "- {name: waits, gpus: 4, walltime: 1h}\n";

TEST_CASE("a pending job starts when the running one reaches its walltime") {
  const auto result = Must(*SnapshotOf(kOneWaits));
  CHECK(result.revision() == 7);
  CHECK(result.waiting() == 1);
  CHECK(result.running() == 1);
  CHECK(result.without_walltime() == 0);
  CHECK_FALSE(result.has_after());
  REQUIRE(result.jobs_size() == 1);
  CHECK(result.jobs(0).name() == "waits");
  CHECK(result.jobs(0).start_before() == Approx(kHour / 2));
  CHECK_FALSE(result.jobs(0).has_start_after());
  CHECK(result.before().started() == 1);
  CHECK(result.before().wait().mean() == Approx(kHour / 2));
  // Four GPUs for an hour and a half, out of two hours.
  REQUIRE(result.queues_size() == 1);
  CHECK(result.queues(0).before().at("gpu") == Approx(3));
  CHECK(result.before().utilisation().at("gpu") == Approx(0.75));
}

TEST_CASE("with another node like the first, the job starts at once") {
  const auto result =
      Must(*SnapshotOf(kOneWaits), {.nodes = {}, .queues = {}, .config = {}, .add_nodes = {"n=1"}});
  REQUIRE(result.changes_size() == 1);
  CHECK(result.changes(0) == "1 more nodes like n");
  CHECK(result.jobs(0).start_before() == Approx(kHour / 2));
  CHECK(result.jobs(0).start_after() == 0);
  CHECK(result.after().wait().mean() == 0);
  CHECK(result.after().utilisation().at("gpu") == Approx(0.375));
  CHECK(result.queues(0).after().at("gpu") == Approx(3));
}

TEST_CASE("a drained node gets no new jobs, and jobs of a lost node are pending again") {
  const auto snapshot = SnapshotOf(
      "nodes: [{name: 'n[0-2]', gpus: 4}]\n"
      "jobs:\n"
      "- {name: runs, gpus: 4, walltime: 1h, age: 30m, on: [n0], maxRetries: 1}\n"
      "- {name: first, gpus: 4, walltime: 1h}\n"
      "- {name: second, gpus: 4, walltime: 1h}\n");
  const auto start_of = [](const sim::v1::WhatifResult& result, const std::string& name) {
    for (const sim::v1::WhatifJob& job : result.jobs()) {
      if (job.name() == name) return job.has_start_after() ? job.start_after() : -1;
    }
    return -2.0;
  };
  CHECK(Must(*snapshot).before().started() == 2);
  const auto drained = Must(*snapshot, {.drain = {"n[1-2]"}});
  CHECK(drained.changes(0) == "drain n[1-2]");
  CHECK(start_of(drained, "first") == Approx(kHour / 2));
  CHECK(start_of(drained, "second") == Approx(1.5 * kHour));
  const auto lost = Must(*snapshot, {.drain = {"n1"}, .lose = {"n0"}}, {.horizon = absl::Hours(8)});
  CHECK(lost.changes_size() == 2);
  // One node remains for three hours of work. The lost job is older and goes first.
  CHECK(start_of(lost, "first") == Approx(kHour));
  CHECK(start_of(lost, "second") == Approx(2 * kHour));
}

TEST_CASE("jobs run for their predicted time if requested") {
  PolicyConfig config;
  config.prediction.enabled = true;
  SimCluster cluster(*Policies::Create(config), ScenarioStart(), SimOptions{});
  const auto load = [&](const std::string& text) {
    const auto documents = ReadScenarios(text, "cluster.yaml");
    REQUIRE(documents.ok());
    REQUIRE(LoadScenario(documents->front().scenario, &cluster).ok());
  };
  const auto settle = [&] {
    while (true) {
      REQUIRE(cluster.Cycle([](const EventBody&) {}).ok());
      if (cluster.quiet()) return;
    }
  };
  load("nodes: [{name: n, gpus: 4}]\njobs: [{name: past, user: u, gpus: 4, walltime: 1h}]\n");
  settle();
  cluster.RunsUntil(cluster.state().FindJob("past")->id, cluster.now() + absl::Minutes(10));
  cluster.Advance(absl::Minutes(10));
  settle();
  load(
      "jobs:\n- {name: runs, user: u, gpus: 4, walltime: 1h}\n"
      "- {name: waits, user: u, gpus: 4, walltime: 1h}\n");
  settle();
  Snapshot snapshot;
  REQUIRE(LoadInOrder(cluster.state(), &snapshot.state).ok());
  snapshot.time = cluster.now();
  REQUIRE(snapshot.state.FindJob("waits")->prediction.expected_s > 0);
  const auto start = [&](bool predicted) {
    return Must(snapshot, {}, {.horizon = absl::Hours(2), .predicted = predicted})
        .jobs(0)
        .start_before();
  };
  CHECK(start(false) == Approx(kHour));
  CHECK(start(true) == Approx(kHour / 6).epsilon(0.1));  // from the 10 minutes of job past
}

TEST_CASE("nodes from a file: new ones, and another inventory of known ones") {
  const File more("nodes.yaml", "nodes: [{name: 'm[1-2]', gpus: 4}]\n");
  Changes changes;
  changes.nodes = more.path();
  CHECK(Must(*SnapshotOf(kOneWaits), changes).jobs(0).start_after() == 0);
  const File larger("larger.yaml", "nodes: [{name: n, gpus: 8}]\n");
  changes.nodes = larger.path();
  CHECK(Must(*SnapshotOf(kOneWaits), changes).jobs(0).start_after() == 0);
}

TEST_CASE("a queue's limit holds a job back until it is lifted") {
  const auto snapshot = SnapshotOf(
      "nodes: [{name: n, gpus: 4}]\n"
      "queues: [{name: q, limit: {gpu: 2}}]\n"
      "jobs:\n"
      "- {name: 'runs', queue: q, gpus: 2, walltime: 1h, on: [n]}\n"
      "- {name: 'waits', queue: q, gpus: 2, walltime: 1h}\n");
  const File wider("queues.yaml", "queues: [{name: q, limit: {gpu: 4}}]\n");
  Changes changes;
  changes.queues = wider.path();
  const auto result = Must(*snapshot, changes);
  CHECK(result.jobs(0).start_before() == Approx(kHour));
  CHECK(result.jobs(0).start_after() == 0);
  REQUIRE(result.queues_size() == 1);
  CHECK(result.queues(0).waiting() == 1);
  CHECK(result.queues(0).started_before() == 1);
}

TEST_CASE("a configuration replaces that of the snapshot") {
  // Without the action that places jobs, no job starts.
  const File idle("config.yaml", "config: {actions: [expire_gangs]}\n");
  Changes changes;
  changes.config = idle.path();
  const auto result = Must(*SnapshotOf(kOneWaits), changes);
  CHECK(result.before().started() == 1);
  CHECK(result.after().started() == 0);
  CHECK_FALSE(result.jobs(0).has_start_after());
}

TEST_CASE("run times without a walltime are assumed, and may be a fraction of a walltime") {
  const auto without = SnapshotOf(
      "nodes: [{name: n, gpus: 4}]\n"
      "jobs:\n"
      "- {name: runs, gpus: 4, age: 30m, on: [n]}\n"
      "- {name: waits, gpus: 4, walltime: 1h}\n");
  ForecastOptions options{
      .horizon = absl::Hours(2), .walltime_part = 1, .without_walltime = absl::Hours(1)};
  CHECK(Must(*without, {}, options).jobs(0).start_before() == Approx(kHour / 2));
  CHECK(Must(*without, {}, options).without_walltime() == 1);
  options.without_walltime = absl::Hours(24);
  CHECK_FALSE(Must(*without, {}, options).jobs(0).has_start_before());
  options.walltime_part = 0.75;
  CHECK(Must(*SnapshotOf(kOneWaits), {}, options).jobs(0).start_before() == Approx(kHour / 4));
  // The job has already run for longer than that.
  options.walltime_part = 0.25;
  CHECK(Must(*SnapshotOf(kOneWaits), {}, options).jobs(0).start_before() < 1);
}

TEST_CASE("an evicted job runs from its start again") {
  const auto snapshot = SnapshotOf(
      "config: {eviction: {minRuntime: 0s}}\n"
      "nodes: [{name: n, gpus: 4}]\n"
      "queues: [{name: borrower}, {name: owner, deserved: {gpu: 4}}]\n"
      "jobs:\n"
      "- {name: lent, queue: borrower, preemptible: true, gpus: 4, walltime: 1h, age: 30m, on: "
      "[n]}\n"
      "- {name: owns, queue: owner, gpus: 4, walltime: 1h}\n");
  const auto result = Must(*snapshot, {}, {.horizon = absl::Hours(4)});
  CHECK(result.before().evictions() == 1);
  CHECK(result.jobs(0).name() == "owns");
  CHECK(result.jobs(0).start_before() < 1);
  // One hour of the owner's job, then one hour of the other job, out of four hours.
  for (const sim::v1::WhatifQueue& queue : result.queues()) {
    CHECK(queue.before().at("gpu") == Approx(1).margin(0.01));
  }
}

TEST_CASE("invalid changes are refused by name") {
  const auto message = [](const Changes& changes) {
    return std::string(Whatif(*SnapshotOf(kOneWaits), changes, {}).status().message());
  };
  Changes changes;
  changes.add_nodes = {"x=1"};
  CHECK(message(changes) == "--add-nodes: no node \"x\"");
  changes.add_nodes = {"n=0"};
  CHECK(message(changes) == "--add-nodes: \"n=0\" is not NODE=COUNT, 1 to 100000");
  changes = {.drain = {"n", "m[1-2]"}};
  CHECK(message(changes) == "--drain: no node \"m1\"");
  changes = {.lose = {"n["}};
  CHECK(message(changes).substr(0, 8) == "--lose: ");
  const File mixed("mixed.yaml", "nodes: [{name: m}]\nqueues: [{name: q}]\n");
  changes = {};
  changes.nodes = mixed.path();
  CHECK(message(changes) == mixed.path() + ": only \"nodes\" is allowed");
  MemoryStore empty;
  CHECK(ReadSnapshot(empty).status().message() == "this store is empty");
}

TEST_CASE("the table shows values before and after the change") {
  const std::string table = PrintedWhatif(
      Must(*SnapshotOf(kOneWaits), {.nodes = {}, .queues = {}, .config = {}, .add_nodes = {"n=1"}}),
      "table");
  INFO(table);
  CHECK(table.find("changed: 1 more nodes like n\n") != std::string::npos);
  const std::string line =
      absl::StrFormat("%-32s %16s %16s %16s\n", "starts: waits", "30m", "0", "-30m");
  CHECK(table.find(line) != std::string::npos);
  CHECK(table.find(absl::StrFormat("%-32s %16s %16s %16s\n", "use of gpu", "75.0 %", "37.5 %",
                                   "-37.5 %")) != std::string::npos);
}

TEST_CASE("waits cover all pending jobs, also by queue, and shares are of the cluster") {
  const auto snapshot = SnapshotOf(
      "nodes: [{name: n, cpu: 64, gpus: 4}]\n"
      "queues: [{name: a}, {name: b, limit: {gpu: 2}}]\n"
      "jobs:\n"
      "- {name: runs, queue: a, gpus: 4, walltime: 1h, on: [n]}\n"
      "- {name: next, queue: a, gpus: 4, walltime: 1h}\n"
      "- {name: large, queue: b, gpus: 4, walltime: 1h}\n");
  const auto result =
      Must(*snapshot, {.nodes = {}, .queues = {}, .config = {}, .add_nodes = {"n=1"}});
  CHECK(result.before().started() == 1);
  CHECK(result.before().wait().mean() == Approx(1.5 * kHour));  // one hour, and at least two
  CHECK(result.after().wait().mean() == Approx(kHour));         // none, and two
  REQUIRE(result.queues_size() == 2);
  const sim::v1::WhatifQueue &a = result.queues(0), &b = result.queues(1);
  CHECK(a.wait_before().max() == Approx(kHour));
  CHECK(a.wait_after().max() == 0);
  CHECK(a.share_before() == Approx(1));
  CHECK(a.share_after() == Approx(0.5));
  CHECK(b.wait_before().mean() == Approx(2 * kHour));
  CHECK(b.wait_after().mean() == Approx(2 * kHour));
  CHECK(b.share_before() == 0);
}

}  // namespace
}  // namespace berth
