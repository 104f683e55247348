#include "server/job_change.h"

#include "absl/strings/str_cat.h"
#include "server/convert_job.h"
#include "server/convert_values.h"
#include "server/validation/text.h"

namespace berth {

MaybeEvent CancelOf(const Job& job, const std::string& reason) {
  const JobStatus& status = job.status;
  if (status.cancelled || status.state == JobState::kCancelled) return std::nullopt;
  if (Ended(status.state)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", Quoted(job.name),
        " has ended: ", ShortName(v1::JobState_Name(JobStateToApi(status.state)), "JOB_")));
  }
  return std::optional<EventBody>(JobCancelled{job.id, reason});
}

MaybeEvent SuspensionOf(const Job& job, bool suspended) {
  if (job.status.suspended == suspended) return std::nullopt;
  if (Ended(job.status.state) || job.status.state == JobState::kCompleting) {
    return absl::FailedPreconditionError(absl::StrCat("job ", Quoted(job.name), " has ended"));
  }
  return std::optional<EventBody>(JobSuspended{job.id, suspended});
}

}  // namespace berth
