#include "clients/cli/kubeflow_job.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/kubernetes_job.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr int32_t kFirstRetriedCode = 128;  // of restartPolicy ExitCode: signals

void ConvertReplicaRestart(const std::string& path, const std::string& policy, bool has_limit,
                           ForeignJob& job, v1::TaskGroup* group) {
  if (policy == "Never") return;
  if (policy == "ExitCode") {
    v1::LifecyclePolicy& permanent = *group->add_policies();
    permanent.set_event(v1::LifecyclePolicy::TASK_FAILED);
    permanent.set_action(v1::LifecyclePolicy::ABORT);
    for (int32_t code = 1; code < kFirstRetriedCode; ++code) permanent.add_exit_codes(code);
  } else if (policy != "Always" && policy != "OnFailure") {
    return job.document().Error(
        path,
        absl::StrCat("restartPolicy \"", policy, "\" is not Always, OnFailure, Never or ExitCode"));
  }
  ForeignJob::AddRestart(v1::LifecyclePolicy::RESTART_TASK, group->mutable_policies());
  if (!has_limit) job.spec().set_max_retries(kUsualBackoffLimit);
}

}  // namespace

void ConvertRunPolicy(const kubernetes::v1::RunPolicy& policy, bool queued_by_kueue,
                      ForeignJob* job) {
  const std::string path = "spec.run_policy";
  if (policy.has_ttl_seconds_after_finished())
    job->ConvertTimeToLive(path + ".ttl_seconds_after_finished",
                           policy.ttl_seconds_after_finished());
  if (policy.has_active_deadline_seconds())
    job->ConvertRunLimit(path + ".active_deadline_seconds", policy.active_deadline_seconds());
  if (policy.has_backoff_limit()) job->spec().set_max_retries(policy.backoff_limit());
  job->Place("spec.max_retries", path + ".backoff_limit");
  job->ConvertSuspend(path + ".suspend", policy.suspend(), queued_by_kueue);
  job->WarnOfNoEffect(path + ".clean_pod_policy", "tasks of an ended job are stopped");
  job->WarnOfNoEffect(path + ".scheduling_policy.min_resources", "a gang starts as a whole");
  const auto& scheduling = policy.scheduling_policy();
  if (!scheduling.queue().empty()) {
    job->spec().set_queue(scheduling.queue());
    job->Place("spec.queue", path + ".scheduling_policy.queue");
  }
  if (scheduling.has_min_available()) job->spec().set_min_available(scheduling.min_available());
  job->Place("spec.min_available", path + ".scheduling_policy.min_available");
  job->ConvertPriorityClass(path + ".scheduling_policy.priority_class",
                            scheduling.priority_class());
}

v1::TaskGroup* ConvertReplicas(const ReplicaSource& source, const std::string& type,
                               const std::string& usual_restart,
                               const PodSurroundings& surroundings, ForeignJob* job) {
  const auto found = source.specs.find(type);
  if (found == source.specs.end()) return nullptr;
  const kubernetes::v1::ReplicaSpec& in = found->second;
  const std::string from = absl::StrCat(source.path, "[\"", type, "\"]");
  const std::string to = absl::StrCat("spec.groups[", job->spec().groups_size(), "]");
  v1::TaskGroup* group = job->spec().add_groups();
  group->set_name(absl::AsciiStrToLower(type));
  group->set_replicas(in.has_replicas() ? in.replicas() : 1);
  job->Place(to, from);
  job->Place(to + ".replicas", from + ".replicas");
  ConvertPodTemplate(from + ".template", in.template_(), surroundings, to, job, group);
  if (!in.template_().spec().restart_policy().empty()) {
    job->document().Warn(from + ".template.spec.restart_policy",
                         "restartPolicy of a pod is left out: that of the replica counts");
  }
  const std::string& restart = in.restart_policy().empty() ? usual_restart : in.restart_policy();
  ConvertReplicaRestart(from + ".restart_policy", restart, source.policy.has_backoff_limit(), *job,
                        group);
  return group;
}

void CheckReplicaTypes(const std::string& path, const ReplicaSpecs& replicas,
                       const std::vector<std::string>& known, ForeignJob* job) {
  for (const auto& [type, unused] :
       std::map<std::string, kubernetes::v1::ReplicaSpec>(replicas.begin(), replicas.end())) {
    if (std::find(known.begin(), known.end(), type) == known.end())
      job->document().Error(absl::StrCat(path, "[\"", type, "\"]"),
                            UnknownWord("unsupported replica type", type, known));
  }
}

void AddCompletion(v1::TaskGroup* group) {
  v1::LifecyclePolicy& complete = *group->add_policies();
  complete.set_event(v1::LifecyclePolicy::TASK_COMPLETED);
  complete.set_action(v1::LifecyclePolicy::COMPLETE);
}

std::vector<PodHosts> ReplicaHosts(const std::string& subdomain, ForeignJob& job) {
  std::vector<PodHosts> pods;
  for (int i = 0; i < job.spec().groups_size(); ++i) {
    const v1::TaskGroup& group = job.spec().groups(i);
    PodHosts& one = pods.emplace_back();
    one.group = i;
    one.names =
        PodNames(absl::StrCat(job.manifest().job.name(), "-", group.name(), "-"), group.replicas());
    one.subdomain = subdomain;
  }
  return pods;
}

}  // namespace berth
