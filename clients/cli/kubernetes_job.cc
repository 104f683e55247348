#include "clients/cli/kubernetes_job.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubernetes_pod.h"

namespace berth {
namespace {

using kubernetes::v1::PodFailureRule;

constexpr char kCompletionIndexField[] =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";
constexpr char kCompletionIndexLabel[] =
    "metadata.labels['batch.kubernetes.io/job-completion-index']";
constexpr int32_t kGreatestExitCode = 255;

class KubernetesJobConverter {
 public:
  KubernetesJobConverter(const std::string& path, const kubernetes::v1::JobSpec& in,
                         ForeignJob& job)
      : path_(path), in_(in), job_(job), document_(job.document()), spec_(job.spec()) {}

  void Convert(bool queued_by_kueue) {
    ConvertLimits();
    job_.ConvertSuspend(path_ + ".suspend", in_.suspend(), queued_by_kueue);
    if (paused()) {
      spec_.set_suspended(true);
      document_.Warn(path_ + ".parallelism",
                     "parallelism 0: the job is suspended; once resumed, it runs all at once");
    }
    v1::TaskGroup& group = *spec_.add_groups();
    group.set_name("main");
    job_.Place("spec.groups[0]", path_);
    ConvertTasks(&group);
    ConvertFailures(&group);
    ConvertPodTemplate(path_ + ".template", in_.template_(), surroundings_, "spec.groups[0]", &job_,
                       &group);
    if (in_.has_active_deadline_seconds()) {
      spec_.clear_run_limit();  // the job's rather than that of a pod
      job_.ConvertRunLimit(path_ + ".active_deadline_seconds", in_.active_deadline_seconds());
    }
    CheckJobRestartPolicy(path_ + ".template.spec", in_.template_().spec(), &document_);
  }

 private:
  // Kubernetes' 0 pauses the job.
  bool paused() const { return in_.has_parallelism() && in_.parallelism() == 0; }
  int32_t parallelism() const {
    if (paused() && in_.has_completions()) return in_.completions();
    return in_.has_parallelism() ? in_.parallelism() : 1;
  }
  int32_t completions() const { return in_.has_completions() ? in_.completions() : parallelism(); }

  void ConvertLimits() {
    spec_.set_max_retries(in_.has_backoff_limit() ? in_.backoff_limit() : kUsualBackoffLimit);
    job_.Place("spec.max_retries", path_ + ".backoff_limit");
    if (in_.has_ttl_seconds_after_finished()) {
      job_.ConvertTimeToLive(path_ + ".ttl_seconds_after_finished",
                             in_.ttl_seconds_after_finished());
    }
  }

  // Tasks that do not need each other are a group of which one is enough to start. With fewer at a
  // time than there are, or with an index, they are an array.
  void ConvertTasks(v1::TaskGroup* group) {
    const std::string& mode = in_.completion_mode();
    if (!mode.empty() && mode != "NonIndexed" && mode != "Indexed") {
      document_.Error(path_ + ".completion_mode",
                      absl::StrCat("completionMode \"", mode, "\" is not NonIndexed or Indexed"));
    }
    if (mode == "Indexed" && !in_.has_completions())
      document_.Error(path_ + ".completion_mode", "Indexed needs completions");
    if (mode == "Indexed" || parallelism() < completions()) return ConvertArray(mode == "Indexed");
    if (in_.has_backoff_limit_per_index() || in_.has_max_failed_indexes())
      document_.Error(path_,
                      "backoffLimitPerIndex and maxFailedIndexes need completionMode Indexed");
    group->set_replicas(completions());
    group->set_membership(v1::INDEPENDENT);
    job_.Place("spec.groups[0].replicas",
               path_ + (in_.has_completions() ? ".completions" : ".parallelism"));
    if (completions() > 1) spec_.set_min_available(1);
  }

  void ConvertArray(bool indexed) {
    v1::Array& array = *spec_.mutable_array();
    array.set_size(completions());
    array.set_parallelism(std::min(parallelism(), completions()));
    job_.Place("spec.array", path_ + ".completions");
    job_.Place("spec.array.parallelism", path_ + ".parallelism");
    if (in_.has_backoff_limit_per_index()) {
      spec_.set_max_retries(in_.backoff_limit_per_index());
      job_.Place("spec.max_retries", path_ + ".backoff_limit_per_index");
      if (in_.has_max_failed_indexes()) array.set_max_failed(in_.max_failed_indexes());
    } else {
      array.set_max_failed(0);  // the limit is that of the whole job
    }
    job_.Place("spec.array.max_failed", path_ + ".max_failed_indexes");
    if (!indexed) return;
    surroundings_.variables["JOB_COMPLETION_INDEX"] = "${BERTH_ARRAY_INDEX}";
    for (const char* field : {kCompletionIndexField, kCompletionIndexLabel})
      surroundings_.fields[field] = "${BERTH_ARRAY_INDEX}";
  }

  void ConvertFailures(v1::TaskGroup* group) {
    const auto& rules = in_.pod_failure_policy().rules();
    for (int i = 0; i < rules.size(); ++i) {
      ConvertRule(absl::StrCat(path_, ".pod_failure_policy.rules[", i, "]"), rules[i], group);
    }
    ForeignJob::AddRestart(v1::LifecyclePolicy::RESTART_TASK, group->mutable_policies());
  }

  void ConvertRule(const std::string& path, const PodFailureRule& rule, v1::TaskGroup* group) {
    if (rule.action() == "Ignore" && !rule.has_on_exit_codes()) {
      // Evictions, drains and lost nodes use no retries in Berth.
      for (const auto& condition : rule.on_pod_conditions()) {
        if (condition.type() != "DisruptionTarget")
          document_.Error(path, absl::StrCat("condition ", condition.type(), " is unknown here"));
      }
      return;
    }
    const bool per_index = rule.action() == "FailIndex" && in_.has_backoff_limit_per_index();
    const bool fails = rule.action() == "FailJob" || per_index;
    if (!rule.has_on_exit_codes() || (!fails && rule.action() != "Count")) {
      return document_.Error(
          path, absl::StrCat("action ", rule.action(),
                             ": Berth can fail a job, or count a retry, by the exit code, and "
                             "ignores disruptions"));
    }
    if (rule.action() == "FailJob" && in_.has_backoff_limit_per_index())
      document_.Warn(path, "FailJob ends the index; the others end by maxFailedIndexes");
    AddRule(path, rule.on_exit_codes(), fails, group);
  }

  void AddRule(const std::string& path, const kubernetes::v1::OnExitCodes& codes, bool fails,
               v1::TaskGroup* group) {
    job_.Place(absl::StrCat("spec.groups[0].policies[", group->policies_size(), "]"), path);
    v1::LifecyclePolicy& policy = *group->add_policies();
    policy.set_event(v1::LifecyclePolicy::TASK_FAILED);
    policy.set_action(fails ? v1::LifecyclePolicy::ABORT : v1::LifecyclePolicy::RESTART_TASK);
    const std::set<int32_t> named(codes.values().begin(), codes.values().end());
    if (codes.operator_() == "In") {
      for (const int32_t code : named) policy.add_exit_codes(code);
    } else if (codes.operator_() == "NotIn") {
      for (int32_t code = 1; code <= kGreatestExitCode; ++code) {
        if (named.count(code) == 0) policy.add_exit_codes(code);
      }
    } else {
      document_.Error(path,
                      absl::StrCat("operator \"", codes.operator_(), "\" is not In or NotIn"));
    }
  }

  const std::string& path_;
  const kubernetes::v1::JobSpec& in_;
  ForeignJob& job_;
  ForeignDocument& document_;
  v1::JobSpec& spec_;
  PodSurroundings surroundings_;
};

}  // namespace

void ConvertKubernetesJobSpec(const std::string& path, const kubernetes::v1::JobSpec& spec,
                              bool queued_by_kueue, ForeignJob* job) {
  KubernetesJobConverter(path, spec, *job).Convert(queued_by_kueue);
}

void CheckJobRestartPolicy(const std::string& path, const kubernetes::v1::PodSpec& pod,
                           ForeignDocument* document) {
  const std::string& policy = pod.restart_policy();
  if (policy.empty()) return document->Missing(path, "restartPolicy");
  if (policy == "Never" || policy == "OnFailure") return;
  document->Error(path + ".restart_policy",
                  absl::StrCat("restartPolicy \"", policy, "\" is not Never or OnFailure"));
}

void ReadKubernetesJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::Job in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata("metadata", in.metadata());
  ConvertKubernetesJobSpec("spec", in.spec(), queued_by_kueue, &job);
  job.Finish();
}

}  // namespace berth
