// Waiting for a job to end, and following what happens.
#ifndef BERTH_CLIENTS_CLI_JOB_WAIT_H_
#define BERTH_CLIENTS_CLI_JOB_WAIT_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// Waits until the job has ended and tells how. kOk if it Succeeded, kJobFailed if not, kWaitTimeout
// after `timeout`.
ExitCode WaitForJob(Session& session, const std::string& name, absl::Duration timeout);

// Prints a line (with -o json an object) for each change of these jobs, or of all if none is named;
// ends when every named job has.
ExitCode FollowJobs(Session& session, const std::vector<std::string>& names);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_WAIT_H_
