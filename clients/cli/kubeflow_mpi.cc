// Kubeflow's MPIJob (v2beta1). The operator gives mpirun a host file and ssh; Berth gives it the
// addresses of BERTH_HOSTFILE, and mpi-launch-agent in place of ssh (docs/users/examples.md, "MPI
// without ssh").
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubeflow_job.h"
#include "clients/cli/pod_hosts.h"

namespace berth {
namespace {

constexpr char kMpiReplicas[] = "spec.mpi_replica_specs";
constexpr char kHostFile[] = "/etc/mpi/hostfile";

PodSurroundings LauncherSurroundings() {
  PodSurroundings known;
  known.variables = {{"OMPI_MCA_orte_default_hostfile", "${BERTH_HOSTFILE}"},
                     {"OMPI_MCA_plm_rsh_agent", "mpi-launch-agent"},
                     {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
                     {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
  known.replaced = {{kHostFile, "${BERTH_HOSTFILE}"}};
  return known;
}

// Workers wait for mpirun: what it starts there comes through their node's agent, not through sshd.
void MakeWait(v1::TaskGroup* worker) {
  const auto& command = worker->command();
  const bool runs_sshd = std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return absl::StrContains(word, "sshd");
  });
  if (!command.empty() && !runs_sshd) return;
  worker->clear_args();
  worker->clear_command();
  worker->add_command("sleep");
  worker->add_command("infinity");
}

}  // namespace

void ReadMpiJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::MpiJob in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata("metadata", in.metadata());
  ConvertRunPolicy(in.spec().run_policy(), queued_by_kueue, &job);
  const std::string& implementation = in.spec().mpi_implementation();
  if (!implementation.empty() && implementation != "OpenMPI") {
    document.Error("spec.mpi_implementation",
                   absl::StrCat("mpiImplementation ", implementation,
                                ": its launcher starts processes only by ssh"));
  }
  const ReplicaSpecs& replicas = in.spec().mpi_replica_specs();
  CheckReplicaTypes(kMpiReplicas, replicas, {"Launcher", "Worker"}, &job);
  job.WarnOfNoEffect("spec.ssh_auth_mount_path", "there are no keys");
  job.WarnOfNoEffect("spec.slots_per_worker", "mpirun may start several processes on a host");
  job.WarnOfNoEffect("spec.launcher_creation_policy", "a gang starts as a whole");
  job.WarnOfNoEffect("spec.run_launcher_as_worker", "the launcher's host is among the hosts");
  const ReplicaSource source{kMpiReplicas, replicas, in.spec().run_policy()};
  v1::TaskGroup* launcher =
      ConvertReplicas(source, "Launcher", "OnFailure", LauncherSurroundings(), &job);
  if (launcher == nullptr) return document.Missing(kMpiReplicas, "Launcher");
  AddCompletion(launcher);
  document.Warn(
      absl::StrCat(kMpiReplicas, "[\"Launcher\"]"),
      "mpirun reaches the workers by mpi-launch-agent in place of ssh: the image needs it and "
      "berth; processes also run in the launcher's task; see \"MPI without ssh\" in Berth's "
      "examples");
  if (v1::TaskGroup* worker = ConvertReplicas(source, "Worker", "Never", PodSurroundings(), &job)) {
    MakeWait(worker);
  }
  const std::string& name = job.manifest().job.name();
  GiveHostNames(kMpiReplicas, ReplicaHosts(name, job), in.metadata().namespace_(), false, &job);
  job.Finish();
}

}  // namespace berth
