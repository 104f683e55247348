// Waiting for jobs to end, and following what happens.
#ifndef BERTH_CLIENTS_CLI_JOB_WAIT_H_
#define BERTH_CLIENTS_CLI_JOB_WAIT_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

enum class WaitFor { kAll, kAny };

// Waits until all of the jobs have ended, or one of them, and tells of each how, as it ends. kOk if
// those that ended Succeeded, kJobFailed if one did not, kWaitTimeout after `timeout`.
ExitCode WaitForJobs(Session& session, const std::vector<std::string>& names, WaitFor what,
                     absl::Duration timeout);
ExitCode WaitForJob(Session& session, const std::string& name, absl::Duration timeout);

// Prints a line (with -o json an object) for each change of these jobs, or of all if none is named;
// ends when every named job has.
ExitCode FollowJobs(Session& session, const std::vector<std::string>& names);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_WAIT_H_
