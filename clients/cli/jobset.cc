// JobSet (jobset.x-k8s.io/v1alpha2): one gang with a group for each replicated job.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "berth/kubernetes/v1/jobset.pb.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubernetes_job.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/pod_hosts.h"

namespace berth {
namespace {

using kubernetes::v1::ReplicatedJob;

constexpr char kExclusiveTopology[] = "alpha.jobset.sigs.k8s.io/exclusive-topology";

class JobSetConverter {
 public:
  JobSetConverter(const kubernetes::v1::JobSet& in, ForeignJob& job)
      : in_(in.spec()), job_(job), document_(job.document()), spec_(job.spec()) {
    tier_ = TierOf("metadata.annotations", in.metadata().annotations());
    space_ = in.metadata().namespace_();
  }

  void Convert(bool queued_by_kueue) {
    job_.ConvertSuspend("spec.suspend", in_.suspend(), queued_by_kueue);
    if (in_.has_ttl_seconds_after_finished())
      job_.ConvertTimeToLive("spec.ttl_seconds_after_finished", in_.ttl_seconds_after_finished());
    if (in_.replicated_jobs().empty()) document_.Missing("spec", "spec.replicatedJobs");
    job_.Place("spec.groups", "spec.replicated_jobs");
    job_.WarnOfNoEffect("spec.network",
                        "tasks have no names in DNS, but in hosts files, if the JobSet uses them");
    for (int i = 0; i < in_.replicated_jobs_size(); ++i) ConvertReplicatedJob(i);
    ConvertStartupPolicy();
    ConvertFailurePolicy();
    ConvertSuccessPolicy();
    CheckIndexes();
    GiveHostNames("spec.replicated_jobs", Pods(), space_, false, &job_);
  }

 private:
  static int32_t Replicas(const ReplicatedJob& one) {
    return one.has_replicas() ? one.replicas() : 1;
  }
  static int32_t Pods(const ReplicatedJob& one) {
    const auto& spec = one.template_().spec();
    return spec.has_parallelism() ? spec.parallelism() : 1;
  }

  // "set-workers-0-[0-3].set"
  std::vector<PodHosts> Pods() const {
    const std::string& set = job_.manifest().job.name();
    const std::string& subdomain = in_.network().subdomain();
    std::vector<PodHosts> pods;
    for (int i = 0; i < in_.replicated_jobs_size(); ++i) {
      const ReplicatedJob& one = in_.replicated_jobs(i);
      PodHosts& hosts = pods.emplace_back();
      hosts.group = i;
      hosts.names = PodNames(PodNames(absl::StrCat(set, "-", one.name(), "-"), Replicas(one)) + "-",
                             Pods(one));
      hosts.subdomain = subdomain.empty() ? set : subdomain;
    }
    return pods;
  }

  void ConvertReplicatedJob(int index) {
    const ReplicatedJob& one = in_.replicated_jobs(index);
    const std::string from = absl::StrCat("spec.replicated_jobs[", index, "]");
    const std::string to = absl::StrCat("spec.groups[", index, "]");
    v1::TaskGroup& group = *spec_.add_groups();
    group.set_name(one.name());
    const int64_t tasks = int64_t{Replicas(one)} * Pods(one);
    if (Replicas(one) < 0 || Pods(one) < 0 || tasks > INT32_MAX)
      document_.Error(from, "replicas times parallelism is no number of tasks");
    else
      group.set_replicas(static_cast<int32_t>(tasks));
    job_.Place(to, from);
    job_.Place(to + ".name", from + ".name");
    job_.Place(to + ".replicas", from + ".replicas");
    CheckJob(from + ".template.spec", one);
    for (const auto& before : one.depends_on()) {
      v1::GroupDependency& dependency = *group.add_depends_on();
      dependency.set_group(before.name());
      const bool complete = before.status() == "Complete";
      dependency.set_condition(complete ? v1::GroupDependency::COMPLETED
                                        : v1::GroupDependency::RUNNING);
    }
    ConvertPodTemplate(from + ".template.spec.template", one.template_().spec().template_(),
                       Surroundings(one), to, &job_, &group);
    const std::string own =
        TierOf(from + ".template.metadata", one.template_().metadata().annotations());
    ConvertTier(own.empty() ? tier_ : own, to, one, &group);
  }

  // The job's index and the pod's in it, from the number of the task in its group.
  static PodSurroundings Surroundings(const ReplicatedJob& one) {
    const bool one_job = Replicas(one) == 1, one_pod = Pods(one) == 1;
    PodSurroundings known;  // with several of both, neither can be told
    if (one_job || one_pod) {
      const std::string number = "${BERTH_GROUP_INDEX}";
      const std::string pod = one_pod ? "0" : number;
      known.variables["JOB_COMPLETION_INDEX"] = pod;
      known.fields["metadata.annotations['batch.kubernetes.io/job-completion-index']"] = pod;
      known.fields["metadata.labels['batch.kubernetes.io/job-completion-index']"] = pod;
      for (const char* place : {"labels", "annotations"}) {
        known.fields[absl::StrCat("metadata.", place, "['jobset.sigs.k8s.io/job-index']")] =
            one_job ? "0" : number;
      }
    }
    for (const char* place : {"labels", "annotations"}) {
      known.fields[absl::StrCat("metadata.", place, "['jobset.sigs.k8s.io/replicatedjob-name']")] =
          one.name();
      known.fields[absl::StrCat("metadata.", place, "['jobset.sigs.k8s.io/jobset-name']")] =
          "${BERTH_JOB}";
    }
    return known;
  }

  // Neither the index of a job nor that of a pod in it can be told where there are several of both.
  void CheckIndexes() {
    for (int i = 0; i < in_.replicated_jobs_size(); ++i) {
      if (Replicas(in_.replicated_jobs(i)) <= 1 || Pods(in_.replicated_jobs(i)) <= 1) continue;
      document_.Warn(absl::StrCat("spec.replicated_jobs[", i, "]"),
                     "JOB_COMPLETION_INDEX is not set with several replicas of several pods: "
                     "BERTH_GROUP_INDEX counts through all of them");
    }
  }

  void CheckJob(const std::string& path, const ReplicatedJob& one) {
    const auto& spec = one.template_().spec();
    if (spec.has_completions() && spec.completions() != Pods(one)) {
      document_.Error(path + ".completions",
                      "completions other than parallelism: the tasks of a gang run together");
    }
    if (spec.has_pod_failure_policy()) {
      document_.Error(path + ".pod_failure_policy",
                      "podFailurePolicy in a JobSet: use failurePolicy of the JobSet");
    }
    if (spec.suspend())
      document_.Error(path + ".suspend", "suspend of one job: suspend the JobSet instead");
    if (spec.has_ttl_seconds_after_finished()) {
      document_.Warn(path + ".ttl_seconds_after_finished",
                     "ttlSecondsAfterFinished is left out: groups are deleted with their job");
    }
    if (spec.has_active_deadline_seconds())
      job_.ConvertRunLimit(path + ".active_deadline_seconds", spec.active_deadline_seconds());
    if (spec.has_backoff_limit_per_index() || spec.has_max_failed_indexes())
      document_.Error(path, "limits per index have no meaning in a gang");
    CheckJobRestartPolicy(path + ".template.spec", spec.template_().spec(), &document_);
    pod_retries_ = std::max(pod_retries_,
                            spec.has_backoff_limit() ? spec.backoff_limit() : kUsualBackoffLimit);
  }

  // The topology key of the annotation names a tier by its last part: "example.com/rack", "rack".
  std::string TierOf(const std::string& path, const Labels& annotations) {
    const auto found = annotations.find(kExclusiveTopology);
    if (found == annotations.end()) return "";
    std::string tier = found->second.substr(found->second.rfind('/') + 1);
    document_.Warn(path, absl::StrCat("exclusive-topology: each job stays inside one HyperNode of "
                                      "the tier \"",
                                      tier, "\"; others may be there, too"));
    return tier;
  }

  void ConvertTier(const std::string& tier, const std::string& to, const ReplicatedJob& one,
                   v1::TaskGroup* group) {
    if (tier.empty()) return;
    const bool several = Replicas(one) > 1;
    v1::TopologyConstraint& topology =
        several ? *group->mutable_partition()->mutable_topology() : *group->mutable_topology();
    if (several) group->mutable_partition()->set_size(Pods(one));
    topology.set_mode(v1::TopologyConstraint::HARD);
    topology.set_highest_tier_name(tier);
    job_.Place(to + (several ? ".partition" : ".topology"), "metadata.annotations");
  }

  void ConvertStartupPolicy() {
    const std::string& order = in_.startup_policy().startup_policy_order();
    if (order.empty() || order == "AnyOrder") return;
    if (order != "InOrder") {
      return document_.Error("spec.startup_policy", absl::StrCat("startupPolicyOrder \"", order,
                                                                 "\" is not AnyOrder or InOrder"));
    }
    for (int i = 1; i < spec_.groups_size(); ++i) {
      v1::GroupDependency& dependency = *spec_.mutable_groups(i)->add_depends_on();
      dependency.set_group(spec_.groups(i - 1).name());
      dependency.set_condition(v1::GroupDependency::RUNNING);
    }
  }

  // A failed pod is retried within its job, and a failed job restarts the set.
  void ConvertFailurePolicy() {
    const auto& policy = in_.failure_policy();
    const int64_t retries = int64_t{pod_retries_} + policy.max_restarts();
    spec_.set_max_retries(static_cast<int32_t>(std::min<int64_t>(retries, INT32_MAX)));
    job_.Place("spec.max_retries", "spec.failure_policy.max_restarts");
    auto action = policy.max_restarts() > 0 ? v1::LifecyclePolicy::RESTART_JOB
                                            : v1::LifecyclePolicy::RESTART_TASK;
    for (int i = 0; i < policy.rules_size(); ++i) {
      const std::string& rule = policy.rules(i).action();
      const std::string path = absl::StrCat("spec.failure_policy.rules[", i, "]");
      if (rule == "FailJobSet") {  // once a job has failed, after the retries of its pods
        spec_.set_max_retries(pod_retries_);
        action = v1::LifecyclePolicy::RESTART_TASK;
      } else if (rule != "RestartJobSet") {
        document_.Error(path, absl::StrCat("action ", rule, ": only FailJobSet and RestartJobSet"));
      }
      if (i > 0) document_.Error(path, "a second rule for all failures is never reached");
    }
    ForeignJob::AddRestart(action, spec_.mutable_policies());
  }

  void ConvertSuccessPolicy() {
    const auto& policy = in_.success_policy();
    const auto& targets = policy.target_replicated_jobs();
    const std::string path = "spec.success_policy";
    const bool any = policy.operator_() == "Any";
    if (!any && targets.empty()) return;  // all jobs: the default
    const bool all = targets.empty() || targets.size() == in_.replicated_jobs_size();
    if (!any && all) return;
    if (!any && targets.size() > 1)
      document_.Error(path, "All of several replicated jobs, but not of all: cannot be said");
    for (int i = 0; i < in_.replicated_jobs_size(); ++i) {
      const ReplicatedJob& one = in_.replicated_jobs(i);
      const bool named =
          targets.empty() || std::find(targets.begin(), targets.end(), one.name()) != targets.end();
      if (!named) continue;
      if (any && Replicas(one) > 1)
        document_.Error(path, absl::StrCat("Any: ", one.name(),
                                           " has several jobs, and a group "
                                           "succeeds as a whole"));
      v1::LifecyclePolicy& complete = *spec_.mutable_groups(i)->add_policies();
      complete.set_event(v1::LifecyclePolicy::TASK_COMPLETED);
      complete.set_action(v1::LifecyclePolicy::COMPLETE);
    }
  }

  const kubernetes::v1::JobSetSpec& in_;
  ForeignJob& job_;
  ForeignDocument& document_;
  v1::JobSpec& spec_;
  std::string space_;
  std::string tier_;  // of the set; "" = no constraint
  int32_t pod_retries_ = 0;
};

}  // namespace

void ReadJobSet(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::JobSet in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata("metadata", in.metadata());
  JobSetConverter(in, job).Convert(queued_by_kueue);
  job.Finish();
}

}  // namespace berth
