// Waiting for jobs to end, and following what happens.
#ifndef BERTH_CLIENTS_CLI_JOB_WAIT_H_
#define BERTH_CLIENTS_CLI_JOB_WAIT_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

enum class WaitFor { kAll, kAny };

// Waits until all of the jobs, or one of them, have ended, and prints how each ended. kOk if all
// that ended Succeeded, kJobFailed if one did not, kWaitTimeout after `timeout`.
ExitCode WaitForJobs(Session& session, const std::vector<std::string>& names, WaitFor what,
                     absl::Duration timeout);
ExitCode WaitForJob(Session& session, const std::string& name, absl::Duration timeout);

// Prints a line (with -o json an object) for each change of these jobs, or of all jobs if none is
// named. Returns when every named job has ended.
ExitCode FollowJobs(Session& session, const std::vector<std::string>& names);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_WAIT_H_
