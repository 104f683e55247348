// Invalid jobs, each with its code, field path and message.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
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

absl::Status Validate(const v1::SubmitJobsRequest& request) {
  Findings findings;
  CheckSubmit(request, DefaultLimits(), kStoreFormat, findings);
  return findings.ToStatus();
}

absl::Status ValidateOne(const v1::Job& job) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = job;
  return Validate(request);
}

struct Case {
  std::string what;
  std::function<void(v1::Job&)> spoil;
  std::string field;  // below jobs[0]
  std::string words;
};

v1::JobSpec& Spec(v1::Job& job) { return *job.mutable_spec(); }
v1::TaskGroup& Group(v1::Job& job) { return *Spec(job).mutable_groups(0); }
v1::ResourceRequest& Resources(v1::Job& job) { return *Group(job).mutable_resources(); }
v1::DeviceRequest& AddGpu(v1::Job& job) {
  v1::DeviceRequest& device = *Resources(job).add_devices();
  device.set_kind("gpu");
  device.set_count(1);
  return device;
}
v1::LifecyclePolicy& AddPolicy(v1::Job& job) {
  v1::LifecyclePolicy& policy = *Spec(job).add_policies();
  policy.set_event(v1::LifecyclePolicy::TASK_FAILED);
  policy.set_action(v1::LifecyclePolicy::RESTART_JOB);
  return policy;
}

constexpr char kLabelRule[] =
    "must be a DNS label (at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or "
    "digit), is ";

const std::vector<Case>& InvalidCases() {
  static const auto& cases = *new std::vector<Case>{
      {"capitals", [](v1::Job& j) { j.set_name("Bad"); }, "name",
       std::string(kLabelRule) + "\"Bad\""},
      {"dash at the end", [](v1::Job& j) { j.set_name("a-"); }, "name", kLabelRule},
      {"64 letters", [](v1::Job& j) { j.set_name(std::string(64, 'a')); }, "name", kLabelRule},
      {"control character", [](v1::Job& j) { j.set_name("a\n"); }, "name", "is \"a\\n\""},
      {"a reserved name", [](v1::Job& j) { j.set_name("job-7"); }, "name",
       "names of the form job-NUMBER are reserved for the server"},
      {"uid", [](v1::Job& j) { j.set_uid(3); }, "uid", "is set by the server; leave it out"},
      {"a queue in capitals", [](v1::Job& j) { Spec(j).set_queue("Q"); }, "spec.queue",
       std::string(kLabelRule) + "\"Q\""},
      {"priority", [](v1::Job& j) { Spec(j).set_priority(1'000'001); }, "spec.priority",
       "must be -1000000..1000000, is 1000001"},
      {"negative walltime", [](v1::Job& j) { Spec(j).mutable_walltime()->set_seconds(-1); },
       "spec.walltime", "must be 1ms..87672h, is -1s"},
      {"endless walltime", [](v1::Job& j) { Spec(j).mutable_walltime()->set_seconds(INT64_MAX); },
       "spec.walltime", "must be 1ms..87672h"},
      {"mixed signs of a duration",
       [](v1::Job& j) {
         Spec(j).mutable_walltime()->set_seconds(1);
         Spec(j).mutable_walltime()->set_nanos(-1);
       },
       "spec.walltime", "nanos must be within one second and have the sign of seconds"},
      {"year 10000", [](v1::Job& j) { Spec(j).mutable_start_after()->set_seconds(253402300800); },
       "spec.start_after", "years 1 to 9999"},
      {"kill grace", [](v1::Job& j) { Spec(j).mutable_kill_grace()->set_seconds(3601); },
       "spec.kill_grace", "must be 0..1h, is 1h1s"},
      {"kill signal", [](v1::Job& j) { Spec(j).set_kill_signal("TERM"); }, "spec.kill_signal",
       "must be a signal name such as SIGTERM, SIGINT or SIGUSR1, is \"TERM\""},
      {"retries", [](v1::Job& j) { Spec(j).set_max_retries(-1); }, "spec.max_retries",
       "must be 0..1000, is -1"},
      {"unknown enum value",
       [](v1::Job& j) { Spec(j).set_on_node_loss(static_cast<v1::NodeLossPolicy>(9)); },
       "spec.on_node_loss", "9 is not a value of berth.v1.NodeLossPolicy"},
      {"label key", [](v1::Job& j) { (*Spec(j).mutable_labels())["-x"] = "y"; },
       "spec.labels[\"-x\"]", "key must be [DNS name/]NAME"},
      {"label value", [](v1::Job& j) { (*Spec(j).mutable_labels())["x"] = "y z"; },
       "spec.labels[\"x\"]", "value must be empty or at most 63"},
      {"annotations",
       [](v1::Job& j) { (*Spec(j).mutable_annotations())["x"] = std::string(65536, 'y'); },
       "spec.annotations", "at most 65536 bytes in all, have 65537"},
      {"no groups", [](v1::Job& j) { Spec(j).clear_groups(); }, "spec.groups",
       "must be 1..64 groups, has 0"},
      {"too many tasks", [](v1::Job& j) { Group(j).set_replicas(10'001); },
       "spec.groups[0].replicas", "must be 1..10000, is 10001"},
      {"too many tasks in total",
       [](v1::Job& j) {
         Group(j).set_replicas(6000);
         *Spec(j).add_groups() = Group(j);
         Spec(j).mutable_groups(1)->set_name("v");
       },
       "spec.groups", "at most 10000 tasks in one job (limits.tasks_per_job), has 12000"},
      {"gang above replicas",
       [](v1::Job& j) {
         Group(j).set_replicas(4);
         Group(j).set_min_available(5);
       },
       "spec.groups[0].min_available", "must be 0..4 (replicas), is 5"},
      {"gang above the job", [](v1::Job& j) { Spec(j).set_min_available(2); }, "spec.min_available",
       "a gang of 2 is larger than the job's 1 tasks; at most 1"},
      {"gang below its groups",
       [](v1::Job& j) {
         Group(j).set_replicas(4);
         Group(j).set_min_available(4);
         Spec(j).set_min_available(3);
       },
       "spec.min_available",
       "must be at least 4, the sum of the groups' min_available, or 0 for that, is 3"},
      {"negative cpu", [](v1::Job& j) { Resources(j).set_cpu_millis(-1); },
       "spec.groups[0].resources.cpu_millis", "must be 0..281474976710656, is -1"},
      {"overflowing memory", [](v1::Job& j) { Resources(j).set_memory_bytes(INT64_MAX); },
       "spec.groups[0].resources.memory_bytes",
       "must be 0..281474976710656, is 9223372036854775807"},
      {"overflowing total",
       [](v1::Job& j) {
         Resources(j).set_memory_bytes(INT64_MAX);
         Group(j).set_replicas(2);
       },
       "spec.groups", "all tasks together request more memory than 4611686018427387904"},
      {"device count", [](v1::Job& j) { AddGpu(j).set_count(129); },
       "spec.groups[0].resources.devices[0].count", "must be 1..128, is 129"},
      {"device kind", [](v1::Job& j) { AddGpu(j).set_kind("cpu"); },
       "spec.groups[0].resources.devices[0].kind", "must be a resource name"},
      {"device kind twice",
       [](v1::Job& j) {
         AddGpu(j);
         AddGpu(j);
       },
       "spec.groups[0].resources.devices[1].kind",
       "at most one request per kind; devices[0] also requests \"gpu\""},
      {"a link for one device", [](v1::Job& j) { AddGpu(j).set_min_link(v1::LINK_CLASS_PIX); },
       "spec.groups[0].resources.devices[0].min_link", "a single device has no links"},
      {"bandwidth for one device", [](v1::Job& j) { AddGpu(j).set_min_bandwidth_gbps(100); },
       "spec.groups[0].resources.devices[0].min_bandwidth_gbps", "a single device has no links"},
      {"links between NICs",
       [](v1::Job& j) {
         v1::DeviceRequest& nics = AddGpu(j);
         nics.set_kind("nic");
         nics.set_count(2);
         nics.set_min_link(v1::LINK_CLASS_PIX);
       },
       "spec.groups[0].resources.devices[0].min_link", "links between NICs are unknown"},
      {"negative bandwidth",
       [](v1::Job& j) {
         v1::DeviceRequest& gpus = AddGpu(j);
         gpus.set_count(2);
         gpus.set_min_bandwidth_gbps(-1);
       },
       "spec.groups[0].resources.devices[0].min_bandwidth_gbps", "must be 0..1000000, is -1"},
      {"no extended resource", [](v1::Job& j) { (*Resources(j).mutable_extended())["fpga"] = 0; },
       "spec.groups[0].resources.extended[\"fpga\"]", "must be 1.."},
      {"device and extended",
       [](v1::Job& j) {
         AddGpu(j);
         (*Resources(j).mutable_extended())["gpu"] = 1;
       },
       "spec.groups[0].resources.extended[\"gpu\"]", "is already requested as a device kind"},
      {"kinds",
       [](v1::Job& j) {
         for (char c = 'a'; c < 'a' + 15; ++c)
           (*Resources(j).mutable_extended())[std::string(1, c)] = 1;
       },
       "spec.groups", "at most 13 kinds of devices and extended resources, has 15"},
  };
  return cases;
}

const std::vector<Case>& InvalidShares() {
  static const auto& cases = *new std::vector<Case>{
      {"a share of several devices",
       [](v1::Job& j) {
         v1::DeviceRequest& gpus = AddGpu(j);
         gpus.set_count(2);
         gpus.set_share(0.5);
       },
       "spec.groups[0].resources.devices[0].count",
       "must be 0 or 1: a share is part of one device"},
      {"a whole share", [](v1::Job& j) { AddGpu(j).set_share(1); },
       "spec.groups[0].resources.devices[0].share", "must be 0.001..0.999 in steps of 0.001"},
      {"almost a whole share", [](v1::Job& j) { AddGpu(j).set_share(0.9999999999); },
       "spec.groups[0].resources.devices[0].share", "must be 0.001..0.999 in steps of 0.001"},
      {"almost no share", [](v1::Job& j) { AddGpu(j).set_share(1e-12); },
       "spec.groups[0].resources.devices[0].share", "must be 0.001..0.999 in steps of 0.001"},
      {"too fine a share", [](v1::Job& j) { AddGpu(j).set_share(0.3333); },
       "spec.groups[0].resources.devices[0].share", "must be 0.001..0.999 in steps of 0.001"},
      {"not a number", [](v1::Job& j) { AddGpu(j).set_share(NAN); },
       "spec.groups[0].resources.devices[0].share", "must be 0.001..0.999 in steps of 0.001"},
      {"all cores", [](v1::Job& j) { AddGpu(j).set_cores(100); },
       "spec.groups[0].resources.devices[0].cores", "must be 1..99, is 100"},
      {"share and cores",
       [](v1::Job& j) {
         v1::DeviceRequest& gpu = AddGpu(j);
         gpu.set_share(0.5);
         gpu.set_cores(50);
       },
       "spec.groups[0].resources.devices[0].cores", "set either share or cores, not both"},
      {"memory of a NIC",
       [](v1::Job& j) {
         v1::DeviceRequest& nic = AddGpu(j);
         nic.set_kind("nic");
         nic.set_count(0);
         nic.set_memory_bytes(1 << 30);
       },
       "spec.groups[0].resources.devices[0].share", "NICs cannot be shared"},
      {"whole devices oversubscribed",
       [](v1::Job& j) {
         v1::DeviceRequest& gpus = AddGpu(j);
         gpus.set_count(2);
         gpus.set_oversubscribe(true);
       },
       "spec.groups[0].resources.devices[0].oversubscribe", "only shares can be oversubscribed"},
      {"memory oversubscribed",
       [](v1::Job& j) {
         v1::DeviceRequest& gpu = AddGpu(j);
         gpu.set_count(0);
         gpu.set_memory_bytes(1 << 30);
         gpu.set_oversubscribe(true);
       },
       "spec.groups[0].resources.devices[0].oversubscribe",
       "memory is never oversubscribed: request share or cores"},
      {"invalid compute capability",
       [](v1::Job& j) {
         v1::DeviceRequest& gpu = AddGpu(j);
         gpu.set_count(1);
         gpu.set_min_compute_capability("sm_90");
       },
       "spec.groups[0].resources.devices[0].min_compute_capability",
       "must be MAJOR.MINOR, such as 8.0, is \"sm_90\""},
      {"a profile of a share",
       [](v1::Job& j) {
         v1::DeviceRequest& gpu = AddGpu(j);
         gpu.set_mig("1g.10gb");
         gpu.set_share(0.5);
       },
       "spec.groups[0].resources.devices[0].mig", "set either a profile or a share, not both"},
      {"a profile for another kind",
       [](v1::Job& j) {
         v1::DeviceRequest& npu = AddGpu(j);
         npu.set_kind("npu");
         npu.set_mig("1g.10gb");
       },
       "spec.groups[0].resources.devices[0].mig", "requires kind gpu"},
      {"two shares",
       [](v1::Job& j) {
         AddGpu(j).set_share(0.5);
         v1::DeviceRequest& npu = AddGpu(j);
         npu.set_kind("npu");
         npu.set_share(0.5);
       },
       "spec.groups[0].resources.devices[1].share",
       "a task can have a share of at most one device"},
  };
  return cases;
}

const std::vector<Case>& InvalidGroups() {
  static const auto& cases = *new std::vector<Case>{
      {"no command", [](v1::Job& j) { Group(j).clear_command(); }, "spec.groups[0].command",
       "required without image: the program and its arguments"},
      {"pull policy without image",
       [](v1::Job& j) { Group(j).set_image_pull_policy(v1::IMAGE_PULL_POLICY_NEVER); },
       "spec.groups[0].image_pull_policy", "needs image"},
      {"credentials that are no path",
       [](v1::Job& j) {
         Group(j).set_image("r.example/x");
         Group(j).set_registry_auth("auth.json");
       },
       "spec.groups[0].registry_auth", "must be an absolute path of at most 4096 bytes"},
      {"empty program", [](v1::Job& j) { Group(j).set_command(0, ""); },
       "spec.groups[0].command[0]", "the program must not be empty"},
      {"NUL in an argument", [](v1::Job& j) { Group(j).add_command(std::string("a\0b", 3)); },
       "spec.groups[0].command[1]", "must not contain a NUL byte"},
      {"env name", [](v1::Job& j) { Group(j).add_env()->set_name("1A"); },
       "spec.groups[0].env[0].name",
       "must be letters, digits and '_' and not begin with a digit, is \"1A\""},
      {"env twice",
       [](v1::Job& j) {
         Group(j).add_env()->set_name("A");
         Group(j).add_env()->set_name("A");
       },
       "spec.groups[0].env[1].name", "A is set twice"},
      {"relative directory", [](v1::Job& j) { Group(j).set_working_dir("here"); },
       "spec.groups[0].working_dir", "must be an absolute path, is \"here\""},
      {"group names", [](v1::Job& j) { *Spec(j).add_groups() = Group(j); }, "spec.groups[1].name",
       "\"w\" is already the name of groups[0]"},
      {"unknown group",
       [](v1::Job& j) {
         auto* d = Group(j).add_depends_on();
         d->set_group("x");
         d->set_condition(v1::GroupDependency::RUNNING);
       },
       "spec.groups[0].depends_on[0].group", "the job has no group \"x\""},
      {"a group that waits for itself",
       [](v1::Job& j) {
         auto* d = Group(j).add_depends_on();
         d->set_group("w");
         d->set_condition(v1::GroupDependency::RUNNING);
       },
       "spec.groups[0].depends_on", "dependencies between groups form a cycle: w -> w"},
      {"policy without event", [](v1::Job& j) { AddPolicy(j).clear_event(); },
       "spec.policies[0].event", "required"},
      {"exit code", [](v1::Job& j) { AddPolicy(j).add_exit_codes(256); },
       "spec.policies[0].exit_codes[0]", "must be 1..255, is 256"},
      {"exit codes without a failure event",
       [](v1::Job& j) {
         auto& p = AddPolicy(j);
         p.set_event(v1::LifecyclePolicy::TIMEOUT);
         p.add_exit_codes(1);
       },
       "spec.policies[0].exit_codes", "only with event TASK_FAILED"},
      {"a wait without its length",
       [](v1::Job& j) { AddPolicy(j).set_event(v1::LifecyclePolicy::TASK_PENDING); },
       "spec.policies[0].after", "required with TASK_PENDING: how long a task may wait"},
      {"a wait of no time",
       [](v1::Job& j) {
         auto& p = AddPolicy(j);
         p.set_event(v1::LifecyclePolicy::TASK_PENDING);
         p.mutable_after();
       },
       "spec.policies[0].after", "required with TASK_PENDING: how long a task may wait"},
      {"excluded node",
       [](v1::Job& j) { Group(j).mutable_node_selector()->add_exclude_nodes("N_1"); },
       "spec.groups[0].node_selector.exclude_nodes[0]", "must be DNS labels joined by dots"},
      {"user", [](v1::Job& j) { Spec(j).set_user("a b"); }, "spec.user",
       "must be at most 128 letters, digits"},
      {"deadline", [](v1::Job& j) { Spec(j).mutable_deadline()->set_nanos(-1); }, "spec.deadline",
       "must be a time in the years 1 to 9999"},
      {"strategy", [](v1::Job& j) { Spec(j).set_strategy(static_cast<v1::Strategy>(9)); },
       "spec.strategy", "9 is not a value of"},
      {"empty checkpoint", [](v1::Job& j) { Spec(j).mutable_checkpoint(); }, "spec.checkpoint",
       "requires at least one of signal, grace and interval"},
      {"checkpoint signal",
       [](v1::Job& j) { Spec(j).mutable_checkpoint()->set_signal("SIGKILLED"); },
       "spec.checkpoint.signal", "must be a signal name"},
      {"checkpoint interval",
       [](v1::Job& j) { Spec(j).mutable_checkpoint()->mutable_interval()->set_seconds(0); },
       "spec.checkpoint.interval", "must be 1ms.."},
      {"empty partition", [](v1::Job& j) { Group(j).mutable_partition(); },
       "spec.groups[0].partition.size", "must be at least 1, is 0"},
      {"partition that does not divide",
       [](v1::Job& j) {
         Group(j).set_replicas(6);
         Group(j).mutable_partition()->set_size(4);
       },
       "spec.groups[0].partition.size", "must divide replicas, which is 6; is 4"},
      {"more partitions than exist",
       [](v1::Job& j) {
         Group(j).set_replicas(4);
         Group(j).mutable_partition()->set_size(2);
         Group(j).mutable_partition()->set_min_partitions(3);
       },
       "spec.groups[0].partition.min_partitions", "must be 0..2 (replicas / size), is 3"},
      {"near an unknown group",
       [](v1::Job& j) { Group(j).mutable_affinity()->add_near_groups("nobody"); },
       "spec.groups[0].affinity.near_groups[0]", "the job has no group \"nobody\""},
      {"near itself", [](v1::Job& j) { Group(j).mutable_affinity()->add_near_groups("w"); },
       "spec.groups[0].affinity", "near_groups form a cycle: w -> w"},
      {"near and apart",
       [](v1::Job& j) {
         *Spec(j).add_groups() = Group(j);
         Spec(j).mutable_groups(1)->set_name("v");
         Group(j).mutable_affinity()->add_near_groups("v");
         Group(j).mutable_affinity()->add_apart_from_groups("v");
       },
       "spec.groups[0].affinity", "cannot be both near to and apart from another"},
      {"dependency without condition", [](v1::Job& j) { Spec(j).add_dependencies()->set_job("b"); },
       "spec.dependencies[0].condition", "required: AFTER_OK, AFTER_ANY or AFTER_NOT_OK"},
      {"size", [](v1::Job& j) { Group(j).add_command(std::string(300 << 10, 'x')); }, "spec",
       "at most 262144 bytes (limits.job_bytes), has "},
  };
  return cases;
}

bool Has(const std::vector<Violation>& violations, const std::string& field,
         const std::string& words) {
  return std::any_of(violations.begin(), violations.end(), [&](const Violation& v) {
    return v.field == field && v.description.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a plain job is valid") { CHECK(ValidateOne(SmallJob("train")).ok()); }

TEST_CASE("invalid jobs are refused with path and message") {
  std::vector<Case> all = InvalidCases();
  all.insert(all.end(), InvalidGroups().begin(), InvalidGroups().end());
  all.insert(all.end(), InvalidShares().begin(), InvalidShares().end());
  for (const Case& c : all) {
    DYNAMIC_SECTION(c.what) {
      v1::Job job = SmallJob("train");
      c.spoil(job);
      const absl::Status status = ValidateOne(job);
      INFO(status);
      CHECK(absl::IsInvalidArgument(status));
      CHECK(Has(ViolationsOf(status), "jobs[0]." + c.field, c.words));
    }
  }
}

TEST_CASE("all violations are reported at once, and invalid takes precedence over unimplemented") {
  v1::Job job = SmallJob("Train");
  job.mutable_spec()->mutable_topology()->set_highest_tier(1);
  job.mutable_spec()->mutable_groups(0)->set_replicas(0);
  job.mutable_spec()->mutable_groups(0)->set_preemptible(false);
  const absl::Status status = ValidateOne(job);
  CHECK(absl::IsInvalidArgument(status));
  const std::vector<Violation> violations = ViolationsOf(status);
  CHECK(violations.size() == 4);
  CHECK(Has(violations, "jobs[0].name", "DNS label"));
  CHECK(Has(violations, "jobs[0].spec.groups[0].replicas", "must be 1..10000, is 0"));
  CHECK(Has(violations, "jobs[0].spec.topology.mode", "required: HARD or SOFT"));
  CHECK(Has(violations, "jobs[0].spec.groups[0].preemptible", "is not built yet"));
}

TEST_CASE("images are names in a store, never paths out of it") {
  v1::Job job = SmallJob("train");
  const auto status_of = [&](const std::string& image) {
    job.mutable_spec()->mutable_groups(0)->set_image(image);
    return ValidateOne(job);
  };
  for (const char* good : {"torch", "team/torch:2.3", "r.example+x/a_b@sha256:00"})
    CHECK(status_of(good).ok());
  for (const char* bad : {"../torch", "a/../b", "/torch", "a//b", "a/", ".hidden", "a b", "a\n"})
    CHECK(absl::IsInvalidArgument(status_of(bad)));
  CHECK(absl::IsInvalidArgument(status_of(std::string(513, 'a'))));
}

TEST_CASE("min_partitions implies min_available and nothing else") {
  v1::Job job = SmallJob("train");
  v1::TaskGroup& group = *job.mutable_spec()->mutable_groups(0);
  group.set_replicas(8);
  group.mutable_partition()->set_size(2);
  CHECK(JobSpecFrom(job.spec(), {}).groups[0].min_available == 8);
  group.mutable_partition()->set_min_partitions(3);
  REQUIRE(ValidateOne(job).ok());
  CHECK(JobSpecFrom(job.spec(), {}).groups[0].min_available == 6);
  CHECK(JobSpecFrom(job.spec(), {}).min_available == 6);
  group.set_min_available(6);
  CHECK(ValidateOne(job).ok());
  group.set_min_available(4);
  const absl::Status status = ValidateOne(job);
  CHECK(absl::IsUnimplemented(status));
  CHECK(Has(ViolationsOf(status), "jobs[0].spec.groups[0].partition.min_partitions",
            "min_partitions other than min_available / size is not built yet"));
}

TEST_CASE("errors of a topology are reported by field") {
  using Topology = v1::TopologyConstraint;
  v1::Job job = SmallJob("train");
  v1::TaskGroup& group = *job.mutable_spec()->mutable_groups(0);
  Topology& topology = *job.mutable_spec()->mutable_topology();
  topology.set_mode(Topology::HARD);
  topology.set_highest_tier_name("rack");
  group.mutable_topology()->set_mode(Topology::SOFT);
  group.mutable_topology()->mutable_patience()->set_seconds(600);
  group.mutable_partition()->set_size(1);
  group.mutable_partition()->mutable_topology()->set_mode(Topology::HARD);
  group.mutable_partition()->mutable_topology()->set_highest_tier(1);
  (*group.mutable_communication())["all-reduce"] = "high";
  (*group.mutable_communication())["p2p"] = "7";
  group.mutable_affinity()->add_apart_from_groups(group.name());
  group.mutable_affinity()->set_tier(1);
  const absl::Status fine = ValidateOne(job);
  INFO(fine);
  REQUIRE(fine.ok());
  const JobSpec spec = JobSpecFrom(job.spec(), {});
  CHECK(spec.topology.mode == TopologyMode::kHard);
  CHECK(spec.topology.kind == "network");
  CHECK(spec.groups[0].topology.patience == absl::Minutes(10));
  CHECK(spec.groups[0].partition_topology.highest_tier == 1);
  CHECK(spec.groups[0].communication == 107);
  CHECK(spec.groups[0].affinity_tier == 1);

  topology.set_highest_tier(101);
  topology.set_kind("NV");
  topology.mutable_patience()->set_seconds(1);
  group.mutable_partition()->mutable_topology()->clear_highest_tier();
  (*group.mutable_communication())["p2p"] = "1001";
  (*group.mutable_communication())["a b"] = "low";
  group.mutable_affinity()->clear_apart_from_groups();
  group.mutable_topology()->set_mode(Topology::MODE_UNSPECIFIED);
  const std::vector<Violation> wrong = ViolationsOf(ValidateOne(job));
  const std::string at = "jobs[0].spec.groups[0].";
  CHECK(Has(wrong, "jobs[0].spec.topology.highest_tier", "must be 1..100"));
  CHECK(Has(wrong, "jobs[0].spec.topology.highest_tier_name", "set either highest_tier or"));
  CHECK(Has(wrong, "jobs[0].spec.topology.kind", "DNS label"));
  CHECK(Has(wrong, "jobs[0].spec.topology.patience", "only with SOFT"));
  CHECK(Has(wrong, at + "topology.mode", "required: HARD or SOFT"));
  CHECK(Has(wrong, at + "partition.topology.highest_tier", "HARD requires"));
  CHECK(Has(wrong, at + "communication[\"p2p\"]", "low, medium, high or a number of 1..1000"));
  CHECK(Has(wrong, at + "communication[\"a b\"]", "its key must be"));
  CHECK(Has(wrong, at + "affinity.tier", "requires near_groups or apart_from_groups"));
}

TEST_CASE("a job that does not set preemptible is preemptible by its priority") {
  v1::Job job = SmallJob("train");
  job.mutable_spec()->set_priority(10);
  CHECK_FALSE(JobSpecFrom(job.spec(), {}).preemptible);
  CHECK_FALSE(JobSpecFrom(job.spec(), {.preemptible_below_priority = 10}).preemptible);
  CHECK(JobSpecFrom(job.spec(), {.preemptible_below_priority = 11}).preemptible);
  job.mutable_spec()->set_preemptible(false);
  CHECK_FALSE(JobSpecFrom(job.spec(), {.preemptible_below_priority = 11}).preemptible);
  job.mutable_spec()->set_preemptible(true);
  CHECK(JobSpecFrom(job.spec(), {}).preemptible);
}

TEST_CASE("strategies, topology and the checkpoint interval reach the core") {
  v1::Job job = SmallJob("train");
  *job.mutable_spec()->add_groups() = job.spec().groups(0);
  job.mutable_spec()->mutable_groups(1)->set_name("v");
  job.mutable_spec()->set_strategy(v1::SPREAD);
  job.mutable_spec()->mutable_groups(0)->set_strategy(v1::COLOCATE);
  job.mutable_spec()->mutable_groups(1)->set_strategy(v1::BINPACK);
  job.mutable_spec()->mutable_groups(1)->mutable_affinity()->add_near_groups("w");
  job.mutable_spec()->mutable_groups(1)->mutable_affinity()->add_apart_from_groups("v");
  job.mutable_spec()->mutable_checkpoint()->mutable_interval()->set_seconds(30);
  REQUIRE(ValidateOne(job).ok());
  const JobSpec spec = JobSpecFrom(job.spec(), {});
  CHECK(spec.strategy == Strategy::kSpread);
  CHECK(spec.groups[0].strategy == Strategy::kColocate);
  CHECK(spec.groups[1].strategy == Strategy::kBinpack);
  CHECK(spec.groups[1].near_groups == std::vector<uint32_t>{0});
  CHECK(spec.groups[1].apart_from == std::vector<uint32_t>{1});
  CHECK(spec.checkpoint_interval == absl::Seconds(30));
}

}  // namespace berth::testing
