// Holds one task for its whole life: starts it, captures its output, stops it when told or when the
// lease lapses, leaves its exit status on disk. It outlives the agent, and the task does not
// outlive it.
//
// One thread, one poll loop. Everything that descends from the task is this process's to reap
// (subreaper), and is gone before the exit status is written.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "clients/agent/supervisor/log_writer.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

class Supervisor {
 public:
  explicit Supervisor(std::string directory);
  // Until nothing of the task is left and its status is on disk. The process's exit code.
  int Run();

 private:
  enum class Phase { kRunning, kCleaning, kDone };

  bool OpenFiles();
  bool Launch();
  void Loop();
  int64_t NextDeadlineNs() const;
  void ArmTimer();
  void ReadOutput(int* fd, OutputStream stream);
  void ReadControl();
  void Command(const std::string& line);
  void Stop(int signal, int64_t grace_ms, int64_t cause);
  void CheckDeadlines();
  void ReadLease();
  void Reap();
  void OnMainExit(int wait_status);
  void KillStragglers();
  void WriteStatus();

  const std::string directory_;
  SupervisorSpec spec_;
  SupervisorStatus status_;
  std::optional<LogWriter> log_;
  Phase phase_ = Phase::kRunning;
  int signal_fd_ = -1;
  int timer_fd_ = -1;
  int control_fd_ = -1;
  int lease_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  std::string control_buffer_;
  int64_t kill_at_ns_ = 0;    // 0 = not stopping
  int64_t lease_end_ns_ = 0;  // 0 = no lease to watch
  int64_t next_sweep_ns_ = 0;
  int64_t stop_cause_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SUPERVISOR_H_
