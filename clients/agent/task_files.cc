#include "clients/agent/task_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"

namespace berth {

bool IsLocked(const std::string& directory) {
  const int fd = open((directory + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

SupervisorStatus ReadStatus(const std::string& directory) {
  std::string text;
  SupervisorStatus status;
  if (ReadWholeFile(directory + "/status", &text) != 0 || !DecodeStatus(text, &status)) return {};
  return status;
}

absl::Status WriteTextFile(const std::string& path, const std::string& text, mode_t mode) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const absl::Status status = ErrnoStatus(errno, absl::StrCat("write ", path));
      close(fd);
      return status;
    }
    done += static_cast<size_t>(n);
  }
  close(fd);
  return absl::OkStatus();
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

SupervisorSpec ReadSpec(const std::string& directory) {
  std::string text;
  SupervisorSpec spec;
  if (ReadWholeFile(directory + "/spec", &text) != 0 || !DecodeSpec(text, &spec)) return {};
  return spec;
}

TaskEvent ExitedEvent(const SupervisorStatus& status) {
  TaskEvent event;
  event.kind = TaskEvent::Kind::kExited;
  event.exit_code = static_cast<int>(status.exit_code);
  event.exit_signal = static_cast<int>(status.exit_signal);
  event.message = status.message;
  event.node_problem = status.node_problem;
  if (v1::TaskReport::Cause_IsValid(static_cast<int>(status.cause))) {
    event.cause = static_cast<v1::TaskReport::Cause>(status.cause);
  }
  return event;
}

int64_t ReadLeaseFile(const std::string& path) {
  std::string text;
  int64_t ns = 0;
  if (ReadWholeFile(path, &text) != 0 || text.size() != sizeof ns) return 0;
  std::memcpy(&ns, text.data(), sizeof ns);
  return ns;
}

}  // namespace berth
