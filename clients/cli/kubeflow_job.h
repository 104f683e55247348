// What Kubeflow's jobs have in common: run policies and replica specifications.
#ifndef BERTH_CLIENTS_CLI_KUBEFLOW_JOB_H_
#define BERTH_CLIENTS_CLI_KUBEFLOW_JOB_H_

#include <string>

#include "berth/kubernetes/v1/kubeflow.pb.h"
#include "clients/cli/foreign_document.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/pod_hosts.h"

namespace berth {

using ReplicaSpecs = google::protobuf::Map<std::string, kubernetes::v1::ReplicaSpec>;

void ConvertRunPolicy(const kubernetes::v1::RunPolicy& policy, bool queued_by_kueue,
                      ForeignJob* job);

// A job's replicas: a map at `path`.
struct ReplicaSource {
  std::string path;
  const ReplicaSpecs& specs;
  const kubernetes::v1::RunPolicy& policy;
};
// Adds the group of replica `type` ("Worker" becomes "worker"), with its restart policy, or the
// kind's `usual_restart`. Returns null if there is no such replica.
v1::TaskGroup* ConvertReplicas(const ReplicaSource& source, const std::string& type,
                               const std::string& usual_restart,
                               const PodSurroundings& surroundings, ForeignJob* job);

// Refuses replicas of other types.
void CheckReplicaTypes(const std::string& path, const ReplicaSpecs& replicas,
                       const std::vector<std::string>& known, ForeignJob* job);

// The job succeeds when the group has.
void AddCompletion(v1::TaskGroup* group);

// The pods of all groups, in a domain ("": in none).
std::vector<PodHosts> ReplicaHosts(const std::string& subdomain, ForeignJob& job);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_KUBEFLOW_JOB_H_
