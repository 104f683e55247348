// What a request for one job means, given the job: the event that it becomes, none if the job is so
// already, or why it cannot be.
#ifndef BERTH_SERVER_JOB_CHANGE_H_
#define BERTH_SERVER_JOB_CHANGE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"
#include "core/model/event.h"

namespace berth {

using MaybeEvent = absl::StatusOr<std::optional<EventBody>>;

// FAILED_PRECONDITION once it has ended otherwise. `by`: who asks, empty if the connection does not
// tell; a cancel by force names them in the job's message.
MaybeEvent CancelOf(const Job& job, const v1::CancelJobRequest& request, absl::string_view by);
// The job may have that walltime from `now` on. FAILED_PRECONDITION once it has ended, or where its
// start has run that long.
absl::Status CheckWalltime(const Job& job, Duration walltime, Time now);
// Or, with `suspended` false, its end. FAILED_PRECONDITION once its outcome is decided.
MaybeEvent SuspensionOf(const Job& job, bool suspended);

}  // namespace berth

#endif  // BERTH_SERVER_JOB_CHANGE_H_
