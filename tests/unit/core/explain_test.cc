// Dry runs, constraint counts, remedies and estimates. Properties that hold for any state are in
// tests/property/explain_property_test.cc.
#include "core/engine/explain/explain.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "core/engine/explain/remedies.h"
#include "core/model/state_editor.h"
#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::GroupShape;
using testing::JobShape;
using testing::MakeJob;
using testing::PoliciesWith;
using testing::TestCluster;

JobSpec Spec(TestCluster& cluster, const std::string& name, const JobShape& shape) {
  const std::string queue = shape.queue.empty() ? "default" : shape.queue;
  if (cluster.state().FindQueue(queue) == nullptr) cluster.AddQueue(queue);
  return MakeJob(name, cluster.queue_id(queue), shape);
}

// Also checks that the dry run leaves no trace.
DryRunResult Try(TestCluster& cluster, const std::string& name, const JobShape& shape) {
  const JobSpec spec = Spec(cluster, name, shape);
  const uint64_t before = Fingerprint(cluster.state());
  const auto result = DryRun(cluster.state(), cluster.policies(), spec, cluster.now());
  INFO(result.status());
  REQUIRE(result.ok());
  CHECK(Fingerprint(cluster.state()) == before);
  const absl::Status consistent = CheckConsistency(cluster.state());
  INFO(consistent);
  CHECK(consistent.ok());
  return *result;
}

std::string Places(const TestCluster& cluster, const std::vector<Placement>& places) {
  return absl::StrJoin(places, " ", [&](std::string* out, const Placement& place) {
    absl::StrAppend(out, cluster.state().nodes().At(place.node).spec.name);
  });
}

JobShape Gpus(int tasks, int gpus) { return {.groups = {{.replicas = tasks, .gpus = gpus}}}; }

TEST_CASE("dry run: predicts what a submit gets") {
  TestCluster cluster;
  cluster.AddNodes("n", 3, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(1, 5)));
  const DryRunResult result = Try(cluster, "b", Gpus(3, 4));
  REQUIRE(result.StartsNow());
  CHECK(result.blockers.empty());
  const JobId job = cluster.Submit("b", Gpus(3, 4));
  cluster.Settle();
  CHECK(cluster.Where(job) == Places(cluster, result.placements));
  for (const Placement& place : result.placements) {
    CHECK(cluster.job(job).tasks[place.task].devices == place.devices);
  }
}

TEST_CASE("dry run: why the job would wait") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(1, 5)));
  const DryRunResult result = Try(cluster, "b", Gpus(2, 8));
  CHECK_FALSE(result.StartsNow());
  REQUIRE(result.blockers.size() == 1);
  CHECK(result.blockers[0].code == WaitCode::kInsufficientResources);
  CHECK(result.blockers[0].resource == "gpu");
  CHECK(result.blockers[0].needed == 16 * kWhole);
  CHECK(result.blockers[0].free == 11 * kWhole);
}

// The dry run also tries other jobs. A job that did not fit with the tried one may fit without it.
TEST_CASE("dry run: jobs that found no room during it are tried again") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  const JobId other = cluster.Submit("a", Gpus(1, 8));
  JobShape first = Gpus(1, 8);
  first.priority = 10;
  CHECK(Try(cluster, "b", first).StartsNow());
  cluster.Settle();
  CHECK(cluster.Where(other) == "n1");
}

TEST_CASE("dry run: a job of a class that is known to be blocked") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(1, 8)));
  const JobId blocked = cluster.Submit("b", Gpus(1, 8));
  cluster.Settle();
  const DryRunResult result = Try(cluster, "c", Gpus(1, 8));
  REQUIRE(result.blockers.size() == 1);
  CHECK(result.blockers[0].code == WaitCode::kInsufficientResources);
  CHECK(cluster.Why(blocked).at(0).code == WaitCode::kInsufficientResources);
}

TEST_CASE("dry run: which jobs it would evict, and where it would wait") {
  TestCluster cluster(PoliciesWith({"allocate", "preempt"}));
  cluster.AddNodes("n", 1, {.gpus = 8});
  JobShape low = Gpus(1, 8);
  low.preemptible = true;
  const JobId victim = cluster.Submit("low", low);
  cluster.RunAll(victim);
  cluster.Advance(absl::Minutes(10));
  JobShape high = Gpus(1, 8);
  high.priority = 10;
  const DryRunResult result = Try(cluster, "high", high);
  CHECK_FALSE(result.StartsNow());
  REQUIRE(result.evictions.size() == 1);
  CHECK(result.evictions[0].job == victim);
  CHECK(Places(cluster, result.nominated) == "n1");
  CHECK(cluster.Tasks(victim) == "R");
}

TEST_CASE("dry run: held jobs, unknown devices, refusals") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  JobShape later = Gpus(1, 1);
  later.start_after = cluster.now() + absl::Hours(1);
  REQUIRE(Try(cluster, "later", later).blockers.size() == 1);
  CHECK(Try(cluster, "later", later).blockers[0].code == WaitCode::kStartTime);

  JobSpec unknown = Spec(cluster, "u", Gpus(1, 1));
  unknown.groups[0].shape.devices[0].kind = "tpu";
  const size_t kinds = cluster.state().interner().kind_count();
  const auto none = DryRun(cluster.state(), cluster.policies(), unknown, cluster.now());
  REQUIRE(none.ok());
  CHECK(none->blockers.at(0).resource == "tpu");
  CHECK(cluster.state().interner().kind_count() == kinds);

  cluster.Submit("taken", Gpus(1, 1));
  const JobSpec taken = Spec(cluster, "taken", Gpus(1, 1));
  const auto refused = DryRun(cluster.state(), cluster.policies(), taken, cluster.now());
  CHECK(absl::IsAlreadyExists(refused.status()));
}

TEST_CASE("dry run: a dependency that can no longer be met") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  const JobId failed = cluster.Submit("a", Gpus(1, 1));
  cluster.RunAll(failed);
  cluster.Exit(failed, 0, 1);
  JobShape after = Gpus(1, 1);
  after.dependencies = {{.job = failed}};
  const DryRunResult result = Try(cluster, "b", after);
  REQUIRE(result.blockers.size() == 1);
  CHECK(result.blockers[0].code == WaitCode::kDependency);
  CHECK(result.blockers[0].job == failed);
}

GroupConstraints Count(TestCluster& cluster, JobId id) {
  const Explanation why = Explain(cluster.state(), cluster.policies(), id, cluster.now());
  REQUIRE(why.groups.size() == 1);
  return why.groups[0];
}

const ConstraintCount& Named(const GroupConstraints& counts, const std::string& name) {
  for (const ConstraintCount& count : counts.constraints) {
    if (count.name == name) return count;
  }
  FAIL("no constraint " << name);
  return counts.constraints[0];
}

// 6 nodes: n1 is cordoned, n2 and n3 lack the label, n4 has another model, n5 is in use, n6 has 4
// GPUs free.
TEST_CASE("explain: nodes that each constraint excludes, alone and in order") {
  TestCluster cluster;
  for (int i = 1; i <= 6; ++i) {
    testing::NodeShape shape{.gpus = 8};
    if (i == 4) shape.model = "A100";
    if (i != 2 && i != 3) shape.labels = {{"zone", "a"}};
    cluster.AddNode(absl::StrCat("n", i), shape);
  }
  const auto pin = [](const std::string& node, int gpus) {
    std::vector<std::string> others;
    for (int i = 1; i <= 6; ++i) {
      if (node != absl::StrCat("n", i)) others.push_back(absl::StrCat("n", i));
    }
    return JobShape{.groups = {{.gpus = gpus, .exclude_nodes = others}}};
  };
  cluster.RunAll(cluster.Submit("five", pin("n5", 8)));
  cluster.RunAll(cluster.Submit("six", pin("n6", 4)));
  cluster.Must(NodeSteered{.id = cluster.node_id("n1"), .cordoned = true, .reason = "test"});
  const JobId job = cluster.Submit(
      "j", {.groups = {
                {.replicas = 2, .gpus = 8, .models = {"H100"}, .match_labels = {{"zone", "a"}}}}});
  cluster.Settle();

  const GroupConstraints counts = Count(cluster, job);
  CHECK(counts.nodes == 6);
  CHECK(counts.devices == 36);
  CHECK(counts.needed_tasks == 2);
  CHECK(Named(counts, "schedulable").nodes_alone == 1);
  CHECK(Named(counts, "schedulable").devices_alone == 8);
  CHECK(Named(counts, "node_selector").nodes_alone == 2);
  CHECK(Named(counts, "size").nodes_alone == 1);
  CHECK(Named(counts, "free").nodes_alone == 3);  // n4 has no H100 free either
  CHECK(Named(counts, "schedulable").nodes_in_order == 1);
  CHECK(Named(counts, "node_selector").nodes_in_order == 2);
  CHECK(Named(counts, "size").nodes_in_order == 1);
  CHECK(Named(counts, "free").nodes_in_order == 2);
  CHECK(counts.nodes_left == 0);
  CHECK(counts.tasks_left == 0);
  CHECK(counts.largest_block == 4);
  // Without the cordon n1 would hold one of the two tasks; without the labels n2 and n3 both.
  CHECK(counts.blocking == std::vector<std::string>{"node_selector", "free"});
}

TEST_CASE("explain: one constraint alone is the smallest set") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 8});
  const JobId running = cluster.Submit("a", Gpus(2, 8));
  cluster.RunAll(running);
  const JobId job = cluster.Submit("j", Gpus(1, 8));
  cluster.Settle();
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(why.groups.at(0).blocking == std::vector<std::string>{"free"});
  CHECK(why.position == 1);
  CHECK(why.queue_jobs == 1);
  REQUIRE(why.holders.size() == 1);
  CHECK(why.holders[0].job == running);
  CHECK(why.holders[0].amount == 16 * kWhole);
}

TEST_CASE("constraints: nodes that the job is kept out of") {
  TestCluster cluster;
  const testing::NodeShape shape = {.gpus = 2};
  cluster.AddNodes("n", 2, shape);
  const JobId job = cluster.Submit("j", Gpus(1, 1));
  cluster.RunAll(job);
  REQUIRE(cluster.Where(job) == "n1");
  cluster.RunAll(cluster.Submit("other", Gpus(1, 2)));
  NodeSpec spec = testing::MakeNode("n1", shape);
  spec.devices[0].unhealthy = true;
  cluster.Must(
      NodeRegistered{.id = cluster.node_id("n1"), .spec = spec, .epoch = 2, .agent_id = "n1"});
  cluster.Settle();
  cluster.GoneAll(job);
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(why.groups.at(0).blocking == std::vector<std::string>{"avoided", "free"});
}

TEST_CASE("explain: a job that does not wait") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  const JobId job = cluster.Submit("j", Gpus(1, 8));
  cluster.RunAll(job);
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(why.reasons.empty());
  CHECK(why.remedies.empty());
}

TEST_CASE("explain: positions in the queue") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(1, 8)));
  cluster.Submit("b", Gpus(1, 8));
  cluster.Submit("c", Gpus(1, 4));
  JobShape first = Gpus(1, 8);
  first.priority = 1;
  const JobId job = cluster.Submit("j", Gpus(1, 2));
  const JobId urgent = cluster.Submit("u", first);
  cluster.Settle();
  CHECK(Explain(cluster.state(), cluster.policies(), job, cluster.now()).position == 4);
  CHECK(Explain(cluster.state(), cluster.policies(), urgent, cluster.now()).position == 1);
  CHECK(Explain(cluster.state(), cluster.policies(), urgent, cluster.now()).queue_jobs == 4);
}

const Remedy* Find(const std::vector<Remedy>& remedies, RemedyKind kind) {
  for (const Remedy& remedy : remedies) {
    if (remedy.kind == kind) return &remedy;
  }
  return nullptr;
}

TEST_CASE("explain: fewer tasks, another model, another queue") {
  TestCluster cluster;
  cluster.AddQueue("small", {.limit = {{"gpu", 8}}});
  cluster.AddQueue("large");
  cluster.AddNodes("h", 1, {.gpus = 8});
  cluster.AddNodes("a", 2, {.gpus = 8, .model = "A100"});
  const JobId model = cluster.Submit(
      "m", {.queue = "large", .groups = {{.replicas = 2, .gpus = 8, .models = {"H100"}}}});
  const JobId limited =
      cluster.Submit("l", {.queue = "small", .groups = {{.replicas = 2, .gpus = 8}}});
  cluster.Settle();

  const Explanation why = Explain(cluster.state(), cluster.policies(), model, cluster.now());
  CHECK(why.reasons.at(0).code == WaitCode::kNeverFits);
  const Remedy* other = Find(why.remedies, RemedyKind::kDeviceModel);
  REQUIRE(other != nullptr);
  CHECK(other->text == "A100");
  CHECK(other->device_kind == "gpu");
  CHECK(other->starts_now);
  const Remedy* fewer = Find(why.remedies, RemedyKind::kFewerTasks);
  REQUIRE(fewer != nullptr);
  CHECK(fewer->value == 1);

  const Explanation over = Explain(cluster.state(), cluster.policies(), limited, cluster.now());
  CHECK(over.reasons.at(0).code == WaitCode::kQueueLimit);
  const Remedy* queue = Find(over.remedies, RemedyKind::kOtherQueue);
  REQUIRE(queue != nullptr);
  CHECK(queue->queue == cluster.queue_id("large"));
}

TEST_CASE("explain: for a task larger than any node, the largest size that a node has") {
  TestCluster cluster;
  cluster.AddNodes("n", 2, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(2, 8)));
  const JobId job = cluster.Submit("j", Gpus(1, 16));
  cluster.Settle();
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(why.reasons.at(0).code == WaitCode::kNoMatchingNode);
  REQUIRE(why.remedies.size() == 1);
  CHECK(why.remedies[0].kind == RemedyKind::kSmallerTasks);
  CHECK(why.remedies[0].text == "gpu");
  CHECK(why.remedies[0].value == 8);
  CHECK_FALSE(why.remedies[0].starts_now);  // all are in use
}

TEST_CASE("explain: smaller tasks stay within a quota that larger ones exceed") {
  TestCluster cluster;
  cluster.AddNodes("n", 4, {.cpu = 64, .gpus = 8});
  cluster.AddQueue("limited", {.limit = {{"gpu", 10}}});
  cluster.AddQueue("owner", {.deserved = {{"gpu", 6}}});
  cluster.AddQueue("kept", {.guarantee = {{"gpu", 8}}});
  JobShape uses = Gpus(1, 3);
  uses.queue = "limited";
  cluster.RunAll(cluster.Submit("uses", uses));
  const auto smaller = [&](JobShape shape, WaitCode code) -> std::optional<Remedy> {
    static int jobs = 0;
    const JobId job = cluster.Submit(absl::StrCat("j", ++jobs), shape);
    cluster.Settle();
    const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
    CHECK(why.reasons.at(0).code == code);
    const Remedy* found = Find(why.remedies, RemedyKind::kSmallerTasks);
    const std::optional<Remedy> remedy = found == nullptr ? std::nullopt : std::optional(*found);
    cluster.Must(JobCancelled{.id = job});
    cluster.Settle();
    return remedy;
  };

  const auto in = [](const char* queue, std::vector<GroupShape> groups) {
    JobShape shape{.queue = queue, .groups = std::move(groups)};
    return shape;
  };
  // 7 of 10 remain: 3 each.
  auto remedy = smaller(in("limited", {{.replicas = 2, .gpus = 4}}), WaitCode::kQueueLimit);
  REQUIRE(remedy.has_value());
  CHECK(remedy->text == "gpu");
  CHECK(remedy->value == 3);
  CHECK(remedy->starts_now);
  // With the other group, which takes 5 of the 7; that group itself cannot be small enough.
  remedy = smaller(in("limited", {{.replicas = 2, .gpus = 4}, {.name = "b", .gpus = 5}}),
                   WaitCode::kQueueLimit);
  REQUIRE(remedy.has_value());
  CHECK(remedy->group == 0);
  CHECK(remedy->value == 1);
  // Deserved limits jobs that are not preemptible.
  remedy = smaller(in("owner", {{.replicas = 1, .gpus = 8}}), WaitCode::kNonPreemptibleQuota);
  REQUIRE(remedy.has_value());
  CHECK(remedy->value == 6);
  // 32 in all, 3 in use, 8 guaranteed to others: 21 remain.
  remedy = smaller(in("default", {{.replicas = 4, .gpus = 6}}), WaitCode::kGuaranteeKept);
  REQUIRE(remedy.has_value());
  CHECK(remedy->value == 5);
  // Eight tasks cannot share seven GPUs.
  CHECK_FALSE(
      smaller(in("limited", {{.replicas = 8, .gpus = 1}}), WaitCode::kQueueLimit).has_value());
}

TEST_CASE("explain: a walltime that ends before the reservation, or waiting until it ends") {
  TestCluster cluster(PoliciesWith({"allocate", "backfill"}));
  cluster.AddNodes("n", 2, {.gpus = 8});
  JobShape hour = Gpus(1, 8);
  hour.walltime = absl::Hours(1);
  cluster.RunAll(cluster.Submit("a", hour));
  JobShape wide = Gpus(2, 8);
  wide.walltime = absl::Hours(2);
  const JobId reserved = cluster.Submit("wide", wide);
  cluster.Settle();
  JobShape day = Gpus(1, 8);
  day.walltime = absl::Hours(24);
  const JobId job = cluster.Submit("day", day);
  cluster.Settle();

  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(why.reasons.at(0).code == WaitCode::kReserved);
  const Remedy* shorter = Find(why.remedies, RemedyKind::kShorterWalltime);
  REQUIRE(shorter != nullptr);
  CHECK(shorter->walltime == cluster.state().reservations().at(reserved).start - cluster.now());
  CHECK(Find(why.remedies, RemedyKind::kFewerTasks) == nullptr);
  const Remedy* wait = Find(why.remedies, RemedyKind::kWait);
  REQUIRE(wait != nullptr);
  CHECK(wait->time == cluster.now() + absl::Hours(3));
  CHECK(why.estimate.jobs_before == 1);
}

TEST_CASE("estimate: scaled by the share of their walltimes that ended jobs used") {
  TestCluster cluster(PoliciesWith({"allocate", "backfill"}));
  cluster.AddNodes("n", 1, {.gpus = 8});
  JobShape hour = Gpus(1, 8);
  hour.walltime = absl::Hours(1);
  const JobId before = cluster.Submit("old", hour);
  cluster.RunAll(before);
  cluster.PassTo(cluster.now() + absl::Minutes(15));
  cluster.Exit(before, 0);
  cluster.RunAll(cluster.Submit("a", hour));
  const JobId job = cluster.Submit("b", hour);
  cluster.Settle();
  const StartEstimate estimate =
      EstimateStart(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(estimate.history_jobs == 1);
  CHECK(estimate.latest == cluster.now() + absl::Hours(1));
  CHECK(estimate.likely == cluster.now() + absl::Minutes(15));
  CHECK(estimate.unknown.empty());
}

TEST_CASE("estimate: where a limit keeps jobs pending, jobs ahead in the queue come first") {
  TestCluster cluster(PoliciesWith({"allocate", "backfill"}));
  cluster.AddQueue("q", {.limit = {{"gpu", 8}}});
  cluster.AddNodes("n", 3, {.gpus = 8});
  JobShape hour = Gpus(1, 8);
  hour.queue = "q";
  hour.walltime = absl::Hours(1);
  cluster.RunAll(cluster.Submit("a", hour));
  cluster.Submit("b", hour);
  const JobId job = cluster.Submit("c", hour);
  cluster.Settle();
  const StartEstimate estimate =
      EstimateStart(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(estimate.jobs_before == 1);
  CHECK(estimate.latest == cluster.now() + absl::Hours(2));
}

TEST_CASE("estimate: reports why none can be made") {
  TestCluster cluster(PoliciesWith({"allocate", "backfill"}));
  cluster.AddNodes("n", 1, {.gpus = 8});
  cluster.RunAll(cluster.Submit("a", Gpus(1, 8)));
  const JobId job = cluster.Submit("b", Gpus(1, 8));
  const JobId behind = cluster.Submit("c", Gpus(1, 8));
  cluster.Settle();
  const auto of = [&](JobId id) {
    return EstimateStart(cluster.state(), cluster.policies(), id, cluster.now()).unknown;
  };
  CHECK(of(job) == "no running job has a walltime");
  CHECK_THAT(of(behind), Catch::Contains("job b is ahead of it"));
}

// The last job of a shape is deleted while its class is blocked: no job remains to wake.
TEST_CASE("deleting a blocked job is safe when room becomes free later") {
  TestCluster cluster;
  cluster.AddNodes("n", 1, {.gpus = 8});
  const JobId running = cluster.Submit("a", Gpus(1, 8));
  cluster.RunAll(running);
  const JobId blocked = cluster.Submit("b", Gpus(1, 7));
  cluster.Settle();
  cluster.Must(JobCancelled{.id = blocked});
  cluster.Settle();
  cluster.Must(JobDeleted{.id = blocked});
  cluster.Exit(running, 0);
  CHECK(cluster.StateOf(running) == "Succeeded");
}

}  // namespace
}  // namespace berth
