// CronJobs of Kubernetes and Volcano: schedules.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubernetes_job.h"
#include "clients/cli/volcano_job.h"

namespace berth {
namespace {

constexpr int32_t kKubernetesHistory = 3;  // its default of jobs that succeeded
constexpr int32_t kKubernetesFailedHistory = 1;

// Name and namespace of the CronJob, labels and annotations of both: the template's come first.
kubernetes::v1::Metadata MetadataOf(const kubernetes::v1::Metadata& of_cron_job,
                                    const kubernetes::v1::Metadata& of_template) {
  kubernetes::v1::Metadata metadata = of_cron_job;
  for (const auto& label : of_template.labels()) {
    (*metadata.mutable_labels())[label.first] = label.second;
  }
  for (const auto& annotation : of_template.annotations()) {
    (*metadata.mutable_annotations())[annotation.first] = annotation.second;
  }
  return metadata;
}

// Makes a schedule of the job that the template became. `spec` is a CronJobSpec of either kind:
// schedule, time_zone, starting_deadline_seconds, concurrency_policy, suspend and the history
// limits have the same names in both.
template <class Spec>
void ConvertSchedule(const Spec& spec, ForeignJob* job) {
  v1::Schedule& schedule = *job->spec().mutable_schedule();
  if (spec.schedule().empty()) job->document().Missing("spec", "schedule");
  schedule.set_cron(spec.schedule());
  schedule.set_time_zone(spec.time_zone());
  job->Place("spec.schedule", "spec");
  job->Place("spec.schedule.cron", "spec.schedule");
  job->Place("spec.schedule.time_zone", "spec.time_zone");
  const std::string& policy = spec.concurrency_policy();
  if (policy.empty() || policy == "Allow") {
    schedule.set_overlap(v1::Schedule::ALLOW);
  } else if (policy == "Forbid") {
    schedule.set_overlap(v1::Schedule::FORBID);
  } else if (policy == "Replace") {
    schedule.set_overlap(v1::Schedule::REPLACE);
  } else {
    job->document().Error(
        "spec.concurrency_policy",
        absl::StrCat("concurrencyPolicy \"", policy, "\" is not Allow, Forbid or Replace"));
  }
  if (spec.has_starting_deadline_seconds()) {
    schedule.mutable_start_deadline()->set_seconds(spec.starting_deadline_seconds());
    job->Place("spec.schedule.start_deadline", "spec.starting_deadline_seconds");
  }
  // Berth keeps the last ones, however they ended.
  const int32_t succeeded = spec.has_successful_jobs_history_limit()
                                ? spec.successful_jobs_history_limit()
                                : kKubernetesHistory;
  const int32_t failed = spec.has_failed_jobs_history_limit() ? spec.failed_jobs_history_limit()
                                                              : kKubernetesFailedHistory;
  schedule.set_history(std::max(succeeded, failed));
  job->Place("spec.schedule.history", "spec.successful_jobs_history_limit");
  if (job->spec().suspended()) {
    job->document().Error("spec.job_template",
                          "jobs that begin suspended: suspend the CronJob instead");
  }
  job->ConvertSuspend("spec.suspend", spec.suspend(), /*queued_by_kueue=*/false);
  job->Finish();
}

}  // namespace

void ReadKubernetesCronJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::CronJob in;
  document.Read(&in);
  ForeignJob job(document);
  const bool queued_by_kueue = job.ConvertMetadata(
      "metadata", MetadataOf(in.metadata(), in.spec().job_template().metadata()));
  ConvertKubernetesJobSpec("spec.job_template.spec", in.spec().job_template().spec(),
                           queued_by_kueue, &job);
  ConvertSchedule(in.spec(), &job);
}

void ReadVolcanoCronJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  volcano::v1::CronJob in;
  document.Read(&in);
  ForeignJob job(document);
  job.ConvertMetadata("metadata", MetadataOf(in.metadata(), in.spec().job_template().metadata()));
  ConvertVolcanoJobSpec("spec.job_template.spec", in.spec().job_template().spec(),
                        in.metadata().namespace_(), &job);
  ConvertSchedule(in.spec(), &job);
}

}  // namespace berth
