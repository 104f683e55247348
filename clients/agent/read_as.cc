#include "clients/agent/read_as.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/fault.h"

namespace berth {
namespace {

constexpr int kPatienceMs = 2'000;  // for a file on a network that does not answer
constexpr int kNotRegular = 200;    // exit codes; below, they are an errno

// In the child: only calls that are safe after fork. Its exit code is an errno, or 0.
[[noreturn]] void CopyAs(const TaskUser& user, bool become, const char* path, size_t most,
                         int out) {
  if (become && (setgroups(user.groups.size(), user.groups.data()) != 0 ||
                 setresgid(user.gid, user.gid, user.gid) != 0 ||
                 setresuid(user.uid, user.uid, user.uid) != 0)) {
    _exit(EPERM);
  }
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) _exit(errno);
  struct stat info {};
  if (fstat(file, &info) != 0) _exit(errno);
  if (!S_ISREG(info.st_mode)) _exit(kNotRegular);
  std::array<char, 4096> buffer{};
  size_t left = most + 1;  // the parent sees that there was more
  while (left > 0) {
    const ssize_t size = read(file, buffer.data(), std::min(left, buffer.size()));
    if (size < 0) _exit(errno);
    if (size == 0) break;
    if (write(out, buffer.data(), static_cast<size_t>(size)) != size) _exit(EPIPE);
    left -= static_cast<size_t>(size);
  }
  _exit(0);
}

// All that comes before the other end closes; false if that takes too long.
bool ReadToEnd(int fd, size_t most, std::string* text) {
  std::array<char, 4096> buffer{};
  while (text->size() <= most) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) return false;
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size <= 0) return size == 0;
    text->append(buffer.data(), static_cast<size_t>(size));
  }
  return true;
}

absl::Status CannotRead(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": ", why));
}

}  // namespace

absl::StatusOr<std::string> ReadFileAs(const TaskUser& user, const std::string& path, size_t most) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return CannotRead(path, std::strerror(errno));
  const bool become = geteuid() == 0 && !user.account.empty();
  const pid_t child = fork();
  if (child == 0) CopyAs(user, become, path.c_str(), most, ends[1]);
  close(ends[1]);
  std::string text;
  const bool complete = child > 0 && ReadToEnd(ends[0], most, &text);
  close(ends[0]);
  if (child < 0) return CannotRead(path, "cannot start a process");
  int status = 0;
  if (!complete) {
    // It may hang in the kernel: then it is left behind.
    kill(child, SIGKILL);
    for (int i = 0; i < 10 && waitpid(child, &status, WNOHANG) == 0; ++i) poll(nullptr, 0, 10);
    return CannotRead(path, "it takes too long, or is too large");
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (text.size() > most) return CannotRead(path, absl::StrCat("more than ", most, " bytes"));
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  if (code == kNotRegular) return CannotRead(path, "it is not a regular file");
  if (code != 0) return CannotRead(path, std::strerror(code));
  return text;
}

absl::StatusOr<std::string> ReadValueAs(const TaskUser& user, const std::string& path) {
  absl::StatusOr<std::string> value = ReadFileAs(user, path, kMaxFileValue);
  if (!value.ok()) return value;
  if (value->find('\0') != std::string::npos) return CannotRead(path, "it contains NUL");
  if (!value->empty() && value->back() == '\n') value->pop_back();
  return value;
}

absl::StatusOr<v1::TaskLaunch> WithFileValues(const TaskUser& user, const v1::TaskLaunch& launch) {
  v1::TaskLaunch complete = launch;
  for (v1::EnvVar& variable : *complete.mutable_env()) {
    if (variable.from_file().empty()) continue;
    absl::StatusOr<std::string> value = ReadValueAs(user, variable.from_file());
    if (!value.ok()) {
      return BlameJob(absl::FailedPreconditionError(
          absl::StrCat("env ", variable.name(), ": ", value.status().message())));
    }
    variable.set_value(*std::move(value));
  }
  return complete;
}

}  // namespace berth
