// Kubeflow's PyTorchJob, and TrainJob with the runtime torch-distributed. What their operators set
// for torchrun and torch.distributed, Berth sets for every task.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubeflow_job.h"
#include "clients/cli/kubernetes_job.h"
#include "clients/cli/pod_hosts.h"

namespace berth {
namespace {

constexpr char kTorchReplicas[] = "spec.pytorch_replica_specs";
constexpr char kTorchRuntime[] = "torch-distributed";

PodSurroundings TorchSurroundings() {
  PodSurroundings known;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_NNODES",
                           "PET_NODE_RANK", "PET_NPROC_PER_NODE"}) {
    known.in_commands[name] = absl::StrCat("${", name, "}");
  }
  return known;
}

// Other values than numbers mean one process for each GPU or core of the task; Berth's default is
// the number of its GPUs, or 1.
void SetProcesses(const std::string& path, const std::string& processes, ForeignJob& job,
                  v1::TaskGroup* group) {
  int32_t number = 0;
  if (processes.empty() || processes == "auto" || processes == "gpu") return;
  if (!absl::SimpleAtoi(processes, &number)) {
    return job.document().Error(
        path,
        absl::StrCat("\"", processes, "\" processes for each node: only a number, auto or gpu"));
  }
  v1::EnvVar& variable = *group->add_env();
  variable.set_name("PET_NPROC_PER_NODE");
  variable.set_value(processes);
}

void ConvertElastic(const kubernetes::v1::ElasticPolicy& policy, ForeignJob& job,
                    v1::TaskGroup* worker) {
  const std::string path = "spec.elastic_policy";
  if (policy.has_max_replicas()) worker->set_replicas(policy.max_replicas());
  if (policy.has_min_replicas()) worker->set_min_available(policy.min_replicas());
  worker->set_membership(v1::RENDEZVOUS);
  const std::string& backend = policy.rdzv_backend();
  if (!backend.empty() && backend != "c10d")
    job.document().Error(path + ".rdzv_backend",
                         absl::StrCat("rdzvBackend ", backend, ": only c10d"));
  if (policy.has_max_restarts()) {
    v1::EnvVar& variable = *worker->add_env();
    variable.set_name("PET_MAX_RESTARTS");
    variable.set_value(absl::StrCat(policy.max_restarts()));
  }
  if (policy.has_nproc_per_node())
    SetProcesses(path + ".nproc_per_node", absl::StrCat(policy.nproc_per_node()), job, worker);
}

}  // namespace

void ReadPyTorchJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::PyTorchJob in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata("metadata", in.metadata());
  ConvertRunPolicy(in.spec().run_policy(), queued_by_kueue, &job);
  const ReplicaSpecs& replicas = in.spec().pytorch_replica_specs();
  CheckReplicaTypes(kTorchReplicas, replicas, {"Master", "Worker"}, &job);
  const PodSurroundings known = TorchSurroundings();
  const ReplicaSource source{kTorchReplicas, replicas, in.spec().run_policy()};
  if (v1::TaskGroup* master = ConvertReplicas(source, "Master", "OnFailure", known, &job)) {
    AddCompletion(master);
    SetProcesses("spec.nproc_per_node", in.spec().nproc_per_node(), job, master);
  }
  if (v1::TaskGroup* worker = ConvertReplicas(source, "Worker", "OnFailure", known, &job)) {
    SetProcesses("spec.nproc_per_node", in.spec().nproc_per_node(), job, worker);
    if (in.spec().has_elastic_policy()) ConvertElastic(in.spec().elastic_policy(), job, worker);
  } else if (in.spec().has_elastic_policy()) {
    document.Error("spec.elastic_policy", "elasticPolicy is of the workers, and there are none");
  }
  if (replicas.empty()) document.Missing("spec", "spec.pytorchReplicaSpecs");
  GiveHostNames(kTorchReplicas, ReplicaHosts("", job), in.metadata().namespace_(), false, &job);
  job.Finish();
}

void ReadTrainJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::TrainJob in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata("metadata", in.metadata());
  job.ConvertSuspend("spec.suspend", in.spec().suspend(), queued_by_kueue);
  job.spec().mutable_labels()->insert(in.spec().labels().begin(), in.spec().labels().end());
  job.spec().mutable_annotations()->insert(in.spec().annotations().begin(),
                                           in.spec().annotations().end());
  if (in.spec().runtime_ref().name() != kTorchRuntime) {
    document.Error("spec.runtime_ref", absl::StrCat("runtime \"", in.spec().runtime_ref().name(),
                                                    "\": a runtime is an "
                                                    "object of the cluster; only what ",
                                                    kTorchRuntime, " does is known"));
  }
  const kubernetes::v1::Trainer& trainer = in.spec().trainer();
  v1::TaskGroup& group = *job.spec().add_groups();
  group.set_name("node");
  group.set_replicas(trainer.has_num_nodes() ? trainer.num_nodes() : 1);
  job.Place("spec.groups[0]", "spec.trainer");
  job.Place("spec.groups[0].replicas", "spec.trainer.num_nodes");
  kubernetes::v1::Container container;
  container.set_image(trainer.image());
  *container.mutable_command() = trainer.command();
  *container.mutable_args() = trainer.args();
  *container.mutable_env() = trainer.env();
  if (trainer.has_resources_per_node()) {
    ConvertResources("spec.trainer.resources_per_node", trainer.resources_per_node(), &job,
                     group.mutable_resources());
  }
  if (trainer.image().empty())
    document.Missing("spec.trainer", "image");  // that of the runtime is in the cluster
  ConvertContainer("spec.trainer", container, TorchSurroundings(), "spec.groups[0]", &job, &group);
  SetProcesses("spec.trainer.num_proc_per_node", trainer.num_proc_per_node(), job, &group);
  job.spec().set_max_retries(kUsualBackoffLimit);
  ForeignJob::AddRestart(v1::LifecyclePolicy::RESTART_TASK, group.mutable_policies());
  const std::string& name = job.manifest().job.name();
  PodHosts pods;  // of the JobSet that Kubeflow makes of it
  pods.names = PodNames(absl::StrCat(name, "-node-0-"), group.replicas());
  pods.subdomain = name;
  GiveHostNames("spec.trainer", {pods}, in.metadata().namespace_(), false, &job);
  job.Finish();
}

}  // namespace berth
