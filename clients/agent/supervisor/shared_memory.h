// The shared memory of one job on one node: a /dev/shm and an IPC namespace (System V shared
// memory, semaphores, message queues; POSIX message queues), shared by all of the job's tasks here
// and nobody else. It is removed with the last of these tasks, unless the job keeps it for its next
// attempt (clients/agent/kept_directories.h): then the agent removes it later.
//
//   STATE/shm/lock       flock, held briefly: while a directory is created or removed
//   STATE/shm/UID/files  a tmpfs: the tasks' /dev/shm. Its pages are charged to the control
//                        group of the task that touched them first
//   STATE/shm/UID/ipc    the namespace: a mount of /proc/PID/ns/ipc, which keeps it alive
//   STATE/shm/UID/users  flock, shared, by the supervisor of each task
//   STATE/keep/UID/memory  exists: the job keeps it
//
// The kernel releases the locks of a killed supervisor, so nothing here needs reference counts.
// Errors are errno values, 0 = OK.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_

#include <cstdint>
#include <string>

namespace berth {

inline constexpr char kKeptMemoryMark[] = "/memory";  // in the job's directory in STATE/keep

class SharedMemory {
 public:
  // STATE/shm/UID, absolute.
  explicit SharedMemory(std::string directory) : directory_(std::move(directory)) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::string files() const { return directory_ + "/files"; }
  // Creates it, if no other task of the job has, and prevents its removal. Raises the limit on its
  // files by `bytes`, to at most `most` in total; `bytes` alone if no other task of the job is
  // here.
  int Hold(int64_t bytes, int64_t most);
  // Moves this process into the IPC namespace, which the first caller creates. Requires a holder.
  int EnterIpc() const;
  // Releases what Hold took; removes everything if there is no other holder and nothing is kept.
  void Release();

 private:
  bool IsKept() const;

  const std::string directory_;
  int users_ = -1;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_
