// Translates a request about one job into an event: none if the job is already in that state, or an
// error if it is not possible.
#ifndef BERTH_SERVER_COMMANDS_JOB_CHANGE_H_
#define BERTH_SERVER_COMMANDS_JOB_CHANGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "server/loop/turn.h"

namespace berth {

using MaybeEvent = absl::StatusOr<std::optional<EventBody>>;

// FAILED_PRECONDITION once it has ended with another outcome. `by`: the client, empty if the
// connection does not identify it; a forced cancel names it in the job's message.
MaybeEvent CancelOf(const Job& job, const v1::CancelJobRequest& request, absl::string_view by);
// Checks whether the job may have that walltime from `now` on. FAILED_PRECONDITION once it has
// ended, or if its current start has run that long.
absl::Status CheckWalltime(const Job& job, Duration walltime, Time now);
// With `suspended` false: a resume. FAILED_PRECONDITION once its outcome is decided.
MaybeEvent SuspensionOf(const Job& job, bool suspended);
// The same for a user's resume. FAILED_PRECONDITION, too, if its user does not hold it, and it is
// paused for another job: it goes on by itself.
MaybeEvent ResumeOf(const ClusterState& state, const Job& job);
// A suspension that freezes its tasks. FAILED_PRECONDITION unless it runs, on nodes that can freeze
// tasks, and in a store of an older format.
MaybeEvent FreezeOf(const ClusterState& state, const Job& job, uint32_t store_format);
// The job starts again from its queue: core/engine/lifecycle/requeue.h. `by`: the client, for the
// job's message. FAILED_PRECONDITION once its outcome is decided, and for a series.
absl::StatusOr<std::vector<EventBody>> RequeueEventsOf(const Turn& turn, const Job& job,
                                                       absl::string_view by);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_JOB_CHANGE_H_
