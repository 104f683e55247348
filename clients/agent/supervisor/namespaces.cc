#include "clients/agent/supervisor/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/supervisor/shared_memory.h"

namespace berth {
namespace {

// Kernels without CONFIG_CHECKPOINT_RESTORE lack the file; PIDs then start at 2.
void SetLastPid(int64_t pid) {
  if (pid <= 0) return;
  const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  const std::string text = std::to_string(pid);
  if (write(fd, text.data(), text.size()) < 0) errno = 0;
  close(fd);
}

void CloseAllBut(int fd) {
  const int most = static_cast<int>(sysconf(_SC_OPEN_MAX));
  if (close_range(0, static_cast<unsigned>(fd) - 1, 0) == 0 &&
      close_range(static_cast<unsigned>(fd) + 1, ~0U, 0) == 0) {
    return;
  }
  for (int other = 0; other < most; ++other) {
    if (other != fd) close(other);
  }
}

// Writes to `ready` once it runs. If nobody reads, the supervisor died before its death could
// signal this process.
[[noreturn]] void RunInit(int ready, int64_t first_pid) {
  CloseAllBut(ready);
  ResetSignals();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "berth-init");
  signal(SIGPIPE, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  SetLastPid(first_pid);
  if (write(ready, "", 1) != 1) _exit(1);
  close(ready);
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    siginfo_t ignored;
    sigwaitinfo(&child, &ignored);
  }
}

int BindOver(const std::string& from, const char* to) {
  return mount(from.c_str(), to, nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
}

int MountProc() {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount("proc", "/proc", "proc", kFlags, nullptr) == 0 ? 0 : errno;
}

int Join(pid_t pid, const char* name, int kind) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/" + name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = setns(fd, kind) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// Field 4 of /proc/PID/stat; 0 if there is no such process.
pid_t ParentPid(pid_t pid) {
  std::string text;
  if (ReadWholeFile("/proc/" + std::to_string(pid) + "/stat", &text) != 0) return 0;
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::atol(text.c_str() + name_end + 4));
}

}  // namespace

NewPidNamespace::NewPidNamespace(int64_t first_pid) {
  int ready[2];
  own_ = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  if (own_ < 0 || pipe2(ready, O_CLOEXEC) != 0 || unshare(CLONE_NEWPID) != 0) {
    error_ = errno;
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(ready[0]);
    RunInit(ready[1], first_pid);
  }
  if (pid < 0) error_ = errno;
  close(ready[1]);
  char byte;
  ssize_t n = 0;
  if (pid > 0) {
    do n = read(ready[0], &byte, 1);
    while (n < 0 && errno == EINTR);
  }
  if (pid > 0 && n != 1) error_ = ECHILD;
  if (pid > 0 && error_ == 0) init_ = pid;
  close(ready[0]);
}

NewPidNamespace::~NewPidNamespace() {
  if (own_ < 0) return;
  if (setns(own_, CLONE_NEWPID) != 0) std::abort();  // hooks must not run in the task's namespace
  close(own_);
}

bool HasOwnMounts(const SupervisorSpec& spec) {
  if (spec.container) return false;  // those of the runtime
  return !spec.tmp.empty() || !spec.shm.empty() || spec.own_pids || !spec.volumes.empty() ||
         !spec.hosts.empty();
}

int EnterMounts(const SupervisorSpec& spec) {
  if (!HasOwnMounts(spec)) return 0;
  if (unshare(CLONE_NEWNS) != 0) return errno;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  if (!spec.notify_at.empty()) {
    if (const int error = BindOver(spec.notify, spec.notify_at.c_str()); error != 0) return error;
  }
  if (!spec.door_at.empty()) {
    if (const int error = BindOver(spec.door, spec.door_at.c_str()); error != 0) return error;
  }
  if (!spec.hosts.empty()) {
    if (const int error = BindOver(spec.hosts, "/etc/hosts"); error != 0) return error;
  }
  // Files below /tmp are bound elsewhere before /tmp is replaced.
  if (!spec.shm.empty()) {
    const std::string files = SharedMemory(spec.shm).files();
    if (const int error = BindOver(files, "/dev/shm"); error != 0) return error;
  }
  if (!spec.tmp.empty()) {
    if (const int error = BindOver(spec.tmp, "/tmp"); error != 0) return error;
  }
  if (!spec.var_tmp.empty()) {
    if (const int error = BindOver(spec.var_tmp, "/var/tmp"); error != 0) return error;
  }
  return spec.own_pids ? MountProc() : 0;
}

// The parent is checked last: if it is still the supervisor, the PID had not been reused when the
// namespaces were opened. Nothing was run in them until then.
int JoinNamespaces(const SupervisorSpec& spec, pid_t pid, pid_t parent) {
  const bool files = HasOwnMounts(spec);
  const std::string mounts = "/proc/" + std::to_string(pid) + "/ns/mnt";
  if (!spec.shm.empty()) {
    if (const int error = Join(pid, "ipc", CLONE_NEWIPC); error != 0) return error;
  }
  if (spec.own_pids) {
    if (const int error = Join(pid, "pid", CLONE_NEWPID); error != 0) return error;
  }
  const int fd = files ? open(mounts.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  if (files && fd < 0) return errno;
  int error = 0;
  if (ParentPid(pid) != parent)
    error = ESRCH;
  else if (files && setns(fd, CLONE_NEWNS) != 0)
    error = errno;
  if (fd >= 0) close(fd);
  return error;
}

int JoinNetwork(pid_t pid, pid_t parent) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  struct stat own;
  struct stat other;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = fstat(fd, &other) == 0 && stat("/proc/self/ns/net", &own) == 0 ? 0 : errno;
  if (error == 0 && ParentPid(pid) != parent) error = ESRCH;
  const bool same = error == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
  if (error == 0 && !same && setns(fd, CLONE_NEWNET) != 0) error = errno;
  close(fd);
  return error;
}

namespace {

// Runs in a new namespace, as a task would.
[[noreturn]] void TryInside() {
  if (unshare(CLONE_NEWIPC) != 0 || unshare(CLONE_NEWNS) != 0) _exit(errno);
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) _exit(errno);
  if (mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") != 0) _exit(errno);
  _exit(MountProc());
}

}  // namespace

int TryNamespaces() {
  const pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(errno);
    const pid_t inside = fork();
    if (inside < 0) _exit(errno);
    if (inside == 0) TryInside();
    int status = 0;
    while (waitpid(inside, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

}  // namespace berth
