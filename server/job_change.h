// What a request for one job means, given the job: the event that it becomes, none if the job is so
// already, or why it cannot be.
#ifndef BERTH_SERVER_JOB_CHANGE_H_
#define BERTH_SERVER_JOB_CHANGE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/event.h"

namespace berth {

using MaybeEvent = absl::StatusOr<std::optional<EventBody>>;

// FAILED_PRECONDITION once it has ended otherwise.
MaybeEvent CancelOf(const Job& job, const std::string& reason);
// Or, with `suspended` false, its end. FAILED_PRECONDITION once its outcome is decided.
MaybeEvent SuspensionOf(const Job& job, bool suspended);

}  // namespace berth

#endif  // BERTH_SERVER_JOB_CHANGE_H_
