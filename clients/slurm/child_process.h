// Starts the processes of a job, and takes signals as events.
#ifndef BERTH_CLIENTS_SLURM_CHILD_PROCESS_H_
#define BERTH_CLIENTS_SLURM_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

struct ChildProcess {
  std::vector<std::string> arguments;    // the first is looked up in the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string directory;                 // "": this process's
  int in = -1, out = -1, err = -1;       // its descriptors; -1: /dev/null
};

// Its process id. Signals have their default actions in it. NOT_FOUND, PERMISSION_DENIED: it cannot
// be executed.
absl::StatusOr<pid_t> StartChild(const ChildProcess& child);

// "/usr/bin/env python" of a script's first line "#!/usr/bin/env python"; empty if it has none.
std::vector<std::string> InterpreterOf(absl::string_view script);

// While it exists, these signals come as events of `fd` instead: those that end or inform a
// process, and SIGCHLD.
class SignalEvents {
 public:
  SignalEvents();
  ~SignalEvents();
  SignalEvents(const SignalEvents&) = delete;
  SignalEvents& operator=(const SignalEvents&) = delete;

  int fd() const { return fd_; }
  // The next one; 0: none is there.
  int Take();

 private:
  int fd_ = -1;
};

// What a process's end is as an exit code: 128 + N for signal N.
int ExitCodeOfWait(int status);
// Ends this process as the other one ended.
[[noreturn]] void EndLike(int status);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_CHILD_PROCESS_H_
