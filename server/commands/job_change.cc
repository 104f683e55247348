#include "server/commands/job_change.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/text.h"

namespace berth {

namespace {

absl::Status HasEnded(const Job& job) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", Quoted(job.name),
      " has ended: ", ShortName(v1::JobState_Name(JobStateToApi(job.status.state)), "JOB_")));
}

std::string ForcedReason(const std::string& reason, absl::string_view by) {
  return absl::StrCat("cancelled by force", by.empty() ? "" : " by ", by,
                      reason.empty() ? "" : ": ", reason);
}

bool AnyLost(const Job& job) {
  return job.occupying > 0 && std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.state == TaskState::kLost;
         });
}

}  // namespace

MaybeEvent CancelOf(const Job& job, const v1::CancelJobRequest& request, absl::string_view by) {
  const JobStatus& status = job.status;
  const bool forced = status.forced && !AnyLost(job);  // a repeated request ends tasks lost since
  const bool wished = status.cancelled && (forced || !request.force());
  if (wished || status.state == JobState::kCancelled) return std::nullopt;
  if (Ended(status.state)) return HasEnded(job);
  if (!request.force()) return std::optional<EventBody>(JobCancelled{job.id, request.reason()});
  return std::optional<EventBody>(
      JobCancelled{job.id, ForcedReason(request.reason(), by), /*force=*/true});
}

absl::Status CheckWalltime(const Job& job, Duration walltime, Time now) {
  if (Ended(job.status.state)) return HasEnded(job);
  if (job.series || job.status.state != JobState::kRunning) return absl::OkStatus();
  const Duration ran = now - job.status.start;
  if (walltime > ran) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", Quoted(job.name), " has run for ",
                   absl::FormatDuration(absl::Trunc(ran, absl::Seconds(1))),
                   " already; give it a longer walltime, or cancel it"));
}

MaybeEvent SuspensionOf(const Job& job, bool suspended) {
  if (job.status.suspended == suspended) return std::nullopt;
  if (Ended(job.status.state) || job.status.state == JobState::kCompleting) {
    return absl::FailedPreconditionError(absl::StrCat("job ", Quoted(job.name), " has ended"));
  }
  return std::optional<EventBody>(JobSuspended{job.id, suspended});
}

}  // namespace berth
