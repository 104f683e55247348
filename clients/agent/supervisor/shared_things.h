// What tasks leave in the machine's own shared memory, of tasks that have none of their own: files
// and directories in /dev/shm, POSIX message queues, and System V shared memory, semaphores and
// message queues. Nothing tells which task made a thing. So it is removed when the last task of its
// user has ended, if it was not there when the first one began:
//
//   task A begins: the record says {x}. A makes y. Task B of the same user begins. A ends: B lives.
//   B ends: nobody of that user is left. y is removed, x stays.
//
//   STATE/shm/user-UID   the record; flock, shared, by the supervisor of each task of that user
//
// A record is kept until things were removed by it: also if a supervisor was killed, or if other
// processes of the user were left when its last task ended. It does not outlive the machine's boot.
// Standard library only. Errors are errno values, 0 = fine.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_

#include <sys/types.h>

#include <set>
#include <string>

namespace berth {

// "/dev/shm/a/b", "/dev/mqueue/q", "segment 5", "semaphores 5", "messages 5".
using SharedThings = std::set<std::string>;

inline constexpr char kRecordPrefix[] = "user-";
inline constexpr int kMaxSharedDepth = 128;  // of directories; what is below stays

// Those of the user: files by their owner, the rest by who made it, which nobody can change.
SharedThings SharedThingsOf(uid_t user);
// Removes what the user has now and had not `before`, without following links. False, and nothing
// is removed, while a process of the user can use it.
bool SweepSharedThings(uid_t user, const SharedThings& before);

class SharedThingsRecord {
 public:
  // In STATE/shm, absolute, which is there.
  static std::string PathOf(const std::string& directory, uid_t user);

  SharedThingsRecord(std::string path, uid_t user) : path_(std::move(path)), user_(user) {}
  ~SharedThingsRecord();
  SharedThingsRecord(const SharedThingsRecord&) = delete;
  SharedThingsRecord& operator=(const SharedThingsRecord&) = delete;

  // Before a task of the user begins: makes the record, if there is none.
  int Hold();
  // When nothing of the task is left. Sweeps and removes the record if nobody else holds it. Also
  // for who does not hold it: the agent, in place of supervisors that were killed.
  void Release();

 private:
  const std::string path_;
  const uid_t user_;
  int fd_ = -1;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_
