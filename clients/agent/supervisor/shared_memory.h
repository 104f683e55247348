// The shared memory of one job on one node: a /dev/shm and an IPC namespace (System V shared
// memory, semaphores, message queues; POSIX message queues) that all of the job's tasks here have
// and nobody else has. They go with the last of these tasks.
//
//   STATE/shm/lock       flock, for moments: while a directory is made or removed
//   STATE/shm/UID/files  a tmpfs: the tasks' /dev/shm. Its pages count for the control group of the
//                        task that touched them first
//   STATE/shm/UID/ipc    the namespace: a mount of /proc/PID/ns/ipc, which keeps it alive
//   STATE/shm/UID/users  flock, shared, by the supervisor of each task
//
// The kernel releases the locks of a supervisor that is killed, so nothing here needs to be
// counted. Errors are errno values, 0 = fine.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_

#include <cstdint>
#include <string>

namespace berth {

class SharedMemory {
 public:
  // STATE/shm/UID, absolute.
  explicit SharedMemory(std::string directory) : directory_(std::move(directory)) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::string files() const { return directory_ + "/files"; }
  // Makes it, if no other task of the job has, and keeps it from being removed. Files may hold
  // `bytes` more than before, in all at most `most`.
  int Hold(int64_t bytes, int64_t most);
  // Puts this process into the IPC namespace, which the first one makes. While somebody holds it.
  int EnterIpc() const;
  // Gives up what Hold took; removes all if nobody else holds it.
  void Release();

 private:
  const std::string directory_;
  int users_ = -1;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_MEMORY_H_
