// The API's rules for jobs against the current state.
#ifndef BERTH_SERVER_COMMANDS_JOB_STATE_H_
#define BERTH_SERVER_COMMANDS_JOB_STATE_H_

#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"
#include "server/validation/findings.h"
#include "server/validation/submission.h"

namespace berth {

class Rights;

// `rights`: jobs that the caller may not list do not exist for it, and only queues that it may
// submit to are named; nullptr: it sees all. Queues that do not exist or have children, and
// dependencies on jobs that do not exist, are invalid; closed queues are refused. `dependencies`:
// those that CheckSubmit found in the request. Reader lock or loop thread. Cheap if consecutive
// jobs name the same queue.
void CheckJobsAgainst(const ClusterState& state, Rights* rights,
                      const v1::SubmitJobsRequest& request, const CallDependencies& dependencies,
                      Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_JOB_STATE_H_
