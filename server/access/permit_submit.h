// Whether a caller may submit the jobs of a request.
#ifndef BERTH_SERVER_ACCESS_PERMIT_SUBMIT_H_
#define BERTH_SERVER_ACCESS_PERMIT_SUBMIT_H_

#include "absl/status/status.h"
#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"
#include "server/access/permit.h"

namespace berth {

// INVALID_ARGUMENT: a name that no user can have.
absl::Status ValidateOnBehalfOf(const v1::SubmitJobsRequest& request);

// The method's verb in each queue that the jobs name, and job.submitFor if they are for another
// user. Queues that do not exist are left to the validation. Reader lock or loop thread.
absl::Status PermitSubmit(const ClusterState& state, Rights& rights, Rpc rpc,
                          const v1::SubmitJobsRequest& request);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_PERMIT_SUBMIT_H_
