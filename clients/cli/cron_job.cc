// CronJobs of Kubernetes and Volcano. Berth has no schedules yet: the job template is read and
// checked like any job, and the CronJob is refused.
#include "absl/strings/str_cat.h"
#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubernetes_job.h"
#include "clients/cli/volcano_job.h"

namespace berth {
namespace {

// Makes a schedule of the job that the template became. `spec` is a CronJobSpec of either kind:
// schedule, time_zone, starting_deadline_seconds, concurrency_policy, suspend and the history
// limits have the same names in both.
template <class Spec>
void ConvertSchedule(const Spec& spec, ForeignJob* job) {
  const std::string& policy = spec.concurrency_policy();
  if (!policy.empty() && policy != "Allow" && policy != "Forbid" && policy != "Replace") {
    job->document().Error(
        "spec.concurrency_policy",
        absl::StrCat("concurrencyPolicy \"", policy, "\" is not Allow, Forbid or Replace"));
  }
  if (spec.schedule().empty()) job->document().Missing("spec", "schedule");
  job->document().Error("spec.schedule",
                        "a CronJob needs schedules, which Berth does not have yet: submit its job "
                        "template by cron or a timer of systemd");
}

}  // namespace

void ReadKubernetesCronJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  kubernetes::v1::CronJob in;
  document.Read(&in);
  ForeignJob job(document);
  kubernetes::v1::Metadata metadata = in.spec().job_template().metadata();
  metadata.set_name(in.metadata().name());
  const bool queued_by_kueue = job.ConvertMetadata("spec.job_template.metadata", metadata);
  ConvertKubernetesJobSpec("spec.job_template.spec", in.spec().job_template().spec(),
                           queued_by_kueue, &job);
  ConvertSchedule(in.spec(), &job);
}

void ReadVolcanoCronJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  volcano::v1::CronJob in;
  document.Read(&in);
  ForeignJob job(document);
  kubernetes::v1::Metadata metadata = in.spec().job_template().metadata();
  metadata.set_name(in.metadata().name());
  job.ConvertMetadata("spec.job_template.metadata", metadata);
  ConvertVolcanoJobSpec("spec.job_template.spec", in.spec().job_template().spec(), &job);
  ConvertSchedule(in.spec(), &job);
}

}  // namespace berth
