// No field of a job or queue may be accepted and then ignored. The tests walk the messages by
// reflection and change every field of a full sample, however deep. Each change must be refused as
// unimplemented with the field's path, or must change what the core gets (hot) or what the store
// keeps for launching and describing (cold). A new field without a decision fails here.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/submission.h"
#include "server/convert/cold.h"
#include "server/convert/job.h"
#include "server/convert/queue.h"
#include "server/validation/job.h"
#include "server/validation/queue.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Changed values that need a certain form, by full name of the field.
const std::map<std::string, std::string>& OtherTexts() {
  static const auto& texts = *new std::map<std::string, std::string>{
      {"berth.v1.JobSpec.kill_signal", "SIGINT"},
      {"berth.v1.CheckpointPolicy.signal", "SIGUSR2"},
      {"berth.v1.Watchdog.dump_signal", "SIGABRT"},
      {"berth.v1.TaskAffinity.near_groups", "c"},
      {"berth.v1.TaskAffinity.apart_from_groups", "c"},
      {"berth.v1.TaskGroup.working_dir", "/elsewhere"},
      {"berth.v1.TaskGroup.registry_auth", "/home/ann/auth.json"},
      {"berth.v1.GroupDependency.group", "c"},
      {"berth.v1.JobSpec.priority_class", "high"},
      {"berth.v1.EnvVar.name", "OTHER"},
      {"berth.v1.TopologyConstraint.highest_tier_name", "rack"},
  };
  return texts;
}
const std::map<std::string, int>& OtherNumbers() {
  static const auto& numbers = *new std::map<std::string, int>{
      {"berth.v1.LifecyclePolicy.event", v1::LifecyclePolicy::DEVICE_UNHEALTHY},
      {"berth.v1.LifecyclePolicy.action", v1::LifecyclePolicy::RESTART_GROUP},
      {"berth.v1.JobSpec.strategy", v1::SPREAD},
      {"berth.v1.JobSpec.preemption_policy", v1::NEVER},
      {"berth.v1.JobSpec.preempt_mode", v1::PAUSE},
      {"berth.v1.TaskGroup.strategy", v1::SPREAD},
      {"berth.v1.QueueSpec.strategy", v1::SPREAD},
      {"berth.v1.QueueSpec.order", v1::QueueSpec::FIFO_STRICT},
      {"berth.v1.QueueSpec.user_fairness", v1::QueueSpec::DRF},
      {"berth.v1.TaskGroup.min_available", 4},
      {"berth.v1.TaskGroup.priority", -1},
      {"berth.v1.Partition.size", 1},
      {"berth.v1.Partition.min_partitions", 2},
      {"berth.v1.JobSpec.min_available", 9},
  };
  return numbers;
}

void FillTopology(v1::TopologyConstraint& topology) {
  topology.set_mode(v1::TopologyConstraint::HARD);
  topology.set_highest_tier(2);
}

void FillGroup(v1::TaskGroup& group, const std::string& name) {
  group.set_name(name);
  group.set_replicas(4);
  group.set_min_available(2);
  group.mutable_resources()->set_cpu_millis(1000);
  group.mutable_resources()->set_memory_bytes(1 << 20);
  v1::DeviceRequest* device = group.mutable_resources()->add_devices();
  device->set_kind("gpu");
  device->set_count(2);
  device->add_model("h100");
  device->add_allow_uuids("u1");
  device->add_deny_uuids("u2");
  device->add_deny_models("a100");
  (*group.mutable_resources()->mutable_extended())["license"] = 1;
  group.add_command("train");
  group.add_args("--fast");
  group.set_image("registry.example/team/torch:2.3");
  v1::EnvVar* variable = group.add_env();
  variable->set_name("A");
  variable->set_value("1");
  group.set_working_dir("/work");
  v1::LifecyclePolicy* policy = group.add_policies();
  policy->set_event(v1::LifecyclePolicy::TASK_FAILED);
  policy->add_exit_codes(137);
  policy->set_action(v1::LifecyclePolicy::RESTART_TASK);
  (*group.mutable_node_selector()->mutable_match_labels())["zone"] = "a";
  group.mutable_node_selector()->add_exclude_nodes("n1");
  v1::Toleration* toleration = group.add_tolerations();
  toleration->set_key("spot");
  toleration->set_value("yes");
  FillTopology(*group.mutable_topology());
  (*group.mutable_communication())["all-reduce"] = "high";
}

// Every implemented field is set.
v1::Job FullJob() {
  v1::Job job = SmallJob("full");
  v1::JobSpec& spec = *job.mutable_spec();
  spec.clear_groups();
  FillGroup(*spec.add_groups(), "a");
  FillGroup(*spec.add_groups(), "b");
  FillGroup(*spec.add_groups(), "c");
  v1::GroupDependency* wait = spec.mutable_groups(0)->add_depends_on();
  wait->set_group("b");
  wait->set_condition(v1::GroupDependency::RUNNING);
  *spec.add_policies() = spec.groups(0).policies(0);
  spec.set_min_available(8);
  v1::JobDependency* dependency = spec.add_dependencies();
  dependency->set_job("earlier");
  dependency->set_condition(v1::JobDependency::AFTER_OK);
  spec.set_on_node_loss(v1::KEEP);
  spec.set_preemptible(true);
  FillTopology(*spec.mutable_topology());
  spec.mutable_groups(0)->mutable_partition()->set_size(2);
  FillTopology(*spec.mutable_groups(0)->mutable_partition()->mutable_topology());
  spec.mutable_groups(0)->mutable_affinity()->add_near_groups("b");
  spec.mutable_groups(0)->mutable_affinity()->add_apart_from_groups("a");
  spec.mutable_groups(0)->set_priority(0);
  v1::JobAffinityTerm* near = spec.mutable_affinity()->add_near();
  (*near->mutable_match_labels())["app"] = "cache";
  *spec.mutable_affinity()->add_apart_from() = *near;
  spec.mutable_checkpoint()->set_signal("SIGUSR1");
  spec.mutable_checkpoint()->mutable_grace()->set_seconds(60);
  spec.mutable_checkpoint()->mutable_interval()->set_seconds(600);
  spec.mutable_checkpoint()->add_before(v1::CheckpointPolicy::DRAIN);
  spec.mutable_checkpoint()->add_before(v1::CheckpointPolicy::WALLTIME);
  spec.mutable_checkpoint()->add_saved_exit_codes(85);
  spec.mutable_watchdog()->mutable_timeout()->set_seconds(600);
  spec.mutable_watchdog()->mutable_start()->set_seconds(1800);
  spec.mutable_watchdog()->set_dump_signal("SIGQUIT");
  spec.mutable_watchdog()->mutable_dump_wait()->set_seconds(20);
  spec.mutable_interactive()->mutable_idle()->set_seconds(1800);
  spec.mutable_array()->set_size(2);
  spec.mutable_array()->set_parallelism(1);
  spec.mutable_array()->set_max_failed(1);
  spec.mutable_deadline()->set_seconds(2'000'000'000);
  spec.set_user("ann");
  (*spec.mutable_labels())["team"] = "x";
  (*spec.mutable_annotations())["note"] = "y";
  return job;
}

void ChangeScalar(Message& message, const FieldDescriptor* field, int index) {
  const Reflection* r = message.GetReflection();
  const bool repeated = index >= 0;
  const std::string name(field->full_name());
  const auto number = OtherNumbers().find(name);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const int32_t old =
          repeated ? r->GetRepeatedInt32(message, field, index) : r->GetInt32(message, field);
      const int32_t other = number != OtherNumbers().end() ? number->second : old + 1;
      repeated ? r->SetRepeatedInt32(&message, field, index, other)
               : r->SetInt32(&message, field, other);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64:
      return r->SetInt64(&message, field, r->GetInt64(message, field) + 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r->SetDouble(&message, field, 0.5);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->SetBool(&message, field, !r->GetBool(message, field));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int old = repeated ? r->GetRepeatedEnumValue(message, field, index)
                               : r->GetEnumValue(message, field);
      const int other = number != OtherNumbers().end() ? number->second : old + 1;
      repeated ? r->SetRepeatedEnumValue(&message, field, index, other)
               : r->SetEnumValue(&message, field, other);
      return;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const auto text = OtherTexts().find(name);
      const std::string old =
          repeated ? r->GetRepeatedString(message, field, index) : r->GetString(message, field);
      const std::string other = text != OtherTexts().end() ? text->second : old + "x";
      repeated ? r->SetRepeatedString(&message, field, index, other)
               : r->SetString(&message, field, other);
      return;
    }
    default:
      FAIL("no way to change " << name);
  }
}

// A message that is one value, not a group of fields.
bool IsValue(const FieldDescriptor* field) {
  return field->message_type()->full_name() == "google.protobuf.Duration" ||
         field->message_type()->full_name() == "google.protobuf.Timestamp";
}

// A field below some message: the path to the message that holds it, and the field.
struct Step {
  const FieldDescriptor* field;
  int index;  // -1: not repeated
};
struct Leaf {
  std::string path;
  std::vector<Step> way;
  const FieldDescriptor* field;
};

void Collect(const Message& message, const Leaf& above, std::vector<Leaf>& out);

void CollectField(const Message& message, const FieldDescriptor* field, const Leaf& above,
                  std::vector<Leaf>& out) {
  if (field->name() == "escalation") return;  // excludes policies: validation_gang_test.cc
  if (field->name() == "volumes") return;     // validation_volumes_test.cc
  // validation_containers_test.cc
  if (field->name() == "containers" || field->name() == "host_names") return;
  const Reflection* r = message.GetReflection();
  Leaf leaf = above;
  leaf.path += "." + field->name();
  leaf.field = field;
  const bool message_field =
      !field->is_map() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !IsValue(field);
  if (field->is_repeated() && !field->is_map()) {
    INFO(leaf.path);
    REQUIRE(r->FieldSize(message, field) > 0);  // the sample must contain it
  }
  if (message_field && field->is_repeated()) {
    leaf.path += "[0]";
    leaf.way.push_back({field, 0});
    Collect(r->GetRepeatedMessage(message, field, 0), leaf, out);
  } else if (message_field && r->HasField(message, field)) {
    leaf.way.push_back({field, -1});
    Collect(r->GetMessage(message, field), leaf, out);
  } else {  // a value, or a message that is refused as a whole
    out.push_back(leaf);
  }
}

void Collect(const Message& message, const Leaf& above, std::vector<Leaf>& out) {
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    CollectField(message, descriptor->field(i), above, out);
  }
}

std::vector<Leaf> LeavesOf(const Message& message, const std::string& path) {
  std::vector<Leaf> leaves;
  Collect(message, {path, {}, nullptr}, leaves);
  return leaves;
}

// Changes only this field.
void Change(Message* message, const Leaf& leaf) {
  for (const Step& step : leaf.way) {
    const Reflection* r = message->GetReflection();
    message = step.index >= 0 ? r->MutableRepeatedMessage(message, step.field, step.index)
                              : r->MutableMessage(message, step.field);
  }
  const FieldDescriptor* field = leaf.field;
  const Reflection* r = message->GetReflection();
  if (field->is_map()) {  // one more entry
    Message* entry = r->AddMessage(message, field);
    entry->GetReflection()->SetString(entry, field->message_type()->map_key(), "more");
    ChangeScalar(*entry, field->message_type()->map_value(), -1);
    if (field->full_name() == "berth.v1.TaskGroup.communication") {
      entry->GetReflection()->SetString(entry, field->message_type()->map_value(), "7");
    }
  } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    ChangeScalar(*message, field, field->is_repeated() ? 0 : -1);
    // A device has only one of share, cores and profile.
    if (auto* device = dynamic_cast<v1::DeviceRequest*>(message); device != nullptr) {
      const v1::DeviceRequest copy = *device;
      if (field->name() == "share" || field->name() == "cores" || field->name() == "mig") {
        device->Clear();
        device->set_kind(copy.kind());
        device->set_count(1);
      }
      if (field->name() == "share") device->set_share(0.25);
      if (field->name() == "cores") device->set_cores(25);
      if (field->name() == "mig") device->set_mig("2g.20gb");
      if (field->name() == "min_compute_capability") device->set_min_compute_capability("8.0");
      if (field->name() == "oversubscribe") {
        device->set_count(0);
        device->set_share(0.25);
      }
    }
    // A device strategy applies to shares.
    auto* group = dynamic_cast<v1::TaskGroup*>(message);
    if (group != nullptr && field->name() == "device_strategy") {
      v1::DeviceRequest* part = group->mutable_resources()->add_devices();
      part->set_kind("npu");
      part->set_share(0.5);
    }
    // A coordinator is one task.
    if (group != nullptr && field->name() == "role") {
      group->set_role(v1::COORDINATOR);
      group->set_replicas(1);
      group->set_min_available(1);
      group->clear_partition();
    }
    if (group != nullptr && field->name() == "spares") {
      group->set_spares(1);
      group->clear_partition();
      group->clear_spread();
      group->clear_affinity();
      group->clear_topology();
    }
    if (group != nullptr && field->name() == "membership") group->set_membership(v1::RENDEZVOUS);
    // A tier is set by name or by number.
    auto* topology = dynamic_cast<v1::TopologyConstraint*>(message);
    if (topology != nullptr && field->name() == "highest_tier_name") topology->clear_highest_tier();
    // Other events must not have exit codes.
    if (auto* policy = dynamic_cast<v1::LifecyclePolicy*>(message); policy != nullptr) {
      if (policy->event() != v1::LifecyclePolicy::TASK_FAILED) policy->clear_exit_codes();
    }
  } else {
    Message* value = r->MutableMessage(message, field);
    auto* topology = dynamic_cast<v1::TopologyConstraint*>(message);  // patience needs a soft one
    if (topology != nullptr) topology->set_mode(v1::TopologyConstraint::SOFT);
    if (!IsValue(field)) return;
    value->GetReflection()->SetInt64(value, value->GetDescriptor()->FindFieldByName("seconds"), 7);
  }
}

// The job as the core gets it from a submission, with dependencies by name.
struct Converted {
  JobSpec hot;
  std::vector<std::pair<std::string, DependencyCondition>> dependencies;
  std::string queue, priority_class;  // looked up in the state
  std::string cold;
  bool operator==(const Converted&) const = default;
};

Converted Convert(const v1::Job& job) {
  v1::JobSpec spec = job.spec();
  ExpandShorthand(&spec);
  Converted result{
      JobSpecFrom(spec, {}), {}, spec.queue(), spec.priority_class(), EncodeCold(spec)};
  for (const auto& dependency : job.spec().dependencies()) {
    result.dependencies.emplace_back(dependency.job(), ConditionFrom(dependency.condition()));
  }
  return result;
}

absl::Status Validate(const v1::Job& job) {
  Findings findings;
  const FieldPath root;
  CheckJob({root, "jobs", 0}, job, job.spec().ByteSizeLong(), DefaultLimits(), findings);
  return findings.ToStatus();
}

}  // namespace

TEST_CASE("every field of a job is hot, cold or refused by name") {
  const v1::Job full = FullJob();
  REQUIRE(Validate(full).ok());
  const Converted before = Convert(full);
  int hot = 0, cold = 0, refused = 0;
  for (const Leaf& leaf : LeavesOf(full.spec(), "jobs[0].spec")) {
    if (leaf.field->name() == "spare_of") continue;              // of no effect without its role
    if (leaf.field->name() == "from_file") continue;             // instead of a value
    if (leaf.path == "jobs[0].spec.interactive.idle") continue;  // other values are too short
    if (leaf.path == "jobs[0].spec.array.indexes") continue;     // instead of a size
    if (leaf.path == "jobs[0].spec.schedule") continue;          // needs its times
    if (leaf.path.find("jobs[0].spec.pause") == 0) continue;     // only of a single task
    if (leaf.field->name() == "copies_of") continue;  // short for an affinity, and refused with one
    v1::Job job = full;
    Change(job.mutable_spec(), leaf);
    const absl::Status status = Validate(job);
    INFO(leaf.path << ": " << status);
    // Other fields refer to these two: affinity to the name, partitions to the number.
    const bool others_too = leaf.path == "jobs[0].spec.groups[0].name" ||
                            leaf.path == "jobs[0].spec.groups[0].replicas";
    if (others_too && absl::IsInvalidArgument(status)) continue;
    if (!status.ok()) {
      CHECK(absl::IsUnimplemented(status));
      CHECK(status.message().find(leaf.path) == 0);
      ++refused;
      continue;
    }
    const Converted after = Convert(job);
    CHECK(!(after == before));
    after.cold != before.cold ? ++cold : ++hot;
  }
  CHECK(hot > 40);
  CHECK(cold >= 7);
  CHECK(refused >= 2);  // not implemented yet
}

TEST_CASE("every field of a queue is hot or refused by name") {
  v1::CreateQueueRequest full;
  full.mutable_queue()->set_name("q");
  v1::QueueSpec& spec = *full.mutable_queue()->mutable_spec();
  spec.set_parent("p");
  spec.mutable_limit()->set_cpu_millis(9000);
  spec.mutable_deserved()->set_cpu_millis(2000);
  spec.mutable_guarantee()->set_cpu_millis(1000);
  spec.mutable_defaults()->set_cpu_millis(500);
  spec.set_weight(1);
  spec.set_reclaimable(true);
  spec.mutable_slice()->set_seconds(300);
  REQUIRE(ValidateCreateQueue(full).ok());
  const QueueSpec before = QueueSpecFrom(full.queue());
  for (const Leaf& leaf : LeavesOf(spec, "queue.spec")) {
    if (leaf.path == "queue.spec.slice") continue;  // other values are too short
    v1::CreateQueueRequest request = full;
    Change(request.mutable_queue()->mutable_spec(), leaf);
    const absl::Status status = ValidateCreateQueue(request);
    INFO(leaf.path << ": " << status);
    if (!status.ok()) {
      CHECK(absl::IsUnimplemented(status));
      CHECK(status.message().find(leaf.path) == 0);
    } else {  // the parent needs the state: see QueueService
      CHECK((!(QueueSpecFrom(request.queue()) == before) || leaf.path == "queue.spec.parent"));
    }
  }
}

TEST_CASE("the cold part and the hot part make up the spec") {
  const v1::Job full = FullJob();
  v1::JobSpec cold;
  REQUIRE(ParseCold(EncodeCold(full.spec()), &cold).ok());
  CHECK(cold.groups_size() == 3);
  CHECK(cold.groups(0).command(0) == "train");
  CHECK(cold.groups(0).env(0).name() == "A");
  CHECK(cold.groups(0).replicas() == 0);  // hot
  CHECK(cold.queue().empty());
  CHECK(cold.annotations().at("note") == "y");
  CHECK(cold.checkpoint().signal() == "SIGUSR1");
  CHECK(cold.checkpoint().grace().seconds() == 60);
  CHECK_FALSE(cold.checkpoint().has_interval());  // hot
  CHECK(absl::IsDataLoss(ParseCold("\xff", &cold)));
  v1::JobSpec other;
  CHECK(absl::IsDataLoss(MergeCold(EncodeCold(full.spec()), &other)));
}

}  // namespace berth::testing
