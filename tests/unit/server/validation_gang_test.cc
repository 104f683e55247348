// Gangs of jobs: minimums, preemptible groups, spreads, strategies for devices.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "server/convert/job.h"
#include "server/validation/submission.h"
#include "storage/store.h"
#include "support/errors.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

absl::Status ValidateOne(const v1::Job& job) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = job;
  Findings findings;
  CheckSubmit(request, DefaultLimits(), kStoreFormat, findings);
  return findings.ToStatus();
}

struct Case {
  std::string what;
  std::function<void(v1::Job&)> spoil;
  std::string field;  // below jobs[0]
  std::string words;
};

v1::JobSpec& Spec(v1::Job& job) { return *job.mutable_spec(); }
v1::TaskGroup& Group(v1::Job& job) { return *Spec(job).mutable_groups(0); }

}  // namespace

TEST_CASE("an invalid gang is refused with its path") {
  const std::vector<Case> cases = {
      {"a device strategy that applies only to nodes",
       [](v1::Job& j) { Spec(j).set_device_strategy(v1::COLOCATE); }, "spec.device_strategy",
       "must be BINPACK or SPREAD: COLOCATE applies only to nodes"},
      {"a device strategy without a share",
       [](v1::Job& j) { Group(j).set_device_strategy(v1::SPREAD); },
       "spec.groups[0].device_strategy",
       "chooses the device for a share, but the group requests no share"},
      {"a spread without a skew", [](v1::Job& j) { Group(j).mutable_spread()->set_tier(1); },
       "spec.groups[0].spread.max_skew", "must be 1..10000, is 0"},
      {"a spread over an impossible tier",
       [](v1::Job& j) {
         Group(j).mutable_spread()->set_tier(101);
         Group(j).mutable_spread()->set_max_skew(1);
       },
       "spec.groups[0].spread.tier", "must be 0..100, is 101"},
      {"an invalid preemption policy",
       [](v1::Job& j) { Spec(j).set_preemption_policy(static_cast<v1::PreemptionPolicy>(7)); },
       "spec.preemption_policy", "7 is not a value of berth.v1.PreemptionPolicy"},
      {"a preemptible group that the gang needs",
       [](v1::Job& j) { Group(j).set_preemptible(true); }, "spec.groups[0].preemptible",
       "true in a job that is not preemptible needs min_available 0: a gang is stopped as a whole"},
      {"a gang that needs tasks of a group that waits for another",
       [](v1::Job& j) {
         Group(j).set_replicas(4);
         Group(j).set_min_available(2);
         *Spec(j).add_groups() = Group(j);
         Spec(j).mutable_groups(1)->set_name("second");
         v1::GroupDependency* wait = Spec(j).mutable_groups(1)->add_depends_on();
         wait->set_group(Group(j).name());
         wait->set_condition(v1::GroupDependency::RUNNING);
         Spec(j).set_min_available(7);
       },
       "spec.min_available",
       "must be at most 6, is 7: groups that depend on others count only with their min_available"},
      {"a preemptible group that the job needs",
       [](v1::Job& j) {
         Group(j).set_replicas(4);
         Group(j).set_min_available(0);
         Group(j).set_preemptible(true);
         Spec(j).set_min_available(2);
       },
       "spec.groups[0].preemptible",
       "true in a job that is not preemptible: the job's min_available, 2, must be at most 0, the "
       "sum of its groups' minimums"},
  };
  for (const Case& one : cases) {
    v1::Job job = SmallJob("j");
    one.spoil(job);
    const absl::Status status = ValidateOne(job);
    INFO(one.what << ": " << status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message().find("jobs[0]." + one.field + ": " + one.words) == 0);
  }
}

TEST_CASE("a job that requests fewer tasks than it has accepts any of them") {
  v1::Job job = SmallJob("j");
  v1::JobSpec& spec = *job.mutable_spec();
  spec.mutable_groups(0)->set_replicas(3);
  *spec.add_groups() = spec.groups(0);
  spec.mutable_groups(1)->set_name("second");
  const auto minimums = [&] {
    const JobSpec hot = JobSpecFrom(spec, {});
    return std::vector<int32_t>{hot.min_available, hot.groups[0].min_available,
                                hot.groups[1].min_available};
  };
  CHECK(minimums() == std::vector<int32_t>{6, 3, 3});
  spec.set_min_available(6);
  CHECK(minimums() == std::vector<int32_t>{6, 3, 3});
  spec.set_min_available(4);
  CHECK(minimums() == std::vector<int32_t>{4, 0, 0});
  spec.mutable_groups(0)->set_min_available(1);
  CHECK(minimums() == std::vector<int32_t>{4, 1, 3});
  spec.set_min_available(3);
  CHECK(minimums() == std::vector<int32_t>{3, 1, 0});
  spec.clear_min_available();
  CHECK(minimums() == std::vector<int32_t>{4, 1, 3});
  spec.mutable_groups(0)->set_min_available(0);
  spec.mutable_groups(1)->set_min_available(0);
  CHECK(minimums() == std::vector<int32_t>{1, 0, 0});
  CHECK(ValidateOne(job).ok());
}

TEST_CASE("unimplemented forms of preemptible groups and spreads are refused by name") {
  v1::Job job = SmallJob("j");
  v1::TaskGroup& group = *job.mutable_spec()->mutable_groups(0);
  group.set_preemptible(false);
  CHECK(absl::IsUnimplemented(ValidateOne(job)));
  job.mutable_spec()->set_preemptible(false);
  CHECK(ValidateOne(job).ok());
  group.mutable_spread()->set_max_skew(1);
  CHECK(ValidateOne(job).ok());
  group.mutable_topology()->set_mode(v1::TopologyConstraint::SOFT);
  const absl::Status status = ValidateOne(job);
  CHECK(absl::IsUnimplemented(status));
  CHECK(status.message().find("groups[0].spread: spread of a group that a topology constraint") !=
        std::string::npos);
}

TEST_CASE("spares become a group of their own") {
  v1::Job job = SmallJob("gang");
  Group(job).set_replicas(4);
  Group(job).set_spares(2);
  Group(job).set_image("team/train:1");
  Spec(job).add_groups()->CopyFrom(Group(job));
  Spec(job).mutable_groups(1)->set_name("reader");
  Spec(job).mutable_groups(1)->clear_spares();
  CHECK(ValidateOne(job).ok());
  v1::JobSpec expanded = job.spec();
  REQUIRE(AnyShorthand(expanded));
  ExpandShorthand(&expanded);
  REQUIRE(expanded.groups_size() == 3);
  CHECK_FALSE(AnyShorthand(expanded));
  CHECK(expanded.groups(2).name() == Group(job).name() + "-spares");
  CHECK(expanded.groups(2).replicas() == 2);
  CHECK(expanded.groups(2).image() == "team/train:1");
  const JobSpec spec = JobSpecFrom(expanded, {});
  CHECK(spec.min_available == 8);
  CHECK(spec.groups[2].spare_of == 0u);
  CHECK(spec.groups[2].min_available == 0);
  CHECK(spec.groups[2].shape == spec.groups[0].shape);
  *job.mutable_spec() = expanded;  // as GetJob returns it
  CHECK(ValidateOne(job).ok());
}

// Of a gang of four.
void CheckRefused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.what);
    v1::Job job = SmallJob("gang");
    Group(job).set_replicas(4);
    c.spoil(job);
    const absl::Status status = ValidateOne(job);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(std::string(status.message()).find("jobs[0]." + c.field) != std::string::npos);
    CHECK(std::string(status.message()).find(c.words) != std::string::npos);
  }
}

TEST_CASE("copies are short for an affinity") {
  v1::Job job = SmallJob("gang");
  v1::TaskGroup copies = Group(job);
  copies.set_name("copies");
  copies.mutable_copies_of()->set_group(Group(job).name());
  copies.mutable_copies_of()->set_apart_tier(2);
  *Spec(job).add_groups() = copies;
  CHECK(ValidateOne(job).ok());
  v1::JobSpec expanded = job.spec();
  REQUIRE(AnyShorthand(expanded));
  ExpandShorthand(&expanded);
  CHECK_FALSE(AnyShorthand(expanded));
  CHECK(expanded.groups(1).affinity().apart_from_groups(0) == Group(job).name());
  const JobSpec spec = JobSpecFrom(expanded, {});
  CHECK(spec.groups[1].apart_from == std::vector<uint32_t>{0});
  CHECK(spec.groups[1].affinity_tier == 2);
  *job.mutable_spec() = expanded;  // as GetJob returns it
  CHECK(ValidateOne(job).ok());
}

TEST_CASE("copies that make no sense are refused") {
  const auto with = [](auto change) {
    return [change](v1::Job& job) {
      v1::TaskGroup copies = Group(job);
      copies.set_name("copies");
      copies.mutable_copies_of()->set_group(Group(job).name());
      change(copies);
      *Spec(job).add_groups() = copies;
    };
  };
  const std::vector<Case> cases = {
      {"itself", with([](v1::TaskGroup& g) { g.mutable_copies_of()->set_group("copies"); }),
       "spec.groups[1].copies_of.group", "must be another group"},
      {"unknown", with([](v1::TaskGroup& g) { g.mutable_copies_of()->set_group("gone"); }),
       "spec.groups[1].copies_of.group", "the job has no group \"gone\""},
      {"tier", with([](v1::TaskGroup& g) { g.mutable_copies_of()->set_apart_tier(101); }),
       "spec.groups[1].copies_of.apart_tier", "0..100"},
      {"and affinity", with([](v1::TaskGroup& g) { g.mutable_affinity()->set_tier(1); }),
       "spec.groups[1].copies_of", "not both"},
  };
  CheckRefused(cases);
}

TEST_CASE("spares that make no sense are refused") {
  const std::vector<Case> cases = {
      {"too many", [](v1::Job& j) { Group(j).set_spares(5); }, "spec.groups[0].spares",
       "must be 0..4, is 5"},
      {"fewer than none", [](v1::Job& j) { Group(j).set_spares(-1); }, "spec.groups[0].spares",
       "must be 0..4, is -1"},
      {"a role without its group",
       [](v1::Job& j) {
         v1::TaskGroup& spare = *Spec(j).add_groups();
         spare = Spec(j).groups(0);
         spare.set_name("more");
         spare.set_role(v1::SPARE);
         spare.set_spare_of("nobody");
       },
       "spec.groups[1].spare_of", "must be the name of a group of workers"},
      {"another shape",
       [](v1::Job& j) {
         v1::TaskGroup& spare = *Spec(j).add_groups();
         spare = Spec(j).groups(0);
         spare.set_name("more");
         spare.set_role(v1::SPARE);
         spare.set_spare_of(Group(j).name());
         spare.set_replicas(1);
         spare.mutable_resources()->set_cpu_millis(777);
       },
       "spec.groups[1]", "must have the resources"},
      {"a name that is taken",
       [](v1::Job& j) {
         Group(j).set_spares(1);
         Spec(j).add_groups()->CopyFrom(Group(j));
         Spec(j).mutable_groups(1)->clear_spares();
         Spec(j).mutable_groups(1)->set_name(Group(j).name() + "-spares");
       },
       "spec.groups[2].name", "is already the name of groups[1]"},
  };
  CheckRefused(cases);
}

v1::Rung& AddRung(v1::Job& job, v1::LifecyclePolicy::Action action, int minutes) {
  v1::Rung& rung = *Spec(job).add_escalation();
  rung.set_action(action);
  if (minutes > 0) rung.mutable_for_()->set_seconds(60 * minutes);
  return rung;
}

TEST_CASE("an escalation reaches the core, and comes back") {
  v1::Job job = SmallJob("gang");
  Spec(job).set_max_retries(3);
  AddRung(job, v1::LifecyclePolicy::RESTART_TASK, 2);
  AddRung(job, v1::LifecyclePolicy::RESTART_JOB, 0);
  CHECK(ValidateOne(job).ok());
  const JobSpec spec = JobSpecFrom(job.spec(), {});
  REQUIRE(spec.policies.size() == 4);
  CHECK(spec.policies[0].rung == 1);
  CHECK(spec.policies[0].within == absl::Minutes(2));
  CHECK(spec.policies[1].event == PolicyEvent::kTaskHung);
  CHECK(spec.policies[3].action == PolicyAction::kRestartJob);
  CHECK(spec.policies[3].within == absl::ZeroDuration());
}

TEST_CASE("an escalation that makes no sense is refused") {
  using Policy = v1::LifecyclePolicy;
  const std::vector<Case> cases = {
      {"no retries", [](v1::Job& j) { Spec(j).set_max_retries(0); }, "spec.escalation",
       "needs max_retries"},
      {"not a restart", [](v1::Job& j) { AddRung(j, Policy::ABORT, 0); },
       "spec.escalation[1].action", "must be a restart"},
      {"not wider", [](v1::Job& j) { AddRung(j, Policy::RESTART_TASK, 0); },
       "spec.escalation[1].action", "must reach further"},
      {"no time",
       [](v1::Job& j) {
         Spec(j).mutable_escalation(0)->clear_for_();
         AddRung(j, Policy::RESTART_JOB, 0);
       },
       "spec.escalation[0].for", "must be"},
      {"a last time", [](v1::Job& j) { AddRung(j, Policy::RESTART_JOB, 1); },
       "spec.escalation[1].for", "the last rung has none"},
      {"a policy beside it",
       [](v1::Job& j) {
         AddRung(j, Policy::RESTART_JOB, 0);
         Group(j).add_policies()->set_event(Policy::TASK_FAILED);
         Group(j).mutable_policies(0)->set_action(Policy::RESTART_JOB);
       },
       "spec.groups[0].policies[0].action", "the job's escalation says"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    v1::Job job = SmallJob("gang");
    Spec(job).set_max_retries(3);
    AddRung(job, Policy::RESTART_TASK, 2);
    c.spoil(job);
    const absl::Status status = ValidateOne(job);
    INFO(status.message());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(std::string(status.message()).find("jobs[0]." + c.field) != std::string::npos);
    CHECK(std::string(status.message()).find(c.words) != std::string::npos);
  }
}

TEST_CASE("uses of spares that are not built are refused by name") {
  const std::vector<std::function<void(v1::Job&)>> uses = {
      [](v1::Job& j) { Group(j).mutable_partition()->set_size(2); },
      [](v1::Job& j) {
        Group(j).mutable_topology()->set_mode(v1::TopologyConstraint::HARD);
        Group(j).mutable_topology()->set_highest_tier(1);
      },
      [](v1::Job& j) { Group(j).mutable_affinity()->add_apart_from_groups(Group(j).name()); },
  };
  for (const auto& use : uses) {
    v1::Job job = SmallJob("gang");
    Group(job).set_replicas(4);
    Group(job).set_spares(1);
    use(job);
    CHECK(absl::IsUnimplemented(ValidateOne(job)));
  }
}

TEST_CASE("priorities of groups, and affinity between jobs, are bounded") {
  v1::Job job = SmallJob("j");
  v1::JobSpec& spec = *job.mutable_spec();
  const auto says = [&](const std::string& text) {
    const absl::Status status = ValidateOne(job);
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message().find(text) != std::string::npos);
  };
  spec.mutable_groups(0)->set_priority(1);
  says("groups[0].priority: must be at most the job's priority, 0, is 1");
  spec.mutable_groups(0)->set_priority(0);
  v1::JobAffinityTerm& term = *spec.mutable_affinity()->add_near();
  says("affinity.near[0].match_labels: must be 1..8 labels, has 0");
  for (int i = 0; i < 9; ++i) (*term.mutable_match_labels())["k" + std::to_string(i)] = "v";
  says("affinity.near[0].match_labels: must be 1..8 labels, has 9");
  term.clear_match_labels();
  (*term.mutable_match_labels())["not a key"] = "v";
  says("affinity.near[0].match_labels");
  term.clear_match_labels();
  (*term.mutable_match_labels())["app"] = "cache";
  term.set_tier(101);
  says("affinity.near[0].tier");
  term.set_tier(1);
  CHECK(ValidateOne(job).ok());
  for (int i = 0; i < 9; ++i) *spec.mutable_affinity()->add_apart_from() = term;
  says("affinity.apart_from: at most 8 entries, has 9");
}

TEST_CASE("priorities of groups and affinity reach the core") {
  v1::Job job = SmallJob("j");
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_priority(4);
  spec.mutable_groups(0)->set_priority(-2);
  (*spec.mutable_affinity()->add_near()->mutable_match_labels())["b"] = "2";
  (*spec.mutable_affinity()->mutable_near(0)->mutable_match_labels())["a"] = "1";
  (*spec.mutable_affinity()->add_apart_from()->mutable_match_labels())["c"] = "3";
  spec.mutable_affinity()->mutable_apart_from(0)->set_tier(2);
  spec.mutable_affinity()->mutable_apart_from(0)->set_all_queues(true);
  CHECK(ValidateOne(job).ok());
  const JobSpec hot = JobSpecFrom(spec, {});
  CHECK(hot.groups[0].priority == -2);
  REQUIRE(hot.affinity.size() == 2);
  CHECK(hot.affinity[0] == AffinityTerm{.labels = {{"a", "1"}, {"b", "2"}}});
  CHECK(hot.affinity[1] ==
        AffinityTerm{.apart = true, .labels = {{"c", "3"}}, .tier = 2, .all_queues = true});
}

TEST_CASE("the fields of a gang reach the core") {
  v1::Job job = SmallJob("j");
  v1::JobSpec& spec = *job.mutable_spec();
  CHECK(JobSpecFrom(spec, {}).preempts);
  spec.set_preemption_policy(v1::PREEMPT_LOWER_PRIORITY);
  CHECK(JobSpecFrom(spec, {}).preempts);
  spec.set_preemption_policy(v1::NEVER);
  spec.set_device_strategy(v1::BINPACK);
  v1::TaskGroup& group = *spec.mutable_groups(0);
  group.set_device_strategy(v1::SPREAD);
  group.set_min_available(0);
  group.set_preemptible(true);
  group.mutable_spread()->set_tier(2);
  group.mutable_spread()->set_max_skew(3);
  v1::DeviceRequest* part = group.mutable_resources()->add_devices();
  part->set_kind("gpu");
  part->set_share(0.5);
  CHECK(absl::IsInvalidArgument(ValidateOne(job)));  // only the helper group: min_available is 1
  *spec.add_groups() = SmallJob("k").spec().groups(0);
  spec.mutable_groups(1)->set_name("second");
  const absl::Status status = ValidateOne(job);
  INFO(status);
  CHECK(status.ok());
  const JobSpec hot = JobSpecFrom(spec, {});
  CHECK_FALSE(hot.preempts);
  CHECK(hot.device_strategy == Strategy::kBinpack);
  CHECK(hot.groups[0].device_strategy == Strategy::kSpread);
  CHECK(hot.groups[0].preemptible);
  CHECK(hot.groups[0].spread == Spread{.tier = 2, .max_skew = 3});
  CHECK_FALSE(hot.groups[1].preemptible);
  CHECK_FALSE(hot.groups[1].spread.Any());
}

}  // namespace berth::testing
