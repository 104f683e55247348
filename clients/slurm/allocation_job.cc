// The job of Berth that an allocation means.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/slurm/allocation.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/slurm_config.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::Duration kKillWait = absl::Seconds(30);  // Slurm's KillWait

absl::StatusOr<int> GpusOfNode(const AllocationRequest& request, std::string* model) {
  const int given = (request.gpus.count > 0 ? 1 : 0) + (request.gpus_per_node.count > 0 ? 1 : 0) +
                    (request.gpus_per_task.count > 0 ? 1 : 0);
  if (given > 1) {
    return absl::InvalidArgumentError(
        "give one of --gpus, --gpus-per-node or --gres, and --gpus-per-task");
  }
  for (const GpuCount* gpus : {&request.gpus, &request.gpus_per_node, &request.gpus_per_task})
    if (gpus->count > 0) *model = gpus->model;
  if (request.gpus_per_node.count > 0) return request.gpus_per_node.count;
  if (request.gpus_per_task.count > 0) return request.gpus_per_task.count * request.tasks_per_node;
  if (request.gpus.count % request.nodes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--gpus=", request.gpus.count,
                                                   ": must be a multiple of the ", request.nodes,
                                                   " nodes; use --gpus-per-node"));
  }
  return request.gpus.count / request.nodes;
}

absl::StatusOr<int64_t> MemoryOfNode(const AllocationRequest& request, int gpus) {
  const int given = (request.memory_per_node > 0 ? 1 : 0) + (request.memory_per_cpu > 0 ? 1 : 0) +
                    (request.memory_per_gpu > 0 ? 1 : 0);
  if (given > 1)
    return absl::InvalidArgumentError("give one of --mem, --mem-per-cpu and --mem-per-gpu");
  if (request.memory_per_cpu > 0)
    return request.memory_per_cpu * request.cpus_per_task * request.tasks_per_node;
  if (request.memory_per_gpu > 0 && gpus == 0)
    return absl::InvalidArgumentError("--mem-per-gpu: the job asks for no GPUs");
  return request.memory_per_gpu > 0 ? request.memory_per_gpu * gpus : request.memory_per_node;
}

absl::Status SetResources(const AllocationRequest& request, v1::TaskGroup* group,
                          cli::v1::SlurmBatch* batch) {
  std::string model;
  const absl::StatusOr<int> gpus = GpusOfNode(request, &model);
  if (!gpus.ok()) return gpus.status();
  const absl::StatusOr<int64_t> memory = MemoryOfNode(request, *gpus);
  if (!memory.ok()) return memory.status();
  v1::ResourceRequest& resources = *group->mutable_resources();
  resources.set_cpu_millis(int64_t{1000} * request.cpus_per_task * request.tasks_per_node);
  resources.set_memory_bytes(*memory);
  resources.set_scratch_bytes(request.scratch);
  for (const auto& [name, count] : request.counters) (*resources.mutable_extended())[name] = count;
  batch->set_gpus_per_node(*gpus);
  batch->set_gpus_per_task(request.gpus_per_task.count);
  if (*gpus == 0) return absl::OkStatus();
  v1::DeviceRequest& device = *resources.add_devices();
  device.set_kind("gpu");
  device.set_count(*gpus);
  if (!model.empty()) device.add_model(model);
  return absl::OkStatus();
}

absl::Status SetNodeSelector(const AllocationRequest& request,
                             const config::v1::SlurmConfig& config,
                             const config::v1::SlurmPartition* partition, v1::TaskGroup* group) {
  v1::NodeSelector selector;
  if (partition != nullptr) *selector.mutable_match_labels() = partition->node_labels();
  for (const std::string& feature : request.features) {
    const auto label = config.features().find(feature);
    if (label == config.features().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--constraint: there is no feature \"", feature,
                       "\": the operator adds it to features in /etc/berth/slurm.yaml"));
    }
    const size_t equals = label->second.find('=');
    (*selector.mutable_match_labels())[label->second.substr(0, equals)] =
        label->second.substr(equals + 1);
  }
  for (const std::string& node : request.excluded) selector.add_exclude_nodes(node);
  if (selector.ByteSizeLong() > 0) *group->mutable_node_selector() = selector;
  return absl::OkStatus();
}

// The queue of --account, if the site has accounts.
absl::Status SetAccountQueue(const AllocationRequest& request,
                             const config::v1::SlurmConfig& config, v1::JobSpec* spec) {
  if (config.accounts().empty()) return absl::OkStatus();
  for (const config::v1::SlurmAccount& account : config.accounts()) {
    if (account.name() != request.account) continue;
    spec->set_queue(account.queue().empty() ? account.name() : account.queue());
    return absl::OkStatus();
  }
  if (!request.account.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--account: there is no \"", request.account,
                     "\": the operator adds it to accounts in /etc/berth/slurm.yaml"));
  }
  if (!spec->queue().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--account: name one, because you have no default account");
}

// Queue, priority class and limits of time, by --partition, --account and --qos.
absl::Status SetPlace(const AllocationRequest& request, const config::v1::SlurmConfig& config,
                      const config::v1::SlurmPartition* partition, v1::JobSpec* spec) {
  const std::string& name = partition == nullptr ? request.partition : partition->name();
  if (!name.empty() && config.accounts().empty()) spec->set_queue(name);
  if (partition != nullptr && !partition->queue().empty()) spec->set_queue(partition->queue());
  if (absl::Status status = SetAccountQueue(request, config, spec); !status.ok()) return status;
  if (!request.qos.empty()) {
    const config::v1::SlurmQos* qos = FindQos(config, request.qos);
    if (qos == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--qos: there is no \"", request.qos,
                       "\": the operator adds it to qos in /etc/berth/slurm.yaml"));
    }
    if (!qos->queue().empty()) spec->set_queue(qos->queue());
    if (!qos->priority_class().empty()) {
      if (request.priority.has_value())
        return absl::InvalidArgumentError("--qos has a priority: leave out --priority and --nice");
      spec->set_priority_class(qos->priority_class());
    }
    if (qos->has_preemptible()) spec->set_preemptible(qos->preemptible());
  }
  return absl::OkStatus();
}

absl::Status SetTime(const AllocationRequest& request, const config::v1::SlurmPartition* partition,
                     v1::JobSpec* spec, cli::v1::SlurmBatch* batch) {
  absl::Duration limit = absl::InfiniteDuration();
  if (request.time.has_value()) {
    limit = *request.time;
  } else if (partition != nullptr && partition->has_default_time()) {
    limit = DurationFrom(partition->default_time());
  }
  if (partition != nullptr && partition->has_max_time()) {
    const absl::Duration most = DurationFrom(partition->max_time());
    if (!request.time.has_value()) limit = std::min(limit, most);
    if (limit > most) {
      return absl::InvalidArgumentError(absl::StrCat("--time: at most ", SlurmElapsed(most),
                                                     " in partition ", partition->name()));
    }
  }
  if (request.signal.has_value()) {
    batch->set_signal(request.signal->signal);
    batch->set_signal_before_s(absl::ToInt64Seconds(request.signal->before));
    batch->set_signal_batch(request.signal->batch);
  }
  if (limit == absl::InfiniteDuration()) return absl::OkStatus();
  ToProto(limit, spec->mutable_walltime());
  batch->set_time_limit_s(absl::ToInt64Seconds(limit));
  return absl::OkStatus();
}

// A job that must not start again ends with what would start it again.
void ForbidRequeue(v1::JobSpec* spec) {
  for (const auto event : {v1::LifecyclePolicy::NODE_LOST, v1::LifecyclePolicy::TASK_EVICTED,
                           v1::LifecyclePolicy::DEVICE_UNHEALTHY}) {
    v1::LifecyclePolicy* policy = spec->add_policies();
    policy->set_event(event);
    policy->set_action(v1::LifecyclePolicy::ABORT);
  }
}

absl::Status SetLabels(const AllocationRequest& request, const std::string& partition,
                       v1::JobSpec* spec) {
  const std::pair<const char*, std::string> labels[] = {{kNameLabel, request.name},
                                                        {kAccountLabel, request.account},
                                                        {kPartitionLabel, partition},
                                                        {kQosLabel, request.qos},
                                                        {kTasksLabel, absl::StrCat(request.tasks)}};
  for (const auto& [key, text] : labels) {
    if (text.empty()) continue;
    const absl::Status status = SetTextLabel(spec, key, text);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", status.message()));
  }
  if (!request.comment.empty())
    (*spec->mutable_annotations())[kCommentAnnotation] = request.comment;
  return absl::OkStatus();
}

absl::Status SetDependencies(const AllocationRequest& request, NameOfNumber name_of,
                             v1::JobSpec* spec) {
  for (const Dependency& dependency : request.dependencies) {
    const absl::StatusOr<std::string> name = name_of(dependency.number);
    if (!name.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--dependency: ", dependency.number, ": ", name.status().message()));
    }
    v1::JobDependency* added = spec->add_dependencies();
    added->set_job(*name);
    added->set_condition(dependency.condition);
  }
  return absl::OkStatus();
}

void DescribeSizes(const AllocationRequest& request, cli::v1::SlurmBatch* batch) {
  batch->set_job_name(request.name);
  batch->set_account(request.account);
  batch->set_qos(request.qos);
  batch->set_nodes(request.nodes);
  batch->set_tasks(request.tasks);
  batch->set_tasks_per_node(request.tasks_per_node);
  batch->set_cpus_per_task(request.cpus_per_task);
  batch->set_cpus_per_task_given(request.cpus_given);
  batch->set_memory_per_node(request.memory_per_node);
  batch->set_memory_per_cpu(request.memory_per_cpu);
}

}  // namespace

absl::StatusOr<v1::Job> JobOf(const AllocationRequest& request, const AllocationContext& context,
                              const std::string& user, NameOfNumber name_of,
                              cli::v1::SlurmBatch* batch) {
  const config::v1::SlurmConfig& config = context.config;
  const config::v1::SlurmPartition* partition = request.partition.empty()
                                                    ? DefaultPartition(config)
                                                    : FindPartition(config, request.partition);
  if (partition == nullptr && config.partitions_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--partition: there is no \"", request.partition, "\"; see sinfo"));
  }
  batch->set_partition(partition == nullptr ? request.partition : partition->name());
  v1::Job job;
  v1::JobSpec& spec = *job.mutable_spec();
  v1::TaskGroup& group = *spec.add_groups();
  group.set_name(kNodeGroup);
  group.set_replicas(request.nodes);
  if (request.nodes > 1) {
    group.mutable_affinity()->add_apart_from_groups(kNodeGroup);
    spec.set_min_success(1);  // the batch script's end is the job's
  }
  for (const absl::Status& status :
       {SetResources(request, &group, batch), SetNodeSelector(request, config, partition, &group),
        SetPlace(request, config, partition, &spec), SetTime(request, partition, &spec, batch),
        SetLabels(request, batch->partition(), &spec), SetDependencies(request, name_of, &spec)}) {
    if (!status.ok()) return status;
  }
  if (request.priority.has_value()) spec.set_priority(*request.priority);
  if (request.begin.has_value()) ToProto(*request.begin, spec.mutable_start_after());
  if (request.array.has_value()) *spec.mutable_array() = *request.array;
  if (!request.requeue) ForbidRequeue(&spec);
  spec.set_suspended(request.hold);
  spec.set_user(user);
  if (config.run_as_user()) spec.set_run_as(user);
  ToProto(kKillWait, spec.mutable_kill_grace());
  group.add_command(SlurmProgram(config));
  group.add_command("slurmstepd");
  group.add_command("batch");
  if (!request.directory.empty()) group.set_working_dir(request.directory);
  DescribeSizes(request, batch);
  batch->set_user(user);
  batch->set_cluster(config.cluster_name());
  if (batch->partition().empty()) batch->set_partition("default");
  return job;
}

}  // namespace berth
