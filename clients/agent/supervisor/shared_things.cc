#include "clients/agent/supervisor/shared_things.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "clients/agent/supervisor/file_lock.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr char kSharedMemory[] = "/dev/shm";
constexpr char kMessageQueues[] = "/dev/mqueue";
constexpr char kRecordEnd[] = "end";  // a record without it is incomplete

std::vector<std::string> NamesIn(int directory) {
  std::vector<std::string> names;
  const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = own < 0 ? nullptr : fdopendir(own);
  if (listing == nullptr) {
    if (own >= 0) close(own);
    return names;
  }
  while (const dirent* entry = readdir(listing)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  }
  closedir(listing);
  return names;
}

// A file or directory: its name in its directory, and its full path.
struct Entry {
  int directory;
  const std::string& name;
  const std::string& path;
  const struct stat& info;
};
using Visit = std::function<void(const Entry&)>;

// Visits everything below, on the same file system, with contents before their directory.
void VisitBelow(int directory, const std::string& path, int depth, const Visit& visit) {
  struct stat above, info;
  if (depth > kMaxSharedDepth || fstat(directory, &above) != 0) return;
  for (const std::string& name : NamesIn(directory)) {
    const std::string below = path + "/" + name;
    if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (info.st_dev != above.st_dev) continue;
    if (S_ISDIR(info.st_mode)) {
      const int fd =
          openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (fd >= 0) VisitBelow(fd, below, depth + 1, visit);
      if (fd >= 0) close(fd);
    }
    visit({directory, name, below, info});
  }
}

// The message queues of this IPC namespace, mounted or not; -1 if they cannot be mounted.
int OpenMessageQueues() {
  const int system = fsopen("mqueue", FSOPEN_CLOEXEC);
  if (system < 0) return -1;
  const bool made = fsconfig(system, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  const int fd = made ? fsmount(system, FSMOUNT_CLOEXEC, 0) : -1;
  close(system);
  return fd;
}

void VisitFiles(const Visit& visit) {
  const int memory = open(kSharedMemory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int queues = OpenMessageQueues();
  if (memory >= 0) VisitBelow(memory, kSharedMemory, 0, visit);
  if (queues >= 0) VisitBelow(queues, kMessageQueues, 0, visit);
  for (const int fd : {memory, queues}) {
    if (fd >= 0) close(fd);
  }
}

union SemaphoreArgument {  // the argument of semctl; callers must define it
  int value;
  semid_ds* set;
  seminfo* info;
};

// One kind of System V object. `at` returns the id of the object at an index, or -1; the agent
// needs no read permission for that.
struct Ipc {
  const char* kind;
  std::function<int()> highest;
  std::function<int(int index, ipc_perm* owner)> at;
  std::function<void(int id)> remove;
};

const std::array<Ipc, 3>& IpcKinds() {
  static const std::array<Ipc, 3> kinds = {
      Ipc{"segment ",
          [] {
            shm_info info;
            return shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
          },
          [](int index, ipc_perm* owner) {
            shmid_ds segment{};
            const int id = shmctl(index, SHM_STAT_ANY, &segment);
            *owner = segment.shm_perm;
            return id;
          },
          [](int id) { shmctl(id, IPC_RMID, nullptr); }},
      Ipc{"semaphores ",
          [] {
            seminfo info;
            return semctl(0, 0, SEM_INFO, SemaphoreArgument{.info = &info});
          },
          [](int index, ipc_perm* owner) {
            semid_ds set{};
            const int id = semctl(index, 0, SEM_STAT_ANY, SemaphoreArgument{.set = &set});
            *owner = set.sem_perm;
            return id;
          },
          [](int id) { semctl(id, 0, IPC_RMID); }},
      Ipc{"messages ",
          [] {
            msginfo info;
            return msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&info));
          },
          [](int index, ipc_perm* owner) {
            msqid_ds queue{};
            const int id = msgctl(index, MSG_STAT_ANY, &queue);
            *owner = queue.msg_perm;
            return id;
          },
          [](int id) { msgctl(id, IPC_RMID, nullptr); }}};
  return kinds;
}

void AddIpc(const Ipc& ipc, uid_t user, SharedThings* things) {
  const int highest = ipc.highest();
  for (int index = 0; index <= highest; ++index) {
    ipc_perm owner{};
    const int id = ipc.at(index, &owner);
    if (id >= 0 && owner.cuid == user) things->insert(ipc.kind + std::to_string(id));
  }
}

void RemoveIpc(const std::string& thing) {
  for (const Ipc& ipc : IpcKinds()) {
    if (thing.starts_with(ipc.kind)) ipc.remove(std::stoi(thing.substr(std::strlen(ipc.kind))));
  }
}

enum class Same { kYes, kNo, kGone };

Same Compare(const std::string& path, const struct stat& own) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    return info.st_dev == own.st_dev && info.st_ino == own.st_ino ? Same::kYes : Same::kNo;
  return errno == ENOENT || errno == ESRCH ? Same::kGone : Same::kYes;  // assume yes
}

// A process with another IPC namespace and another /dev/shm cannot: an isolated task.
bool CanUse(const std::string& process) {
  struct stat namespaces, memory;
  if (stat("/proc/self/ns/ipc", &namespaces) != 0 || stat(kSharedMemory, &memory) != 0) return true;
  return Compare(process + "/ns/ipc", namespaces) == Same::kYes ||
         Compare(process + "/root" + kSharedMemory, memory) == Same::kYes;
}

bool HasUsers(uid_t user) {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return true;
  bool found = false;
  for (const std::string& name : NamesIn(proc)) {
    struct stat info;
    if (found || name[0] < '1' || name[0] > '9') continue;
    found = fstatat(proc, name.c_str(), &info, 0) == 0 && info.st_uid == user &&
            CanUse("/proc/" + name);
  }
  close(proc);
  return found;
}

std::string BootId() {
  std::string text;
  ReadWholeFile("/proc/sys/kernel/random/boot_id", &text);
  return text;
}

// BOOT NUL THING NUL THING NUL "end" NUL
int WriteRecord(int fd, const SharedThings& things) {
  std::string text = BootId() + '\0';
  for (const std::string& thing : things) text += thing + '\0';
  text += std::string(kRecordEnd) + '\0';
  if (ftruncate(fd, 0) != 0) return errno;
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = pwrite(fd, text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    at += static_cast<size_t>(n);
  }
  return 0;
}

// Nothing if the record is incomplete, or from another boot.
std::optional<SharedThings> ReadRecord(const std::string& path) {
  std::string text;
  if (ReadWholeFile(path, &text) != 0) return std::nullopt;
  std::vector<std::string> fields;
  for (size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos; at = end + 1)
    fields.push_back(text.substr(at, end - at));
  if (fields.size() < 2 || fields.front() != BootId() || fields.back() != kRecordEnd)
    return std::nullopt;
  return SharedThings(fields.begin() + 1, fields.end() - 1);
}

}  // namespace

SharedThings SharedThingsOf(uid_t user) {
  SharedThings things;
  VisitFiles([&](const Entry& entry) {
    if (entry.info.st_uid == user) things.insert(entry.path);
  });
  for (const Ipc& ipc : IpcKinds()) AddIpc(ipc, user, &things);
  return things;
}

// Things made by a process that starts after the check for processes are not in `left`.
bool SweepSharedThings(uid_t user, const SharedThings& before) {
  SharedThings left = SharedThingsOf(user);
  if (HasUsers(user)) return false;
  for (const std::string& thing : before) left.erase(thing);
  VisitFiles([&](const Entry& entry) {
    if (entry.info.st_uid != user || !left.contains(entry.path)) return;
    const int flags = S_ISDIR(entry.info.st_mode) ? AT_REMOVEDIR : 0;
    unlinkat(entry.directory, entry.name.c_str(), flags);
  });
  for (const std::string& thing : left) RemoveIpc(thing);
  return true;
}

std::string SharedThingsRecord::PathOf(const std::string& directory, uid_t user) {
  return directory + "/" + kRecordPrefix + std::to_string(user);
}

SharedThingsRecord::~SharedThingsRecord() {
  if (fd_ >= 0) close(fd_);
}

// While this holds the lock beside it, others have it open only with their own lock on it.
int SharedThingsRecord::Hold() {
  const FileLock lock(SiblingLockPath(path_));
  if (lock.error() != 0) return lock.error();
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return errno;
  int error = 0;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0 && !ReadRecord(path_))
    error = WriteRecord(fd_, SharedThingsOf(user_));
  if (error == 0 && flock(fd_, LOCK_SH) != 0) error = errno;
  if (error != 0) close(std::exchange(fd_, -1));
  return error;
}

void SharedThingsRecord::Release() {
  const FileLock lock(SiblingLockPath(path_));
  if (fd_ < 0) fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ < 0) return;
  if (lock.error() == 0 && flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    const std::optional<SharedThings> before = ReadRecord(path_);
    if (!before || SweepSharedThings(user_, *before)) unlink(path_.c_str());
  }
  close(std::exchange(fd_, -1));
}

}  // namespace berth
