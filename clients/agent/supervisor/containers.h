// The containers of a task (berth.v1.Container) in its supervisor: steps before its command, and
// processes beside it. Each has a directory TASK_DIR/containers/NAME with a specification, status
// and output of its own, as a task has, and shares the task's control group, scratch directory and
// shared memory.
//
//   list:   init fetch   sidecar proxy   init warm   peer push
//   order:  fetch runs to its end; proxy starts; warm runs to its end; push starts, and the command
//
// What this class says is a fact; the supervisor decides what it means for the task.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_CONTAINERS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_CONTAINERS_H_

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/agent/supervisor/log_writer.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

// Why a container ends the task.
struct ContainerFailure {
  bool refused = false;  // it could not be started, and nothing of the task ran before
  bool own_fault = false;
  int exit_code = 0;
  int exit_signal = 0;
  std::string message;
};

class TaskContainers {
 public:
  TaskContainers();
  ~TaskContainers();
  TaskContainers(const TaskContainers&) = delete;
  TaskContainers& operator=(const TaskContainers&) = delete;

  // Reads the specifications, and opens pipes and logs. Returns an errno.
  int Open(const std::string& task_directory, const SupervisorSpec& task);
  bool Exist() const { return !all_.empty(); }

  // Starts what is due, in order. Nothing more once an init step runs.
  std::optional<ContainerFailure> Advance(int64_t now_ns);
  // All steps are over, and all others have been started: the command may start.
  bool Ready() const;
  // Of a process that has ended: whether it is a container's.
  bool Owns(pid_t pid) const;
  // Such a process has ended. `ending`: the task ends, so nothing is started again and nothing
  // fails.
  std::optional<ContainerFailure> OnExit(pid_t pid, int wait_status, int64_t now_ns, bool ending);
  // Any process of this supervisor has ended, and its number may be used again.
  void Forget(pid_t pid);
  // Steps that take too long are killed. Starts sidecars again.
  std::optional<ContainerFailure> CheckTime(int64_t now_ns, bool ending);
  int64_t NextNs() const;  // 0: no time to look at

  bool PeersRun() const;
  bool AnyRuns() const;
  void Signal(int signal) const;  // to the process groups of all that run
  void SignalPeers(int signal) const;

  void AddTo(std::vector<pollfd>* fds) const;
  void ReadOutput(int64_t unix_ms);
  // No process remains: reads what is left, and writes the statuses.
  void Close(int64_t unix_ms);

 private:
  struct Container;

  std::optional<ContainerFailure> Start(Container& one, int64_t now_ns);
  Container* Find(pid_t pid) const;

  std::vector<std::unique_ptr<Container>> all_;
  bool began_ = false;  // one has been started
};

// "init fetch", "sidecar proxy", "container push": for messages.
std::string ContainerTitle(const SupervisorSpec& spec);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_CONTAINERS_H_
