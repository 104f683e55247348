// Job specs. Encoding and decoding them dominate the cost of submitting and of restarting. Both
// reuse the memory of a message that is kept per thread.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(PolicyEvent::kTimeout) == pb::EVENT_TIMEOUT);
static_assert(static_cast<int>(PolicyEvent::kTaskEvicted) == pb::EVENT_TASK_EVICTED);
static_assert(static_cast<int>(PolicyEvent::kTaskPending) == pb::EVENT_TASK_PENDING);
static_assert(static_cast<int>(PolicyEvent::kDeviceUnhealthy) == pb::EVENT_DEVICE_UNHEALTHY);
static_assert(static_cast<int>(PolicyEvent::kTaskHung) == pb::EVENT_TASK_HUNG);
static_assert(static_cast<int>(PolicyEvent::kTaskCompleted) == pb::EVENT_TASK_COMPLETED);
static_assert(static_cast<int>(PolicyEvent::kNodeLost) == pb::EVENT_NODE_LOST);
static_assert(static_cast<int>(PolicyEvent::kTaskFailed) == pb::EVENT_TASK_FAILED);
static_assert(static_cast<int>(PolicyAction::kRestartTask) == pb::ACTION_RESTART_TASK);
static_assert(static_cast<int>(PolicyAction::kRestartGroup) == pb::ACTION_RESTART_GROUP);
static_assert(static_cast<int>(PolicyAction::kRestartJob) == pb::ACTION_RESTART_JOB);
static_assert(static_cast<int>(PolicyAction::kAbort) == pb::ACTION_ABORT);
static_assert(static_cast<int>(PolicyAction::kComplete) == pb::ACTION_COMPLETE);
static_assert(static_cast<int>(PolicyAction::kIgnore) == pb::ACTION_IGNORE);
static_assert(static_cast<int>(PolicyAction::kRestartPartition) == pb::ACTION_RESTART_PARTITION);
static_assert(static_cast<int>(DependencyCondition::kAfterAny) == pb::AFTER_ANY);
static_assert(static_cast<int>(DependencyCondition::kAfterNotOk) == pb::AFTER_NOT_OK);
static_assert(static_cast<int>(GroupCondition::kCompleted) == pb::GROUP_COMPLETED);
static_assert(static_cast<int>(GangMembership::kRigid) == pb::RIGID);
static_assert(static_cast<int>(GangMembership::kRendezvous) == pb::RENDEZVOUS);
static_assert(static_cast<int>(GangMembership::kIndependent) == pb::INDEPENDENT);
static_assert(static_cast<int>(NodeLossPolicy::kKeep) == pb::KEEP);
static_assert(static_cast<int>(NodeLossPolicy::kReplaceNow) == pb::REPLACE_NOW);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<JobSpec> == 41);
static_assert(kFields<GroupSpec> == 23);
static_assert(kFields<TaskShape> == 7);
static_assert(kFields<DeviceRequest> == 13);
static_assert(kFields<Toleration> == 2);
static_assert(kFields<LifecyclePolicy> == 6);
static_assert(kFields<GroupDependency> == 2);
static_assert(kFields<Spread> == 2);
static_assert(kFields<JobDependency> == 2);
static_assert(kFields<AffinityTerm> == 4);
static_assert(kFields<RunPrediction> == 4);
static_assert(kFields<LinePlace> == 2);
static_assert(kFields<StoredJob> == 6);

using google::protobuf::RepeatedPtrField;

void SetDeviceRequest(const DeviceRequest& request, pb::DeviceRequest* out) {
  out->set_kind(request.kind);
  out->set_count(request.count);
  out->set_share(request.share);
  out->set_by_memory(request.by_memory);
  out->set_oversubscribe(request.oversubscribe);
  out->set_min_memory_bytes(request.min_memory_bytes);
  out->set_min_compute_capability(request.min_compute_capability);
  SetStrings(request.models, out->mutable_models());
  SetStrings(request.deny_models, out->mutable_deny_models());
  SetStrings(request.allow_uuids, out->mutable_allow_uuids());
  SetStrings(request.deny_uuids, out->mutable_deny_uuids());
  out->set_min_link(static_cast<pb::LinkClass>(request.min_link));
  out->set_min_bandwidth_gbps(request.min_bandwidth_gbps);
}

DeviceRequest GetDeviceRequest(const pb::DeviceRequest& message, Reader& reader) {
  return {.kind = message.kind(),
          .count = message.count(),
          .share = message.share(),
          .by_memory = message.by_memory(),
          .oversubscribe = message.oversubscribe(),
          .min_memory_bytes = message.min_memory_bytes(),
          .min_compute_capability = message.min_compute_capability(),
          .models = GetStrings(message.models()),
          .deny_models = GetStrings(message.deny_models()),
          .allow_uuids = GetStrings(message.allow_uuids()),
          .deny_uuids = GetStrings(message.deny_uuids()),
          .min_link = reader.Enum<LinkClass>(message.min_link(),
                                             pb::LinkClass_IsValid(message.min_link()), "min_link"),
          .min_bandwidth_gbps = message.min_bandwidth_gbps()};
}

void SetShape(const TaskShape& shape, pb::TaskShape* out) {
  out->set_cpu_millis(shape.cpu_millis);
  out->set_memory_bytes(shape.memory_bytes);
  for (const DeviceRequest& request : shape.devices) SetDeviceRequest(request, out->add_devices());
  SetAmounts(shape.extended, out->mutable_extended());
  SetLabels(shape.match_labels, out->mutable_match_labels());
  SetStrings(shape.exclude_nodes, out->mutable_exclude_nodes());
  for (const Toleration& toleration : shape.tolerations) {
    pb::Toleration* message = out->add_tolerations();
    message->set_key(toleration.key);
    message->set_value(toleration.value);
  }
}

TaskShape GetShape(const pb::TaskShape& message, Reader& reader) {
  TaskShape shape{.cpu_millis = message.cpu_millis(),
                  .memory_bytes = message.memory_bytes(),
                  .devices = {},
                  .extended = GetAmounts(message.extended()),
                  .match_labels = GetLabels(message.match_labels()),
                  .exclude_nodes = GetStrings(message.exclude_nodes()),
                  .tolerations = {}};
  shape.devices.reserve(static_cast<size_t>(message.devices_size()));
  for (const pb::DeviceRequest& request : message.devices()) {
    shape.devices.push_back(GetDeviceRequest(request, reader));
  }
  for (const pb::Toleration& toleration : message.tolerations()) {
    shape.tolerations.push_back({.key = toleration.key(), .value = toleration.value()});
  }
  return shape;
}

void SetPolicies(const std::vector<LifecyclePolicy>& policies,
                 RepeatedPtrField<pb::LifecyclePolicy>* out) {
  for (const LifecyclePolicy& policy : policies) {
    pb::LifecyclePolicy* message = out->Add();
    message->set_event(static_cast<pb::PolicyEvent>(policy.event));
    message->mutable_exit_codes()->Add(policy.exit_codes.begin(), policy.exit_codes.end());
    message->set_action(static_cast<pb::PolicyAction>(policy.action));
    if (policy.after != absl::ZeroDuration()) SetDuration(policy.after, message->mutable_after());
    message->set_rung(policy.rung);
    if (policy.within != absl::ZeroDuration()) {
      SetDuration(policy.within, message->mutable_within());
    }
  }
}

std::vector<LifecyclePolicy> GetPolicies(const RepeatedPtrField<pb::LifecyclePolicy>& messages,
                                         Reader& reader) {
  std::vector<LifecyclePolicy> policies;
  for (const pb::LifecyclePolicy& message : messages) {
    policies.push_back(
        {.event = reader.Enum<PolicyEvent>(
             message.event(), pb::PolicyEvent_IsValid(message.event()), "policy event"),
         .exit_codes = {message.exit_codes().begin(), message.exit_codes().end()},
         .action = GetAction(message.action(), reader),
         .after = reader.GetDuration(message.has_after(), message.after(), absl::ZeroDuration(),
                                     "after"),
         .rung = message.rung(),
         .within = reader.GetDuration(message.has_within(), message.within(), absl::ZeroDuration(),
                                      "within")});
  }
  return policies;
}

void SetGroup(const GroupSpec& group, pb::GroupSpec* out) {
  out->set_name(group.name);
  out->set_replicas(group.replicas);
  out->set_min_available(group.min_available);
  SetShape(group.shape, out->mutable_shape());
  SetPolicies(group.policies, out->mutable_policies());
  for (const GroupDependency& dependency : group.depends_on) {
    pb::GroupDependency* message = out->add_depends_on();
    message->set_group(dependency.group);
    message->set_condition(static_cast<pb::GroupCondition>(dependency.condition));
  }
  out->set_partition_size(group.partition_size);
  out->set_strategy(static_cast<pb::Strategy>(group.strategy));
  out->mutable_near_groups()->Add(group.near_groups.begin(), group.near_groups.end());
  out->mutable_apart_from()->Add(group.apart_from.begin(), group.apart_from.end());
  out->set_affinity_tier(group.affinity_tier);
  out->set_communication(group.communication);
  out->set_has_image(group.has_image);
  out->set_image(group.image.value);
  out->set_preemptible(group.preemptible);
  out->set_device_strategy(static_cast<pb::Strategy>(group.device_strategy));
  out->set_spread_tier(group.spread.tier);
  out->set_max_skew(group.spread.max_skew);
  if (group.priority.has_value()) out->set_priority(*group.priority);
  out->set_membership(static_cast<pb::Membership>(group.membership));
  out->set_coordinator(group.coordinator);
  if (group.spare_of.has_value()) out->set_spare_of(*group.spare_of);
  const TopologyConstraint none;
  if (!(group.topology == none)) SetTopology(group.topology, out->mutable_topology());
  if (!(group.partition_topology == none)) {
    SetTopology(group.partition_topology, out->mutable_partition_topology());
  }
}

GroupSpec GetGroup(const pb::GroupSpec& message, Reader& reader) {
  GroupSpec group{
      .name = message.name(),
      .replicas = message.replicas(),
      .min_available = message.min_available(),
      .shape = GetShape(message.shape(), reader),
      .policies = GetPolicies(message.policies(), reader),
      .depends_on = {},
      .partition_size = message.partition_size(),
      .strategy = GetStrategy(message.strategy(), reader),
      .near_groups = {message.near_groups().begin(), message.near_groups().end()},
      .apart_from = {message.apart_from().begin(), message.apart_from().end()},
      .affinity_tier = message.affinity_tier(),
      .topology = {},
      .partition_topology = {},
      .communication = message.communication(),
      .has_image = message.has_image(),
      .image = ImageId{message.image()},
      .preemptible = message.preemptible(),
      .device_strategy = GetStrategy(message.device_strategy(), reader),
      .spread = {.tier = message.spread_tier(), .max_skew = message.max_skew()},
      .priority = {},
      .membership = reader.Enum<GangMembership>(
          message.membership(), pb::Membership_IsValid(message.membership()), "membership"),
      .coordinator = message.coordinator(),
      .spare_of = {}};
  if (message.has_spare_of()) group.spare_of = message.spare_of();
  if (message.has_priority()) group.priority = message.priority();
  if (message.has_topology()) group.topology = GetTopology(message.topology(), reader);
  if (message.has_partition_topology()) {
    group.partition_topology = GetTopology(message.partition_topology(), reader);
  }
  for (const pb::GroupDependency& dependency : message.depends_on()) {
    group.depends_on.push_back(
        {.group = dependency.group(),
         .condition = reader.Enum<GroupCondition>(
             dependency.condition(), pb::GroupCondition_IsValid(dependency.condition()),
             "group condition")});
  }
  if (group.replicas < 0) reader.Refuse("replicas", group.replicas);
  return group;
}

std::vector<JobDependency> GetDependencies(const RepeatedPtrField<pb::JobDependency>& messages,
                                           Reader& reader) {
  std::vector<JobDependency> dependencies;
  for (const pb::JobDependency& message : messages) {
    dependencies.push_back(
        {.job = JobId{message.job()},
         .condition = reader.Enum<DependencyCondition>(
             message.condition(), pb::DependencyCondition_IsValid(message.condition()),
             "dependency condition")});
  }
  return dependencies;
}

void SetAffinity(const AffinityTerm& term, pb::AffinityTerm* out) {
  out->set_apart(term.apart);
  SetLabels({term.labels.begin(), term.labels.end()}, out->mutable_labels());
  out->set_tier(term.tier);
  out->set_all_queues(term.all_queues);
}

AffinityTerm GetAffinity(const pb::AffinityTerm& message) {
  const auto labels = GetLabels(message.labels());
  return {.apart = message.apart(),
          .labels = {labels.begin(), labels.end()},
          .tier = message.tier(),
          .all_queues = message.all_queues()};
}

void SetTimes(const JobSpec& spec, pb::JobSpec* out) {
  const Duration none = absl::ZeroDuration();
  const Duration forever = absl::InfiniteDuration();
  if (spec.walltime != forever) SetDuration(spec.walltime, out->mutable_walltime());
  if (spec.retry_backoff != none) SetDuration(spec.retry_backoff, out->mutable_retry_backoff());
  if (spec.prepare_timeout != none) {
    SetDuration(spec.prepare_timeout, out->mutable_prepare_timeout());
  }
  if (spec.kill_grace != none) SetDuration(spec.kill_grace, out->mutable_kill_grace());
  if (spec.ttl_after_finished != forever) {
    SetDuration(spec.ttl_after_finished, out->mutable_ttl_after_finished());
  }
  if (spec.start_after != absl::InfinitePast()) {
    SetTime(spec.start_after, out->mutable_start_after());
  }
  if (spec.checkpoint_interval != forever) {
    SetDuration(spec.checkpoint_interval, out->mutable_checkpoint_interval());
  }
  if (spec.deadline != absl::InfiniteFuture()) SetTime(spec.deadline, out->mutable_deadline());
  if (spec.walltime_notice != none) {
    SetDuration(spec.walltime_notice, out->mutable_walltime_notice());
  }
  if (spec.run_limit != forever) SetDuration(spec.run_limit, out->mutable_run_limit());
  if (spec.watchdog != forever) SetDuration(spec.watchdog, out->mutable_watchdog());
  if (spec.dump_wait != none) SetDuration(spec.dump_wait, out->mutable_dump_wait());
}

void GetTimes(const pb::JobSpec& m, Reader& reader, JobSpec& spec) {
  const Duration none = absl::ZeroDuration();
  const Duration forever = absl::InfiniteDuration();
  spec.walltime = reader.GetDuration(m.has_walltime(), m.walltime(), forever, "walltime");
  spec.retry_backoff =
      reader.GetDuration(m.has_retry_backoff(), m.retry_backoff(), none, "retry_backoff");
  spec.prepare_timeout =
      reader.GetDuration(m.has_prepare_timeout(), m.prepare_timeout(), none, "prepare_timeout");
  spec.kill_grace = reader.GetDuration(m.has_kill_grace(), m.kill_grace(), none, "kill_grace");
  spec.ttl_after_finished = reader.GetDuration(m.has_ttl_after_finished(), m.ttl_after_finished(),
                                               forever, "ttl_after_finished");
  spec.start_after =
      reader.GetTime(m.has_start_after(), m.start_after(), absl::InfinitePast(), "start_after");
  spec.checkpoint_interval = reader.GetDuration(
      m.has_checkpoint_interval(), m.checkpoint_interval(), forever, "checkpoint_interval");
  spec.deadline =
      reader.GetTime(m.has_deadline(), m.deadline(), absl::InfiniteFuture(), "deadline");
  spec.walltime_notice =
      reader.GetDuration(m.has_walltime_notice(), m.walltime_notice(), none, "walltime_notice");
  spec.run_limit = reader.GetDuration(m.has_run_limit(), m.run_limit(), forever, "run_limit");
  spec.watchdog = reader.GetDuration(m.has_watchdog(), m.watchdog(), forever, "watchdog");
  spec.dump_wait = reader.GetDuration(m.has_dump_wait(), m.dump_wait(), none, "dump_wait");
}

}  // namespace

PolicyAction GetAction(pb::PolicyAction action, Reader& reader) {
  return reader.Enum<PolicyAction>(action, pb::PolicyAction_IsValid(action), "policy action");
}

void SetJobSpec(const JobSpec& spec, pb::JobSpec* out) {
  out->set_name(spec.name);
  out->set_queue(spec.queue.value);
  out->set_priority(spec.priority);
  out->set_min_available(spec.min_available);
  for (const GroupSpec& group : spec.groups) SetGroup(group, out->add_groups());
  SetPolicies(spec.policies, out->mutable_policies());
  for (const JobDependency& dependency : spec.dependencies) {
    pb::JobDependency* message = out->add_dependencies();
    message->set_job(dependency.job.value);
    message->set_condition(static_cast<pb::DependencyCondition>(dependency.condition));
  }
  SetLabels(spec.labels, out->mutable_labels());
  out->set_max_retries(spec.max_retries);
  out->set_on_node_loss(static_cast<pb::NodeLossPolicy>(spec.on_node_loss));
  out->set_suspended(spec.suspended);
  out->set_preemptible(spec.preemptible);
  out->set_never_preempts(!spec.preempts);
  out->set_preempt_mode(static_cast<pb::PreemptMode>(spec.preempt_mode));
  out->set_strategy(static_cast<pb::Strategy>(spec.strategy));
  out->set_device_strategy(static_cast<pb::Strategy>(spec.device_strategy));
  out->set_user(spec.user);
  out->set_owner(spec.owner);
  out->set_priority_class(spec.priority_class);
  if (!(spec.topology == TopologyConstraint{})) SetTopology(spec.topology, out->mutable_topology());
  for (const AffinityTerm& term : spec.affinity) SetAffinity(term, out->add_affinity());
  out->mutable_saved_exit_codes()->Add(spec.saved_exit_codes.begin(), spec.saved_exit_codes.end());
  out->set_saves_before_drain(spec.saves_before_drain);
  out->set_may_migrate(spec.may_migrate);
  out->set_suspends_idle(spec.suspends_idle);
  out->set_checkpoints_devices(spec.checkpoints_devices);
  out->set_min_success(spec.min_success);
  if (spec.series) SetSeries(*spec.series, out->mutable_series());
  if (spec.member) {
    out->mutable_member()->set_series(spec.member->series.value);
    out->mutable_member()->set_index(spec.member->index);
  }
  SetTimes(spec, out);
}

JobSpec GetJobSpec(const pb::JobSpec& message, Reader& reader) {
  JobSpec spec;
  spec.name = message.name();
  spec.queue = QueueId{message.queue()};
  spec.priority = message.priority();
  spec.min_available = message.min_available();
  spec.groups.reserve(static_cast<size_t>(message.groups_size()));
  for (const pb::GroupSpec& group : message.groups())
    spec.groups.push_back(GetGroup(group, reader));
  spec.policies = GetPolicies(message.policies(), reader);
  spec.dependencies = GetDependencies(message.dependencies(), reader);
  spec.labels = GetLabels(message.labels());
  spec.max_retries = message.max_retries();
  spec.on_node_loss = reader.Enum<NodeLossPolicy>(
      message.on_node_loss(), pb::NodeLossPolicy_IsValid(message.on_node_loss()),
      "node loss policy");
  spec.suspended = message.suspended();
  spec.preemptible = message.preemptible();
  spec.preempts = !message.never_preempts();
  spec.preempt_mode = reader.Enum<PreemptMode>(
      message.preempt_mode(), pb::PreemptMode_IsValid(message.preempt_mode()), "preempt mode");
  spec.strategy = GetStrategy(message.strategy(), reader);
  spec.device_strategy = GetStrategy(message.device_strategy(), reader);
  spec.user = message.user();
  spec.owner = message.owner();
  spec.priority_class = message.priority_class();
  if (message.has_topology()) spec.topology = GetTopology(message.topology(), reader);
  for (const pb::AffinityTerm& term : message.affinity())
    spec.affinity.push_back(GetAffinity(term));
  spec.saved_exit_codes = {message.saved_exit_codes().begin(), message.saved_exit_codes().end()};
  spec.saves_before_drain = message.saves_before_drain();
  spec.may_migrate = message.may_migrate();
  spec.suspends_idle = message.suspends_idle();
  spec.checkpoints_devices = message.checkpoints_devices();
  spec.min_success = reader.Count(message.min_success(), "min_success");
  if (message.has_series()) spec.series = GetSeries(message.series(), reader);
  if (message.has_member()) {
    spec.member =
        MemberOf{.series = JobId{message.member().series()}, .index = message.member().index()};
  }
  GetTimes(message, reader, spec);
  return spec;
}

}  // namespace codec

namespace pb = codec::pb;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

namespace {

constexpr uint32_t kSpecTag =
    pb::JobSpecRecord::kSpecFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr uint32_t kColdTag =
    pb::JobSpecRecord::kColdFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

void SetPrediction(const RunPrediction& prediction, pb::RunPrediction* out) {
  out->set_expected(prediction.expected_s);
  out->set_harmonic(prediction.harmonic_s);
  out->set_low(prediction.low_s);
  out->set_high(prediction.high_s);
}

RunPrediction GetPrediction(const pb::RunPrediction& message) {
  return {.expected_s = message.expected(),
          .harmonic_s = message.harmonic(),
          .low_s = message.low(),
          .high_s = message.high()};
}

}  // namespace

std::string EncodeJobSpecRecord(const pb::JobSpec& spec, Time submit, uint64_t revision,
                                const RunPrediction& prediction, const LinePlace& line,
                                size_t cold_bytes) {
  thread_local pb::JobSpecRecord head;  // everything except the spec
  if (line == LinePlace{}) {
    head.clear_line();
  } else {
    head.mutable_line()->set_work(line.work);
    head.mutable_line()->set_before(line.before);
  }
  if (prediction.Known()) {
    SetPrediction(prediction, head.mutable_prediction());
  } else {
    head.clear_prediction();
  }
  if (submit == absl::InfinitePast()) {
    head.clear_submit();
  } else {
    codec::SetTime(submit, head.mutable_submit());
  }
  head.set_revision(revision);
  const size_t head_bytes = head.ByteSizeLong();
  const size_t spec_bytes = static_cast<size_t>(spec.GetCachedSize());

  std::string value;
  value.reserve(codec::kMaxFieldHead + spec_bytes + head_bytes + codec::kMaxFieldHead + cold_bytes);
  value.resize(codec::kMaxFieldHead + spec_bytes + head_bytes);
  auto* begin = reinterpret_cast<uint8_t*>(value.data());
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kSpecTag, begin);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(spec_bytes), end);
  end = spec.SerializeWithCachedSizesToArray(end);
  end = head.SerializeWithCachedSizesToArray(end);
  value.resize(static_cast<size_t>(end - begin));
  return value;
}

std::string EncodeJobSpecRecord(const JobSpec& spec, Time submit, uint64_t revision,
                                const RunPrediction& prediction, const LinePlace& line,
                                absl::string_view cold) {
  thread_local pb::JobSpec message;
  message.Clear();
  codec::SetJobSpec(spec, &message);
  message.ByteSizeLong();
  std::string value = EncodeJobSpecRecord(message, submit, revision, prediction, line, cold.size());
  AppendCold(cold, &value);
  return value;
}

void AppendCold(absl::string_view cold, std::string* value) {
  if (cold.empty()) return;
  uint8_t head[codec::kMaxFieldHead];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kColdTag, head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(cold.size()), end);
  value->append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
  value->append(cold.data(), cold.size());
}

absl::StatusOr<StoredJob> DecodeJobSpecRecord(absl::string_view key, absl::string_view value) {
  thread_local pb::JobSpecRecord message;
  absl::Status status = codec::ParseMessage(value, &message, nullptr);
  absl::StatusOr<JobId> id = ParseJobKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kJobSpec, key);
  codec::Reader reader;
  StoredJob job{.id = *id,
                .spec = codec::GetJobSpec(message.spec(), reader),
                .submit = reader.GetTime(message.has_submit(), message.submit(),
                                         absl::InfinitePast(), "submit"),
                .revision = message.revision(),
                .prediction = GetPrediction(message.prediction()),
                .line = {.work = message.line().work(), .before = message.line().before()}};
  status = codec::Verdict(reader, RecordKind::kJobSpec, key);
  if (!status.ok()) return status;
  return job;
}

absl::StatusOr<std::string> DecodeCold(absl::string_view key, absl::string_view value,
                                       JobId* series) {
  pb::JobSpecRecord message;
  absl::Status status = codec::ParseMessage(value, &message, nullptr);
  if (!status.ok()) return NameRecord(status, RecordKind::kJobSpec, key);
  if (series != nullptr) *series = JobId{message.spec().member().series()};
  return std::move(*message.mutable_cold());
}

}  // namespace berth
