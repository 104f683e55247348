#include "server/commands/job_change.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/requeue.h"
#include "core/model/pauses.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/lifecycle.h"
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
  const Duration ran = RunTime(job.status, now);
  if (walltime > ran) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", Quoted(job.name), " has run for ",
                   absl::FormatDuration(absl::Trunc(ran, absl::Seconds(1))),
                   " already; give it a longer walltime, or cancel it"));
}

MaybeEvent SuspensionOf(const Job& job, bool suspended) {
  const bool stops = suspended && job.status.pause.wanted;
  if (job.status.suspended == suspended && !stops) return std::nullopt;
  if (Ended(job.status.state) || job.status.state == JobState::kCompleting) {
    return absl::FailedPreconditionError(absl::StrCat("job ", Quoted(job.name), " has ended"));
  }
  return std::optional<EventBody>(JobSuspended{job.id, suspended});
}

MaybeEvent ResumeOf(const ClusterState& state, const Job& job) {
  if (job.status.suspended || !Yields(job.status)) return SuspensionOf(job, false);
  const Job* other = state.jobs().Find(job.status.pause.beneficiary);
  return absl::FailedPreconditionError(
      absl::StrCat("job ", Quoted(job.name), " is paused for job ",
                   other == nullptr ? "of higher priority" : Quoted(other->name),
                   ", and not by its user: it goes on once its CPU is free"));
}

namespace {

absl::Status CanFreeze(const ClusterState& state, const Job& job) {
  if (Ended(job.status.state) || job.status.state == JobState::kCompleting) return HasEnded(job);
  if (job.series) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", Quoted(job.name), " is an array or a schedule: it has no tasks to freeze"));
  }
  if (job.status.state != JobState::kRunning) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", Quoted(job.name), " does not run: it is ",
                     ShortName(v1::JobState_Name(JobStateToApi(job.status.state)), "JOB_"),
                     "; only a running job can be frozen"));
  }
  if (const Node* node = NodeWithoutFreezer(state, job); node != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", node->spec.name, " cannot freeze the tasks of job ", Quoted(job.name),
                     ": its agent uses no control groups, or is of an older version"));
  }
  return absl::OkStatus();
}

}  // namespace

MaybeEvent FreezeOf(const ClusterState& state, const Job& job, uint32_t store_format) {
  if (job.status.suspended && job.status.pause.wanted) return std::nullopt;
  if (store_format < kFormatOfSeries) {
    return absl::FailedPreconditionError(
        absl::StrCat("a job can be frozen from store format ", kFormatOfSeries,
                     " on, and the store has ", store_format, ": run `berth cluster finalize`"));
  }
  if (job.status.suspended) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", Quoted(job.name), " is suspended, and its tasks are being stopped"));
  }
  if (absl::Status status = CanFreeze(state, job); !status.ok()) return status;
  return std::optional<EventBody>(JobSuspended{.id = job.id, .suspended = true, .freeze = true});
}

absl::StatusOr<std::vector<EventBody>> RequeueEventsOf(const Turn& turn, const Job& job,
                                                       absl::string_view by) {
  if (Ended(job.status.state) || job.status.state == JobState::kCompleting) return HasEnded(job);
  if (job.status.cancelled) {
    return absl::FailedPreconditionError(absl::StrCat("job ", Quoted(job.name), " is cancelled"));
  }
  if (job.series) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", Quoted(job.name), " makes jobs: requeue those, by name"));
  }
  return RequeueOf(turn.state(), job, turn.policies().lifecycle(), turn.now(),
                   absl::StrCat("requeued", by.empty() ? "" : " by ", by));
}

}  // namespace berth
