// Holds one task for its whole life: starts it, captures its output, stops it on request or when
// the lease lapses, and writes its exit status to disk. It outlives the agent, and the task does
// not outlive it.
//
//   prolog -> task -> (all its processes are killed) -> epilog -> status file
//
// With containers (containers.h), "task" is: their init steps, then the command beside the others,
// then a grace for those that still run. A failure of any of them is the task's.
//
// One thread, one poll loop. This process reaps all descendants of the task (subreaper); with a
// control group, everything in it belongs to the task. Both are empty before the exit status is
// written. Prolog and epilog are the node's hooks, each with a timeout: if the prolog fails, the
// task is refused; if the epilog fails, the status reports a problem of the node. An epilog follows
// every prolog and every task.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/agent/supervisor/containers.h"
#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/device_saver.h"
#include "clients/agent/supervisor/log_writer.h"
#include "clients/agent/supervisor/notify_socket.h"
#include "clients/agent/supervisor/output_pipes.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "clients/agent/supervisor/shared_things.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/supervisor/terminal.h"

namespace berth {

class Supervisor {
 public:
  explicit Supervisor(std::string directory);
  // Runs until no process of the task remains and its status is on disk. Returns the exit code.
  int Run();

 private:
  // kStarting: init steps run, the command does not yet. kEnding: how the task ends is known, and
  // its other processes have a grace.
  enum class Phase {
    kProlog,
    kStarting,
    kRunning,
    kEnding,
    kCleaning,
    kEpilog,
    kCleaningEpilog,
    kDone
  };

  bool OpenFiles();
  void Begin();
  bool MarkBeginning();
  void StartTask();
  void AdvanceContainers();
  void StartCommand();
  bool IsUnderWay() const;
  void FailBy(const ContainerFailure& failure);
  void EndContainers();
  void OnContainerExit(pid_t pid, int wait_status);
  bool HoldSharedMemory();
  bool MakeHosts();
  bool OpenNotify();
  bool OpenTerminal();
  void ReleaseSharedMemory();
  bool StartHook(const std::vector<std::string>& argv, int64_t timeout_ms, Phase phase);
  void OnPrologExit(int wait_status);
  void Clean(Phase phase);
  void BeginEpilog();
  void OnEpilogExit(int wait_status);
  void OnAllExited();
  void Finish();
  void RemoveDirectories();
  void Note(const std::string& text);
  void Loop();
  void Wait(bool* notified);
  int64_t NextDeadlineNs() const;
  void ArmTimer();
  void ReadOutput();
  void PrintTerminal(std::string_view data);
  void ReadControl();
  void Command(const std::string& line);
  void SendSignal(int signal);
  void Stop(int signal, int64_t grace_ms, int64_t cause);
  // supervisor_freeze.cc
  void Freeze(int64_t request, bool saves);
  void Thaw();
  void CheckFrozen(int64_t now);
  void GoOn(int64_t now);
  void Restored(int64_t now);
  bool TellFrozen(int64_t now);
  void OnSaverExit(int wait_status);
  bool MainEnded() const;
  void NoteDisk();
  void CheckDeadlines();
  void ReadLease();
  void Reap();
  void OnMainExit(int wait_status);
  void OnTaskExit(int wait_status);
  void RecordEnd(int exit_code, int exit_signal);
  void KillNow();
  void EndTerminal();
  void KillStragglers();
  void WriteStatus();

  const std::string directory_;
  SupervisorSpec spec_;
  SupervisorStatus status_;
  std::optional<LogWriter> log_;
  OutputPipes pipes_;  // of the command, prolog and epilog
  TaskContainers containers_;
  ControlGroup group_;
  DeviceSaver saver_{spec_, group_};
  NotifySocket notify_;
  Terminal terminal_;  // closed: the task has none
  std::optional<SharedMemory> shared_memory_;
  std::optional<SharedThingsRecord> shared_things_;  // of its user, in the machine's shared memory
  Phase phase_ = Phase::kRunning;
  pid_t main_pid_ = 0;  // prolog, command or epilog; leader of its process group; 0: none runs
  int64_t end_phase_ = SupervisorStatus::kExited;  // the final phase in the status
  bool hook_timed_out_ = false;
  int signal_fd_ = -1;
  int timer_fd_ = -1;
  int control_fd_ = -1;
  int lease_fd_ = -1;
  int longer_fd_ = -1;
  std::string control_buffer_;
  int64_t hook_end_ns_ = 0;    // 0 = no hook runs
  int64_t kill_at_ns_ = 0;     // 0 = not stopping
  int64_t lease_end_ns_ = 0;   // 0 = no lease to watch
  int64_t lease_look_ns_ = 0;  // when to read it again, at its end or before
  int64_t next_sweep_ns_ = 0;
  int64_t stop_cause_ = 0;
  int64_t freeze_request_ = 0;  // by which the task is frozen, or shall be; 0 = it is not
  int64_t freeze_look_ns_ = 0;  // when to look whether it is; 0 = known
  bool freeze_saves_ = false;   // what it has on its GPUs is saved first
  int64_t save_tried_ = 0;      // by that request
  int restore_tries_ = 0;       // that have failed, since it shall go on
  // Its status says that its devices are saved, and no order to go on has come since: others may
  // use them.
  bool devices_lent_ = false;
  std::string failure_;  // why the agent ends the task, as the task's own failure
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_
