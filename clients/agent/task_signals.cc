#include "clients/agent/task_signals.h"

#include <signal.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "support/proto_time.h"

namespace berth {

int SignalNumber(const std::string& name) {
  int number = 0;
  if (absl::SimpleAtoi(name, &number)) return number > 0 && number < NSIG ? number : 0;
  const absl::string_view bare = absl::StripPrefix(name, "SIG");
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && bare == known) return signal;
  }
  return 0;
}

int StopSignal(const v1::TaskLaunch& launch) {
  const int signal = SignalNumber(launch.kill_signal());
  if (signal != 0) return signal;
  return launch.terminal() ? SIGHUP : SIGTERM;
}

absl::Duration StopGrace(const v1::TaskLaunch& launch) { return DurationFrom(launch.kill_grace()); }

}  // namespace berth
