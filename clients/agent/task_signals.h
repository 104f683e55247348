// The signals that stop a task.
#ifndef BERTH_CLIENTS_AGENT_TASK_SIGNALS_H_
#define BERTH_CLIENTS_AGENT_TASK_SIGNALS_H_

#include <string>

#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"

namespace berth {

// "SIGTERM", "TERM", "15" -> 15; 0 if it is not a signal.
int SignalNumber(const std::string& name);
// What the job asked for; SIGTERM if that is no signal. With a terminal SIGHUP, as if it were
// closed: a shell that somebody types into ignores SIGTERM.
int StopSignal(const v1::TaskLaunch& launch);
// Without kill_signal.
inline const char* StopSignalName(const v1::TaskLaunch& launch) {
  return launch.terminal() ? "SIGHUP" : "SIGTERM";
}
absl::Duration StopGrace(const v1::TaskLaunch& launch);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_SIGNALS_H_
