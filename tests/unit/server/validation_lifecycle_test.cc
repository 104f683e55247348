// The API's rules for membership, coordinators and checkpoints.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/validation/job.h"
#include "server/validation/lifecycle.h"
#include "server/validation/submission.h"
#include "tests/unit/server/validation_samples.h"

namespace berth {
namespace {

// Two groups; the second may be made a coordinator.
v1::Job TwoGroups() {
  v1::Job job;
  job.set_name("train");
  for (const char* name : {"worker", "rdzv"}) {
    v1::TaskGroup& group = *job.mutable_spec()->add_groups();
    group.set_name(name);
    group.set_replicas(group.name() == "worker" ? 4 : 1);
    group.add_command("run");
  }
  return job;
}

absl::Status Validate(const v1::Job& job) {
  Findings findings;
  const FieldPath root;
  CheckJob({root, "jobs", 0}, job, job.spec().ByteSizeLong(), testing::DefaultLimits(), findings);
  return findings.ToStatus();
}

struct Case {
  std::function<void(v1::JobSpec&)> spoil;
  std::string what;
};

const std::vector<Case>& Cases() {
  using Checkpoint = v1::CheckpointPolicy;
  static const auto& cases = *new std::vector<Case>{
      {[](v1::JobSpec& s) {
         s.mutable_groups(0)->set_membership(v1::RIGID);
         s.mutable_groups(0)->set_min_available(2);
       },
       "groups[0].membership: RIGID needs min_available = replicas, 4, is 2"},
      {[](v1::JobSpec& s) { s.mutable_groups(0)->set_membership(static_cast<v1::Membership>(9)); },
       "9 is not a value of berth.v1.Membership"},
      {[](v1::JobSpec& s) { s.mutable_groups(0)->set_role(v1::COORDINATOR); },
       "groups[0].role: a coordinator is one task that the gang needs"},
      {[](v1::JobSpec& s) {
         s.mutable_groups(1)->set_role(v1::COORDINATOR);
         s.mutable_groups(1)->set_membership(v1::RENDEZVOUS);
       },
       "groups[1].membership: a coordinator has none"},
      {[](v1::JobSpec& s) {
         s.mutable_groups()->DeleteSubrange(0, 1);
         s.mutable_groups(0)->set_role(v1::COORDINATOR);
       },
       "groups[0].role: a coordinator needs another group to coordinate"},
      {[](v1::JobSpec& s) {
         s.mutable_groups(0)->set_replicas(1);
         for (v1::TaskGroup& group : *s.mutable_groups()) group.set_role(v1::COORDINATOR);
       },
       "groups[1].role: groups[0] is the coordinator already"},
      {[](v1::JobSpec& s) { s.mutable_checkpoint()->add_before(Checkpoint::DRAIN); },
       "checkpoint.before: needs a signal or a grace to give before these stops"},
      {[](v1::JobSpec& s) {
         s.mutable_checkpoint()->set_signal("SIGUSR1");
         s.mutable_checkpoint()->add_before(Checkpoint::DRAIN);
         s.mutable_checkpoint()->add_before(Checkpoint::DRAIN);
       },
       "checkpoint.before[1]: DRAIN twice"},
      {[](v1::JobSpec& s) { s.mutable_checkpoint()->mutable_walltime_notice()->set_seconds(60); },
       "checkpoint.walltime_notice: needs `signal`, which is sent then"},
      {[](v1::JobSpec& s) {
         s.mutable_checkpoint()->set_signal("SIGUSR1");
         s.mutable_checkpoint()->add_before(Checkpoint::DRAIN);
         s.mutable_checkpoint()->mutable_walltime_notice()->set_seconds(60);
       },
       "checkpoint.walltime_notice: `before` does not list WALLTIME"},
      {[](v1::JobSpec& s) {
         s.mutable_checkpoint()->set_signal("SIGUSR1");
         s.mutable_checkpoint()->mutable_walltime_notice()->set_seconds(60);
         s.mutable_walltime()->set_seconds(60);
       },
       "checkpoint.walltime_notice: must be less than the walltime, 1m"},
      {[](v1::JobSpec& s) {
         s.mutable_checkpoint()->set_signal("SIGUSR1");
         s.mutable_checkpoint()->add_saved_exit_codes(256);
       },
       "checkpoint.saved_exit_codes[0]: must be 0..255, is 256"},
      {[](v1::JobSpec& s) {
         s.mutable_checkpoint()->mutable_grace()->set_seconds(9);
         s.mutable_checkpoint()->add_saved_exit_codes(85);
       },
       "checkpoint.saved_exit_codes: needs `signal`, which asks the task to save"},
  };
  return cases;
}

TEST_CASE("contradictory membership, coordinators and checkpoints are refused by name") {
  REQUIRE(Validate(TwoGroups()).ok());
  for (const Case& one : Cases()) {
    v1::Job job = TwoGroups();
    one.spoil(*job.mutable_spec());
    const absl::Status status = Validate(job);
    CAPTURE(one.what, status.message());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message().find(one.what) != absl::string_view::npos);
  }
}

TEST_CASE("the notice before the walltime is the grace by default, if the walltime is longer") {
  v1::Job job = TwoGroups();
  v1::JobSpec& spec = *job.mutable_spec();
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::ZeroDuration());
  spec.mutable_checkpoint()->set_signal("SIGUSR1");
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::Seconds(10));  // kill_grace
  spec.mutable_checkpoint()->mutable_grace()->set_seconds(90);
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::Seconds(90));
  spec.mutable_walltime()->set_seconds(60);
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::ZeroDuration());
  spec.mutable_checkpoint()->mutable_walltime_notice()->set_seconds(30);
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::Seconds(30));
  spec.mutable_checkpoint()->clear_walltime_notice();
  spec.clear_walltime();
  spec.mutable_checkpoint()->add_before(v1::CheckpointPolicy::DRAIN);
  CHECK(JobSpecFrom(spec, {}).walltime_notice == absl::ZeroDuration());
}

TEST_CASE("watchdogs have limits, and TASK_HUNG needs one") {
  v1::Job job = TwoGroups();
  v1::LifecyclePolicy& policy = *job.mutable_spec()->add_policies();
  policy.set_event(v1::LifecyclePolicy::TASK_HUNG);
  policy.set_action(v1::LifecyclePolicy::RESTART_PARTITION);
  const auto message = [&] { return std::string(Validate(job).message()); };
  CHECK_THAT(message(), Catch::Contains("policies[0].event: TASK_HUNG needs the job's watchdog"));
  v1::Watchdog& watchdog = *job.mutable_spec()->mutable_watchdog();
  CHECK_THAT(message(), Catch::Contains("spec.watchdog.timeout: required"));
  watchdog.mutable_timeout()->set_seconds(60);
  CHECK(Validate(job).ok());
  watchdog.mutable_timeout()->set_seconds(24 * 3600 + 1);
  watchdog.mutable_start()->set_nanos(1);
  watchdog.set_dump_signal("SIGNOTHING");
  watchdog.mutable_dump_wait()->set_seconds(601);
  for (const char* field : {"timeout", "start", "dump_signal", "dump_wait"}) {
    CHECK_THAT(message(), Catch::Contains(absl::StrCat("spec.watchdog.", field, ": ")));
  }
}

TEST_CASE("a store of an older format gets neither watchdogs nor newer policies") {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = TwoGroups();
  v1::JobSpec& spec = *request.mutable_jobs(0)->mutable_spec();
  spec.mutable_watchdog()->mutable_timeout()->set_seconds(60);
  v1::LifecyclePolicy& policy = *spec.mutable_groups(0)->add_policies();
  policy.set_event(v1::LifecyclePolicy::TASK_HUNG);
  policy.set_action(v1::LifecyclePolicy::RESTART_PARTITION);
  const auto found = [&](uint32_t format) {
    Findings findings;
    CheckSubmit(request, testing::DefaultLimits(), format, findings);
    return std::string(findings.ToStatus().message());
  };
  CHECK(found(kFormatOfProgress).empty());
  const std::string older = found(kFormatOfProgress - 1);
  for (const char* field :
       {"spec.watchdog: needs store format 8", "policies[0].event: ", "policies[0].action: "}) {
    CHECK_THAT(older, Catch::Contains(field));
  }
}

TEST_CASE("a job that lends its GPUs has one task with whole GPUs, and nothing else") {
  v1::Job job = testing::SmallJob("train");
  v1::JobSpec& spec = *job.mutable_spec();
  const auto found = [&] { return std::string(Validate(job).message()); };
  spec.mutable_pause()->set_devices(v1::PausePolicy::CHECKPOINT);
  v1::TaskGroup& group = *spec.mutable_groups(0);
  group.set_replicas(1);
  CHECK_THAT(found(), Catch::Contains("spec.pause.devices: CHECKPOINT: it asks for no GPU"));
  v1::DeviceRequest& gpu = *group.mutable_resources()->add_devices();
  gpu.set_kind("gpu");
  gpu.set_count(2);
  CHECK(Validate(job).ok());
  CHECK(JobSpecFrom(spec, {}).checkpoints_devices);
  SECTION("several tasks") {
    group.set_replicas(2);
    CHECK_THAT(found(), Catch::Contains("only a job with one task can lend its GPUs; it has 2"));
    spec.mutable_pause()->set_devices(v1::PausePolicy::KEEP);
    CHECK(Validate(job).ok());
  }
  SECTION("a spare") {
    group.set_spares(1);
    CHECK_THAT(found(), Catch::Contains("only a job with one task can lend its GPUs; it has 2"));
  }
  SECTION("a share") {
    gpu.set_count(0);
    gpu.set_share(0.5);
    CHECK_THAT(found(), Catch::Contains("a share of a GPU cannot be lent"));
  }
  SECTION("an instance of MIG") {
    gpu.set_mig("1g.10gb");
    CHECK_THAT(found(), Catch::Contains("instances of MIG cannot be lent"));
  }
  SECTION("other devices") {
    gpu.set_kind("nic");
    CHECK_THAT(found(), Catch::Contains("a task with devices of kind nic cannot lend its GPUs"));
  }
  SECTION("an unknown value") {
    spec.mutable_pause()->set_devices(static_cast<v1::PausePolicy::Devices>(9));
    CHECK_THAT(found(), Catch::Contains("spec.pause.devices"));
  }
}

TEST_CASE("interactive: a time is required, within bounds") {
  v1::Job job = TwoGroups();
  v1::Interactive& interactive = *job.mutable_spec()->mutable_interactive();
  const auto found = [&] { return std::string(Validate(job).message()); };
  CHECK_THAT(found(), Catch::Contains("spec.interactive.idle: required"));
  for (const int64_t seconds : {59, 7 * 24 * 3600 + 1}) {
    interactive.mutable_idle()->set_seconds(seconds);
    CHECK_THAT(found(), Catch::Contains("spec.interactive.idle: must be"));
  }
  interactive.mutable_idle()->set_seconds(60);
  CHECK(Validate(job).ok());
  interactive.set_action(static_cast<v1::Interactive::Action>(9));
  CHECK_THAT(found(), Catch::Contains("spec.interactive.action"));
}

TEST_CASE("preempt_mode: PAUSE makes a job preemptible, and needs one that may be") {
  v1::Job job = TwoGroups();
  v1::JobSpec& spec = *job.mutable_spec();
  spec.clear_preemptible();
  spec.set_preempt_mode(v1::PAUSE);
  CHECK(Validate(job).ok());
  CHECK(JobSpecFrom(spec, {}).preemptible);
  CHECK(JobSpecFrom(spec, {}).preempt_mode == PreemptMode::kPause);
  spec.set_preemptible(false);
  CHECK_THAT(std::string(Validate(job).message()),
             Catch::Contains("spec.preempt_mode: PAUSE needs a job that is preemptible"));
  spec.set_preempt_mode(v1::REQUEUE);
  CHECK(Validate(job).ok());
  CHECK_FALSE(JobSpecFrom(spec, {}).preemptible);
  spec.set_preempt_mode(static_cast<v1::PreemptMode>(9));
  CHECK_THAT(std::string(Validate(job).message()), Catch::Contains("spec.preempt_mode"));
  spec.set_preempt_mode(v1::PAUSE);
  spec.clear_preemptible();
  Findings findings;
  const FieldPath root;
  CheckLifecycleFormat(FieldPath(root, "spec"), spec, kFormatOfSeries - 1, findings);
  CHECK_THAT(std::string(findings.ToStatus().message()),
             Catch::Contains("spec.preempt_mode: needs store format 10"));
}

}  // namespace
}  // namespace berth
