// What the agent tells a supervisor, and what the supervisor leaves for the agent: two small files
// in the task's directory, of NUL-terminated "key=value" fields. Standard library only; both
// programs link this.
//
//   TASK_DIR/spec      written by the agent before it spawns the supervisor
//   TASK_DIR/lock      flock held as long as the supervisor lives; taken by the agent, handed over
//   as fd 3 TASK_DIR/control   FIFO: "SIGNAL GRACE_MS CAUSE\n" stops the task TASK_DIR/status
//   replaced atomically, synced: first running or refused, then exited TASK_DIR/stdout.OFFSET,
//   stderr.OFFSET, order.RECORD   see log_writer.h
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

inline constexpr int kSupervisorLockFd = 3;

struct SupervisorSpec {
  std::string user;  // empty: stay who the agent is
  bool allow_root = false;
  std::string directory;  // where the command starts
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  int64_t log_file_bytes = int64_t{16} << 20;
  int64_t log_files = 4;   // per stream
  std::string lease_file;  // empty: not a strict task. Else i64 CLOCK_BOOTTIME nanoseconds: kill
                           // the task then
  int64_t lapse_signal = 15;
  int64_t lapse_grace_ms = 0;
};

struct SupervisorStatus {
  enum Phase : int64_t { kNone = 0, kRunning = 1, kRefused = 2, kExited = 3 };
  int64_t phase = kNone;
  int64_t supervisor_pid = 0;
  int64_t pid = 0;  // of the command, and its process group
  int64_t exit_code = 0;
  int64_t exit_signal = 0;
  int64_t cause = 0;  // berth.v1.TaskReport.Cause
  std::string message;
};

std::string EncodeSpec(const SupervisorSpec& spec);
bool DecodeSpec(const std::string& text, SupervisorSpec* spec);
std::string EncodeStatus(const SupervisorStatus& status);
bool DecodeStatus(const std::string& text, SupervisorStatus* status);

// Whole files. Errors are errno values, 0 = fine.
int ReadWholeFile(const std::string& path, std::string* out);
// Temporary file, fsync, rename, fsync of the directory.
int WriteFileAtomically(const std::string& directory, const std::string& name,
                        const std::string& data);

// Nanoseconds of CLOCK_BOOTTIME.
int64_t BoottimeNs();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
