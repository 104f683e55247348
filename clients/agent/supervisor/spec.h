// What the agent tells a supervisor, and what the supervisor leaves for the agent: two small files
// in the task's directory, of NUL-terminated "key=value" fields. Standard library only; both
// programs link this.
//
//   TASK_DIR/spec      written by the agent before it spawns the supervisor
//   TASK_DIR/lock      flock held as long as the supervisor lives; taken by the agent, handed over
//   as fd 3 TASK_DIR/control   FIFO: "SIGNAL GRACE_MS CAUSE\n" stops the task; with a text behind
//   that the end is the task's own failure, for that reason TASK_DIR/status
//   replaced atomically, synced: first beginning, then running or refused, then exited
//   TASK_DIR/status.spare   while the task lives: room to write its end on a full disk
//   TASK_DIR/stdout.OFFSET, stderr.OFFSET, order.RECORD   see log_writer.h
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

inline constexpr int kSupervisorLockFd = 3;
inline constexpr char kLongerLeaseSuffix[] = ".longer";

struct SupervisorSpec {
  std::string user;  // empty: stay who the agent is
  bool allow_root = false;
  std::string directory;          // where the command starts
  std::vector<std::string> argv;  // references to variables are not expanded yet: expand.h
  std::vector<std::string> env;   // "NAME=value"
  int64_t log_file_bytes = int64_t{16} << 20;
  int64_t log_files = 4;  // per stream
  // And beside it, with kLongerLeaseSuffix, the end of a longer lease.
  std::string lease_file;  // empty: not a strict task. Else i64 CLOCK_BOOTTIME nanoseconds: kill
                           // the task then
  int64_t lapse_signal = 15;
  int64_t lapse_grace_ms = 0;
  std::vector<std::string> groups;  // control group of the task: control_group.h
  int64_t memory_bytes = 0;         // what it was given, for messages
  int64_t data_limit_bytes = 0;     // RLIMIT_DATA, where there is no group; 0 = none
  std::string cpus;                 // "0-3,8": affinity, where there is no group; empty = any
  std::string memory_nodes;  // "0,1": NUMA nodes that its memory is taken from first; empty = any
  // Mounted over /tmp and /var/tmp, in a mount namespace of the task's own; empty: none.
  std::string tmp, var_tmp;
  // The task has processes of its own: a PID namespace and a /proc that shows nothing else.
  bool own_pids = false;
  int64_t first_pid = 0;  // PIDs there begin behind this one, if the kernel can do that
  // The job's /dev/shm and IPC namespace (shared_memory.h), made `shm_bytes` larger for this task;
  // empty: the machine's.
  std::string shm;
  int64_t shm_bytes = 0;
  int64_t shm_most_bytes = 0;  // of all tasks of the job
  // With the machine's: what tasks of this user leave there is removed, by this record
  // (shared_things.h); 0 = nothing is.
  int64_t sweep_uid = 0;
  std::string sweep_record;
  // Removed with all that is in them when nothing of the task is left.
  std::vector<std::string> remove;
  // Programs around the task, run as the supervisor's user in hook_env; empty: none.
  std::vector<std::string> prolog, epilog, hook_env;
  int64_t prolog_ms = 0, epilog_ms = 0;  // then they are killed
  // The command is a container runtime: it stays who the supervisor is, and drops privileges by
  // itself. exec_argv: what runs a command inside, before the command's own arguments.
  bool container = false;
  std::vector<std::string> exec_argv, exec_tty_argv;
  // The supervisor says so before it starts the command (SupervisorStatus::kBeginning): where no
  // status is, nothing of the command ran.
  bool marks_beginning = false;
};

struct SupervisorStatus {
  // kBeginning is not synced, and need not be: what it tells apart is told only while the machine
  // has not booted since.
  enum Phase : int64_t { kNone = 0, kRunning = 1, kRefused = 2, kExited = 3, kBeginning = 4 };
  int64_t phase = kNone;
  int64_t supervisor_pid = 0;
  int64_t pid = 0;  // of the command, and its process group
  int64_t exit_code = 0;
  int64_t exit_signal = 0;
  int64_t cause = 0;  // berth.v1.TaskReport.Cause
  std::string message;
  bool own_fault = false;    // kRefused: for what the job brought along
  bool has_output = false;   // kRefused: a prolog wrote something
  std::string node_problem;  // what the task's end tells of the node: the epilog failed
  bool takes_reasons = false;  // knows orders with a text; older supervisors pass over the text
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
// The same without the two fsyncs: whoever reads it sees it, as long as the machine does not boot.
int ReplaceFile(const std::string& directory, const std::string& name, const std::string& data);
// Room of kSpareBytes for NAME, in a file beside it, for when the disk is full.
inline constexpr size_t kSpareBytes = 4096;
int MakeSpare(const std::string& directory, const std::string& name);
// As WriteFileAtomically, in that room, which is then gone. ENOSPC for more than fits.
int WriteIntoSpare(const std::string& directory, const std::string& name, const std::string& data);
void RemoveSpare(const std::string& directory, const std::string& name);

// Nanoseconds of CLOCK_BOOTTIME.
int64_t BoottimeNs();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
