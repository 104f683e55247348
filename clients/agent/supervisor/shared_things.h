// Objects that tasks without private shared memory leave in the machine's own: files and
// directories in /dev/shm, POSIX message queues, and System V shared memory, semaphores and message
// queues. The kernel does not record which task created an object. So an object is removed when the
// last task of its user has ended, if it did not exist when the first one began:
//
//   task A begins: the record has {x}. A creates y. Task B of the same user begins.
//   A ends: B lives. B ends: no task of that user is left. y is removed, x stays.
//
//   STATE/shm/user-UID   the record; flock, shared, by the supervisor of each task of that user
//
// A record is kept until objects were removed by it, even if a supervisor was killed, or if other
// processes of the user remained when its last task ended. It is valid only for one boot of the
// machine. Standard library only. Errors are errno values, 0 = OK.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_

#include <sys/types.h>

#include <set>
#include <string>

namespace berth {

// "/dev/shm/a/b", "/dev/mqueue/q", "segment 5", "semaphores 5", "messages 5".
using SharedThings = std::set<std::string>;

inline constexpr char kRecordPrefix[] = "user-";
inline constexpr int kMaxSharedDepth = 128;  // of directories; deeper entries stay

// The user's objects: files by owner, the rest by creator, which nobody can change.
SharedThings SharedThingsOf(uid_t user);
// Removes the user's objects that are not in `before`, without following links. Returns false and
// removes nothing while a process of the user can use them.
bool SweepSharedThings(uid_t user, const SharedThings& before);

class SharedThingsRecord {
 public:
  // In STATE/shm, absolute, which exists.
  static std::string PathOf(const std::string& directory, uid_t user);

  SharedThingsRecord(std::string path, uid_t user) : path_(std::move(path)), user_(user) {}
  ~SharedThingsRecord();
  SharedThingsRecord(const SharedThingsRecord&) = delete;
  SharedThingsRecord& operator=(const SharedThingsRecord&) = delete;

  // Call before a task of the user begins: creates the record, if there is none.
  int Hold();
  // Call when no process of the task remains. Sweeps, and removes the record if there is no other
  // holder. Also for callers that do not hold it: the agent, on behalf of killed supervisors.
  void Release();

 private:
  const std::string path_;
  const uid_t user_;
  int fd_ = -1;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_SHARED_THINGS_H_
