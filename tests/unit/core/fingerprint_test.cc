// The fingerprint depends on every fact, and a job keeps every field of its specification.
#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/core/model_world.h"
#include "tests/unit/core/testing/changes.h"

namespace berth {
namespace {

// One object of each kind, as its records have it.
struct Facts {
  QueueSpec queue;
  bool open = true;
  uint64_t queue_revision = 1;
  std::vector<NamedAmount> usage;
  int64_t line = 0, longest_line = 0;
  Time usage_charged = absl::InfinitePast();
  RequestMix mix;
  FinishedRun run;
  HyperNodeSpec domain;
  uint64_t domain_revision = 1;
  NodeSpec node;
  NodeStatus node_status;
  std::vector<ImageId> node_images;
  uint64_t node_revision = 1;
};
struct FactsOfJob {
  JobSpec spec;
  Time submit = At(1);
  uint64_t revision = 1;
  RunPrediction prediction;
  LinePlace line;
};
struct FactsOfRun {
  JobStatus status;
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
  uint64_t revision = 1;
  std::optional<Duration> walltime;
  Reservation reservation;
  Task task;
  std::string message;
};

Facts SomeFacts() {
  Facts facts;
  facts.queue.name = "q";
  facts.run.run_ms = 1;
  facts.domain.name = "rack";
  facts.domain.members.push_back({.text = "n"});
  facts.mix.models = {"H100"};
  facts.mix.priced = true;
  facts.mix.types.push_back({.request = {.devices = 1}, .weight = 1});
  facts.node = NodeWith("n", 2);
  facts.node.topology = {.links = {{}}, .between = "\1", .numa_nodes = {}};
  return facts;
}

FactsOfJob SomeJob() {
  FactsOfJob facts;
  GroupSpec group = GroupOfGpus("w", 2, 1);
  group.min_available = 1;
  facts.spec = JobOf("j", QueueId{1}, {group, GroupOfGpus("other", 1, 0)});
  facts.spec.affinity.push_back({.labels = {{"app", "db"}}});
  return facts;
}

// Runs on node 1.
FactsOfRun SomeRun() {
  FactsOfRun facts;
  facts.status.state = JobState::kRunning;
  facts.walltime = absl::Seconds(60);
  facts.reservation.places.push_back({.task = 0, .node = NodeId{1}});
  facts.task.state = TaskState::kRunning;
  facts.task.node = NodeId{1};
  facts.task.devices = Devices({0});
  facts.task.pause = PauseState::kPaused;
  return facts;
}

absl::Status Load(const Facts& facts, StateEditor& editor) {
  const QueueId q{2};
  absl::Status status = editor.LoadQueue(QueueId{1}, {.name = "other"}, true, 1);
  status.Update(editor.LoadQueue(q, facts.queue, facts.open, facts.queue_revision));
  if (!status.ok()) return status;
  status.Update(editor.LoadQueueUsage(q, facts.usage));
  status.Update(editor.LoadQueueLine(q, facts.line, facts.longest_line));
  editor.LoadUsageCharged(facts.usage_charged);
  status.Update(editor.LoadRequestMix(facts.mix));
  status.Update(editor.LoadRun(RunId{1}, facts.run));
  status.Update(editor.LoadHyperNode(HyperNodeId{1}, facts.domain, facts.domain_revision));
  status.Update(editor.LoadNode(NodeId{1}, facts.node, facts.node_status, facts.node_revision));
  status.Update(editor.LoadNodeImages(NodeId{1}, facts.node_images));
  status.Update(editor.LoadNode(NodeId{2}, NodeWith("m", 2), {}, 1));
  return status;
}

absl::Status Load(const FactsOfJob& job, StateEditor& editor) {
  return editor.LoadJob(JobId{1}, job.spec, job.submit, job.revision, job.prediction, job.line);
}

absl::Status Load(const FactsOfRun& run, StateEditor& editor) {
  absl::Status status;
  if (run.walltime.has_value()) status.Update(editor.LoadWalltime(JobId{1}, *run.walltime));
  status.Update(editor.LoadJobStatus(JobId{1}, run.status, run.priority, run.labels, run.revision));
  status.Update(editor.LoadReservation(JobId{1}, run.reservation));
  status.Update(editor.LoadTask({JobId{1}, 0}, run.task, run.message));
  return status;
}

// Loads the parts in this order. Fails as loading does.
template <class... Parts>
absl::Status LoadAll(ClusterState& state, const Parts&... parts) {
  StateEditor editor(state);
  absl::Status status;
  ((status.ok() ? status.Update(Load(parts, editor)) : void()), ...);
  if (status.ok()) editor.FinishLoad();
  return status;
}

// Each change of `changing` that can be loaded gives a fingerprint of its own. Returns why the
// others were rejected: they contradict other facts.
template <class Changing, class... Parts>
std::vector<std::string> RejectedChanges(Changing& changing, const Parts&... parts) {
  std::set<uint64_t> seen;
  std::vector<std::string> rejected;
  int change = 0;
  const auto check = [&] {
    INFO("change " << change++);
    ClusterState state;
    const absl::Status loaded = LoadAll(state, parts...);
    if (!loaded.ok()) {
      rejected.emplace_back(loaded.message());
      return;
    }
    CHECK(CheckConsistency(state).ok());
    CHECK(seen.insert(Fingerprint(state)).second);
  };
  check();  // without a change
  ForEachChange(changing, check);
  CHECK(seen.size() > 20);
  return rejected;
}

TEST_CASE("the fingerprint depends on every fact of queues, nodes, domains, mix and runs") {
  Facts facts = SomeFacts();
  const std::vector<std::string> contradictions = {
      "types[0]: not a valid request",  // a share of a whole device
      "types[0]: not a valid request",  // memory_mib, which is 0 in a mix
  };
  CHECK(RejectedChanges(facts, facts) == contradictions);
}

TEST_CASE("the fingerprint depends on every field of a submitted job") {
  const Facts facts = SomeFacts();
  FactsOfJob job = SomeJob();
  CHECK(RejectedChanges(job, facts, job).empty());
}

TEST_CASE("the fingerprint depends on every field of a job's status and of a task") {
  const Facts facts = SomeFacts();
  const FactsOfJob job = SomeJob();
  FactsOfRun run = SomeRun();
  const std::vector<std::string> contradictions = {
      "task 0 of job 1: it is paused and does not run",
      "task 0 of job 1: node has no device 64",
      "task 0 of job 1: it moves but is not released to run again",
  };
  CHECK(RejectedChanges(run, facts, job, run) == contradictions);
}

TEST_CASE("a job has every field of its specification") {
  FactsOfJob job = SomeJob();
  int changes = 0;
  ForEachChange(job.spec, [&] {
    INFO("change " << ++changes);
    ClusterState state;
    REQUIRE(LoadAll(state, SomeFacts(), job).ok());
    CHECK(SpecOf(state, state.jobs().At(JobId{1})) == job.spec);
  });
  CHECK(changes > 80);
}

// Only the updated one is in the record of the status.
TEST_CASE("the fingerprint tells an updated walltime from an equal submitted one") {
  FactsOfJob job = SomeJob();
  FactsOfRun run = SomeRun();
  job.spec.walltime = *run.walltime;
  ClusterState submitted, updated;
  REQUIRE(LoadAll(updated, SomeFacts(), job, run).ok());
  run.walltime = std::nullopt;
  REQUIRE(LoadAll(submitted, SomeFacts(), job, run).ok());
  CHECK(Fingerprint(submitted) != Fingerprint(updated));
}

}  // namespace
}  // namespace berth
