// A lock between processes on this machine. The kernel releases it when the process ends.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_FILE_LOCK_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_FILE_LOCK_H_

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace berth {

// Held for the life of the object. error(): an errno, 0 = it is held.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    error_ = fd_ < 0 ? errno : 0;
    while (error_ == 0 && flock(fd_, LOCK_EX) != 0) error_ = errno == EINTR ? 0 : errno;
  }
  ~FileLock() {
    if (fd_ >= 0) close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  int error() const { return error_; }

 private:
  const int fd_;
  int error_;
};

// STATE/shm/lock, which guards the entries in STATE/shm.
inline std::string SiblingLockPath(const std::string& path) {
  return path.substr(0, path.rfind('/')) + "/lock";
}

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_FILE_LOCK_H_
