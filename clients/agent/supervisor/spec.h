// The interface between the agent and a supervisor: two small files in the task's directory, of
// NUL-terminated "key=value" fields. Standard library only; both programs link this.
//
//   TASK_DIR/spec      written by the agent before it spawns the supervisor
//   TASK_DIR/lock      flock held by the supervisor for life; taken by the agent, passed as fd 3
//   TASK_DIR/control   FIFO: "SIGNAL GRACE_MS CAUSE\n" stops the task; with a text after that, the
//                      end is the task's own failure, for that reason; GRACE_MS -1 only sends
//                      the signal; -2 freezes the task, and CAUSE is the number of the
//                      request, or thaws it if that is 0; -3 saves what it has on its GPUs
//                      first. A stop thaws it, too
//   TASK_DIR/status    replaced atomically, synced: beginning, then running or refused, then exited
//   TASK_DIR/status.spare   while the task lives: space to write its end on a full disk
//   TASK_DIR/notify    the task's NOTIFY_SOCKET, or where progress/socket is bound in its mounts
//   TASK_DIR/progress/ only the agent's user can enter it. Apart from TASK_DIR, so that a change in
//                      it does not wake an agent that watches TASK_DIR
//     socket           the NOTIFY_SOCKET of a task that has mounts of its own
//     notices          what the task has reported (notify.h), replaced atomically
//   TASK_DIR/hosts     of a job whose tasks have host names: hosts.h
//   TASK_DIR/terminal  the socket of the task's terminal (terminal.h)
//   TASK_DIR/berth/    the task's socket, or where door/in is bound in its mounts
//   TASK_DIR/door/     only the agent's user can enter it; of a task that has mounts of its own
//     in/socket        the task's socket, at which the agent listens
//   TASK_DIR/containers/NAME/  of a container: spec, status and output, as here (containers.h)
//   TASK_DIR/stdout.OFFSET, stderr.OFFSET, order.RECORD   see log_writer.h
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

inline constexpr int kSupervisorLockFd = 3;
// As GRACE_MS in `control`.
inline constexpr int64_t kSignalOnly = -1;
inline constexpr int64_t kFreezeOnly = -2;     // without effect in supervisors of older versions
inline constexpr int64_t kSaveAndFreeze = -3;  // likewise: SupervisorStatus::saves_devices
inline constexpr char kLongerLeaseSuffix[] = ".longer";
// In the task's directory.
inline constexpr char kContainers[] = "/containers/";  // NAME/spec, status and output of each
inline constexpr char kNotifyFile[] = "/notify";
inline constexpr char kProgressDirectory[] = "/progress";
inline constexpr char kNotifySocket[] = "/progress/socket";
inline constexpr char kOpenDoor[] = "/berth";
inline constexpr char kClosedDoor[] = "/door";
inline constexpr char kDoorInside[] = "/door/in";
inline constexpr char kDoorSocket[] = "/socket";   // in either
inline constexpr char kNoticesFile[] = "notices";  // in kProgressDirectory

struct SupervisorSpec {
  // What it specifies: a task, or one of its containers.
  enum Kind : int64_t { kTask = 0, kSidecar = 1, kInit = 2, kPeer = 3 };
  std::string user;  // empty: the agent's own user
  bool allow_root = false;
  std::string directory;          // the command's working directory
  std::vector<std::string> argv;  // variables are not expanded yet: expand.h
  std::vector<std::string> env;   // "NAME=value"
  int64_t log_file_bytes = int64_t{16} << 20;
  int64_t log_files = 4;  // per stream
  // The end of a longer lease is in the file with kLongerLeaseSuffix.
  std::string lease_file;  // empty: not a strict task. Else i64 CLOCK_BOOTTIME nanoseconds: kill
                           // the task then
  int64_t lapse_signal = 15;
  int64_t lapse_grace_ms = 0;
  std::vector<std::string> groups;  // control group of the task: control_group.h
  int64_t memory_bytes = 0;         // the task's memory, for messages
  int64_t data_limit_bytes = 0;     // RLIMIT_DATA without a group; 0 = none
  std::string cpus;                 // "0-3,8": affinity without a group; empty = any
  std::string memory_nodes;         // "0,1": preferred NUMA nodes; empty = any
  // Mounted over /tmp and /var/tmp, in the task's own mount namespace; empty: none.
  std::string tmp, var_tmp;
  // The task has a PID namespace, and a /proc that shows nothing else.
  bool own_pids = false;
  int64_t first_pid = 0;  // its PIDs follow this one, if the kernel supports that
  // The job's /dev/shm and IPC namespace (shared_memory.h), enlarged by `shm_bytes` for this task;
  // empty: the machine's.
  std::string shm;
  int64_t shm_bytes = 0;
  int64_t shm_most_bytes = 0;  // of all tasks of the job
  // With the machine's /dev/shm: objects left by tasks of this user are removed, using this record
  // (shared_things.h); 0 = nothing is.
  int64_t sweep_uid = 0;
  std::string sweep_record;
  // The task's NOTIFY_SOCKET; empty: none. The user that may send to it; -1: the supervisor's. The
  // file over which it is mounted, in the task's own mount namespace; empty: it is not.
  std::string notify;
  int64_t notify_uid = -1;
  std::string notify_at;
  // The directory of the socket at which the agent takes the calls of notify_uid; empty: there is
  // none. The directory over which it is mounted, in the task's own mount namespace; empty: it is
  // not.
  std::string door, door_at;
  // What the task sees at paths of its own (mounts.h), in its own mount namespace.
  std::vector<std::string> volumes;
  // The account that must be able to reach the volumes, and that owns what root owns in the image;
  // empty: the supervisor's.
  std::string owner;
  // A container's image is in `root_lower`. With a writable layer, its root is mounted at `root`,
  // from there and from `root_layer`/upper and `root_layer`/work; empty: there is none.
  std::string root, root_lower, root_layer;
  // Whose files in the image become those of `owner`: root's, or those of the user that the image
  // names, if the task sees itself as that one.
  int64_t image_uid = 0, image_gid = 0;
  // The file that the task sees as /etc/hosts (hosts.h); empty: that of the node or image.
  std::string hosts;
  // Removed recursively when no process of the task remains.
  std::vector<std::string> remove;
  // The node's hooks, run as the supervisor's user in hook_env; empty: none.
  std::vector<std::string> prolog, epilog, hook_env;
  int64_t prolog_ms = 0, epilog_ms = 0;  // timeouts, after which they are killed
  // The command is a container runtime: it keeps the supervisor's user and drops privileges itself.
  // exec_argv: runs a command inside; the command's own arguments follow.
  bool container = false;
  std::vector<std::string> exec_argv, exec_tty_argv;
  // The user inside the container; with a container `user` is empty.
  std::string container_user;
  bool terminal = false;  // the command gets one: terminal.h
  // The supervisor records kBeginning before it starts the command: without a status, no part of
  // the command ran.
  bool marks_beginning = false;
  // Of a task with devices that may be lent while it is frozen (device_saver.h): NVIDIA's program;
  // how the names of the files begin that a process with GPUs has open; the memory of its GPUs.
  std::string cuda_checkpoint;
  std::vector<std::string> gpu_files;
  int64_t gpu_bytes = 0;
  // Of a task: its containers, in order; the signal and the grace with which they end it.
  std::vector<std::string> container_names;
  int64_t stop_signal = 0;
  int64_t grace_ms = 0;
  // Of a container.
  int64_t kind = kTask;
  std::string name;
  int64_t timeout_ms = 0;  // kInit; 0: none
};

struct SupervisorStatus {
  // kBeginning is not synced, and need not be: it matters only until the machine is rebooted.
  enum Phase : int64_t { kNone = 0, kRunning = 1, kRefused = 2, kExited = 3, kBeginning = 4 };
  int64_t phase = kNone;
  int64_t supervisor_pid = 0;
  int64_t pid = 0;  // of the command and its process group
  int64_t exit_code = 0;
  int64_t exit_signal = 0;
  int64_t cause = 0;  // berth.v1.TaskReport.Cause
  std::string message;
  bool own_fault = false;    // kRefused: the job is to blame
  bool has_output = false;   // kRefused: a prolog wrote output
  std::string node_problem;  // a problem of the node: the epilog failed
  // When the command started, on CLOCK_BOOTTIME; 0: not yet, or a supervisor without NOTIFY_SOCKET.
  int64_t started_ns = 0;
  int64_t frozen = 0;          // the request by which all its processes are frozen; 0: they are not
  int64_t thawed_ns = 0;       // when they went on last, on CLOCK_BOOTTIME; 0: never
  bool takes_reasons = false;  // supports orders with a text; older supervisors ignore the text
  bool saves_devices = false;  // supports kSaveAndFreeze
  // While it is frozen by that order: nothing of it is on its GPUs, so others may use them; or why
  // it keeps them.
  bool devices_saved = false;
  std::string kept_devices;
};

std::string EncodeSpec(const SupervisorSpec& spec);
bool DecodeSpec(const std::string& text, SupervisorSpec* spec);
std::string EncodeStatus(const SupervisorStatus& status);
bool DecodeStatus(const std::string& text, SupervisorStatus* status);

// Reads a whole file. Errors are errno values, 0 = OK.
int ReadWholeFile(const std::string& path, std::string* out);
// Temporary file, fsync, rename, fsync of the directory.
int WriteFileAtomically(const std::string& directory, const std::string& name,
                        const std::string& data);
// The same without the two fsyncs: visible to readers until the machine is rebooted.
int ReplaceFile(const std::string& directory, const std::string& name, const std::string& data);
// Reserves kSpareBytes for NAME, in a file next to it, for a full disk.
inline constexpr size_t kSpareBytes = 4096;
int MakeSpare(const std::string& directory, const std::string& name);
// Like WriteFileAtomically, but into that space, which is then used up. ENOSPC if it does not fit.
int WriteIntoSpare(const std::string& directory, const std::string& name, const std::string& data);
void RemoveSpare(const std::string& directory, const std::string& name);

// Nanoseconds of CLOCK_BOOTTIME.
int64_t BoottimeNs();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SPEC_H_
