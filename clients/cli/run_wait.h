// Waits for a job that somebody has just submitted and looks at.
#ifndef BERTH_CLIENTS_CLI_RUN_WAIT_H_
#define BERTH_CLIENTS_CLI_RUN_WAIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "clients/cli/session.h"

namespace berth {

struct RunWait {
  std::optional<ExitCode> code;  // whoever waited has given up, or the server refused
  std::optional<v1::Job> ended;
  bool alone = false;    // the job has only this task
  std::string task;      // GROUP-INDEX of rank 0
  uint32_t attempt = 0;  // of it, that runs or has ended; 0: it has never run
};

// Until the task of rank 0 runs in an attempt after `after`, or the job has ended. On a terminal
// one line shows the job's place in its queue and when it may start; Ctrl-C asks whether to cancel
// the job. Elsewhere each state is a line, and Ctrl-C cancels the job.
RunWait WaitForRun(Session& session, const std::string& job, uint32_t after);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_RUN_WAIT_H_
