// Calls with several jobs: names, dependencies, counts, formats, and the order of findings.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/commands/job_state.h"
#include "server/validation/submission.h"
#include "storage/store.h"
#include "support/errors.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

constexpr int kInCluster = CallDependencies::kInCluster;

struct Checked {
  CallDependencies dependencies;
  std::vector<std::string> findings;  // "field: description", in the order of the response
};

std::vector<std::string> Lines(const Findings& findings) {
  std::vector<std::string> lines;
  for (const Violation& violation : ViolationsOf(findings.ToStatus())) {
    lines.push_back(absl::StrCat(violation.field, ": ", violation.description));
  }
  return lines;
}

Checked Check(const v1::SubmitJobsRequest& request, uint32_t store_format = kStoreFormat) {
  Findings findings;
  CallDependencies dependencies = CheckSubmit(request, DefaultLimits(), store_format, findings);
  return {std::move(dependencies), Lines(findings)};
}

v1::SubmitJobsRequest Jobs(const std::vector<std::string>& names) {
  v1::SubmitJobsRequest request;
  for (const std::string& name : names) *request.add_jobs() = SmallJob(name);
  return request;
}

void Depend(v1::SubmitJobsRequest& request, int job, const std::string& on) {
  auto* dependency = request.mutable_jobs(job)->mutable_spec()->add_dependencies();
  dependency->set_job(on);
  dependency->set_condition(v1::JobDependency::AFTER_OK);
}

using Lists = std::vector<std::vector<int>>;

// What each job depends on.
Lists Targets(const v1::SubmitJobsRequest& request, const CallDependencies& dependencies) {
  Lists targets;
  for (int job = 0; job < request.jobs_size(); ++job) {
    targets.emplace_back();
    for (const CallDependencies::Edge& edge : dependencies.Of(job)) {
      CHECK(edge.job == job);
      CHECK(edge.entry == static_cast<int>(targets.back().size()));
      targets.back().push_back(edge.on);
    }
  }
  return targets;
}

TEST_CASE("a call without dependencies has no edges and keeps its order") {
  const Checked checked = Check(Jobs({"a", "", "b", ""}));
  CHECK(checked.findings.empty());
  CHECK(checked.dependencies.edges.empty());
  CHECK(checked.dependencies.order.empty());
}

TEST_CASE("dependencies name jobs of the call, earlier or later, or of the cluster") {
  v1::SubmitJobsRequest request = Jobs({"c", "", "a", "b"});
  Depend(request, 0, "b");
  Depend(request, 0, "stored");
  Depend(request, 0, "a");
  Depend(request, 1, "stored");
  Depend(request, 3, "a");
  const Checked checked = Check(request);
  CHECK(checked.findings.empty());
  CHECK(Targets(request, checked.dependencies) == Lists{{3, kInCluster, 2}, {kInCluster}, {}, {2}});
  CHECK(checked.dependencies.order == std::vector<int>{2, 3, 0, 1});
}

TEST_CASE("dependencies on jobs of the cluster alone keep the order of the call") {
  v1::SubmitJobsRequest request = Jobs({"a", "b"});
  Depend(request, 0, "stored");
  const Checked checked = Check(request);
  CHECK(checked.findings.empty());
  CHECK(Targets(request, checked.dependencies) == Lists{{kInCluster}, {}});
  CHECK(checked.dependencies.order.empty());
}

TEST_CASE("a cycle of dependencies is refused by its jobs") {
  v1::SubmitJobsRequest request = Jobs({"a", "b", "c"});
  Depend(request, 0, "b");
  Depend(request, 1, "c");
  CHECK(Check(request).findings.empty());
  Depend(request, 2, "a");
  CHECK(Check(request).findings ==
        std::vector<std::string>{"jobs[0].spec.dependencies: dependencies between jobs form a "
                                 "cycle: a -> b -> c -> a"});
}

TEST_CASE("a single job cannot depend on itself") {
  v1::SubmitJobsRequest request = Jobs({"a"});
  Depend(request, 0, "a");
  CHECK(Check(request).findings ==
        std::vector<std::string>{
            "jobs[0].spec.dependencies: dependencies between jobs form a cycle: a -> a"});
}

TEST_CASE("a repeated name is refused each time, and dependencies mean its first job") {
  v1::SubmitJobsRequest request = Jobs({"a", "b", "a", "a"});
  Depend(request, 1, "a");
  const Checked checked = Check(request);
  CHECK(checked.findings ==
        std::vector<std::string>{"jobs[2].name: \"a\" is already the name of jobs[0]",
                                 "jobs[3].name: \"a\" is already the name of jobs[0]"});
  CHECK(Targets(request, checked.dependencies) == Lists{{}, {0}, {}, {}});
}

TEST_CASE("a call has at least one job and at most limits.jobs_per_call") {
  CHECK(Check({}).findings == std::vector<std::string>{"jobs: must be 1..1000 jobs, has 0"});
  v1::SubmitJobsRequest request;
  for (int i = 0; i < 1001; ++i) *request.add_jobs() = SmallJob("one-name");
  request.mutable_jobs(0)->set_name("Not a name");  // no job is checked
  Depend(request, 1000, "one-name");
  Depend(request, 1000, "stored");
  const Checked checked = Check(request);
  CHECK(checked.findings == std::vector<std::string>{"jobs: must be 1..1000 jobs, has 1001"});
  REQUIRE(checked.dependencies.edges.size() == 2);  // for the check against the state
  CHECK(checked.dependencies.edges[0].on == 1);
  CHECK(checked.dependencies.edges[1].on == kInCluster);
}

TEST_CASE("a request id is at most 128 bytes long") {
  v1::SubmitJobsRequest request = Jobs({"a"});
  request.set_request_id(std::string(128, 'x'));
  CHECK(Check(request).findings.empty());
  request.set_request_id(std::string(129, 'x'));
  CHECK(Check(request).findings ==
        std::vector<std::string>{"request_id: at most 128 bytes, has 129"});
}

TEST_CASE("findings of a call: itself, its jobs, their names, cycles, and formats last") {
  v1::SubmitJobsRequest request = Jobs({"a", "a", "b"});
  request.set_request_id(std::string(129, 'x'));
  request.mutable_jobs(0)
      ->mutable_spec()
      ->mutable_groups(0)
      ->mutable_resources()
      ->set_scratch_bytes(1 << 20);
  request.mutable_jobs(0)->set_uid(7);
  request.mutable_jobs(2)->set_uid(7);
  Depend(request, 2, "b");
  const std::vector<std::string> invalid = {
      "request_id: at most 128 bytes, has 129", "jobs[0].uid: is set by the server; leave it out",
      "jobs[2].uid: is set by the server; leave it out",
      "jobs[1].name: \"a\" is already the name of jobs[0]",
      "jobs[2].spec.dependencies: dependencies between jobs form a cycle: b -> b"};
  CHECK(Check(request).findings == invalid);
  std::vector<std::string> all = invalid;
  all.push_back(
      "jobs[0].spec.groups[0].resources.scratch_bytes: needs store format 6, and the store has 5: "
      "run `berth cluster finalize` first");
  CHECK(Check(request, 5).findings == all);
}

TEST_CASE("only dependencies on jobs of the cluster are looked up in the state") {
  const ClusterState empty;
  v1::SubmitJobsRequest request = Jobs({"a", "b"});
  Depend(request, 0, "b");
  Depend(request, 0, "ghost");
  Findings findings;
  const CallDependencies dependencies =
      CheckSubmit(request, DefaultLimits(), kStoreFormat, findings);
  REQUIRE(findings.ok());
  CheckJobsAgainst(empty, nullptr, request, dependencies, findings);
  const std::vector<std::string> lines = Lines(findings);
  REQUIRE(lines.size() == 3);  // the queue, twice
  CHECK(lines[2] ==
        "jobs[0].spec.dependencies[1].job: there is no job \"ghost\", in the cluster or in this "
        "call");
}

// Whether a job of the call depends on itself, directly or through others: by brute force.
bool HasCycle(const Lists& targets) {
  std::vector<std::vector<bool>> reach(targets.size(), std::vector<bool>(targets.size()));
  for (size_t job = 0; job < targets.size(); ++job) {
    for (const int on : targets[job]) {
      if (on != kInCluster) reach[job][static_cast<size_t>(on)] = true;
    }
  }
  for (size_t via = 0; via < targets.size(); ++via) {
    for (size_t from = 0; from < targets.size(); ++from) {
      for (size_t to = 0; to < targets.size(); ++to) {
        if (reach[from][via] && reach[via][to]) reach[from][to] = true;
      }
    }
  }
  for (size_t job = 0; job < targets.size(); ++job) {
    if (reach[job][job]) return true;
  }
  return false;
}

// A call of up to seven jobs, named n0, n1 and so on, and what each depends on.
v1::SubmitJobsRequest RandomCall(std::mt19937& random, Lists* expected) {
  const auto below = [&random](int bound) {
    return static_cast<int>(random() % static_cast<uint32_t>(bound));
  };
  const int jobs = 1 + below(7);
  v1::SubmitJobsRequest request;
  for (int i = 0; i < jobs; ++i) *request.add_jobs() = SmallJob(absl::StrCat("n", i));
  expected->assign(static_cast<size_t>(jobs), {});
  for (int more = below(8); more > 0; --more) {
    const int from = below(jobs), to = below(8);
    const int on = to < jobs ? to : kInCluster;
    std::vector<int>& targets = (*expected)[static_cast<size_t>(from)];
    if (std::find(targets.begin(), targets.end(), on) != targets.end()) continue;
    targets.push_back(on);
    Depend(request, from, absl::StrCat("n", to));
  }
  return request;
}

// Every job once, after the jobs of the call that it depends on.
void CheckOrder(const std::vector<int>& order, const Lists& targets) {
  REQUIRE(order.size() == targets.size());
  std::vector<bool> done(targets.size());
  for (const int job : order) {
    CHECK_FALSE(done[static_cast<size_t>(job)]);
    for (const int on : targets[static_cast<size_t>(job)]) {
      CHECK((on == kInCluster || done[static_cast<size_t>(on)]));
    }
    done[static_cast<size_t>(job)] = true;
  }
}

bool AnyWithin(const Lists& targets) {
  return std::any_of(targets.begin(), targets.end(), [](const std::vector<int>& some) {
    return std::any_of(some.begin(), some.end(), [](int on) { return on != kInCluster; });
  });
}

TEST_CASE("random calls: every edge is found, and an order exists exactly if no cycle does") {
  std::mt19937 random(1);
  int ordered = 0, cyclic = 0;
  for (int round = 0; round < 2000; ++round) {
    Lists expected;
    const v1::SubmitJobsRequest request = RandomCall(random, &expected);
    const Checked checked = Check(request);
    CHECK(Targets(request, checked.dependencies) == expected);
    const bool cycle = HasCycle(expected);
    CHECK(checked.findings.size() == (cycle ? 1 : 0));
    if (cycle || !AnyWithin(expected)) {
      CHECK(checked.dependencies.order.empty());
      cyclic += cycle ? 1 : 0;
      continue;
    }
    ++ordered;
    CheckOrder(checked.dependencies.order, expected);
  }
  CHECK(ordered > 100);
  CHECK(cyclic > 100);
}

}  // namespace
}  // namespace berth::testing
