#include "clients/agent/supervisor/enter.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/namespaces.h"
#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kCannot = 126;
constexpr int kNotFound = 127;

int Complain(const char* what, int error) {
  std::fprintf(stderr, "berth exec: %s: %s\n", what, std::strerror(error));
  return kCannot;
}

int TakeUsersTerminal(const passwd* user) {
  if (ioctl(0, TIOCSCTTY, 0) != 0) return errno;
  if (user == nullptr || geteuid() != 0) return 0;
  return fchown(0, user->pw_uid, static_cast<gid_t>(-1)) == 0 ? 0 : errno;
}

int Become(std::vector<std::string> argv, const std::vector<std::string>& environment) {
  std::vector<char*> arguments = Pointers(argv);
  std::vector<char*> variables = Pointers(environment);
  environ = variables.data();  // execvp searches the task's PATH, not ours
  execvp(arguments[0], arguments.data());
  const int error = errno;
  std::fprintf(stderr, "berth exec: %s: %s\n", arguments[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kCannot;
}

// A container runtime joins the task by itself.
int EnterContainer(const SupervisorSpec& spec, bool terminal,
                   const std::vector<std::string>& command) {
  std::vector<std::string> argv = terminal ? spec.exec_tty_argv : spec.exec_argv;
  if (argv.empty()) return Complain("the task's container", EINVAL);
  if (!spec.shm.empty()) {
    if (const int error = SharedMemory(spec.shm).EnterIpc(); error != 0)
      return Complain("the task's shared memory", error);
  }
  argv.insert(argv.end(), command.begin(), command.end());
  return Become(std::move(argv), spec.env);
}

// This process becomes a helper: it ends as the command does and ignores all signals. Its own death
// kills the command.
[[noreturn]] void AwaitCommand(pid_t pid) {
  for (const int fd : {0, 1, 2}) close(fd);  // they belong to the command
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

// setns does not change a process's own PID namespace: only a child is in it. Returns in the child,
// -1, or with an exit code. With a terminal the child starts a session, as a shell with job control
// must see its own process group.
int ForkInside(bool terminal) {
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) return Complain("pipe", errno);
  const pid_t pid = fork();
  if (pid < 0) return Complain("fork", errno);
  if (pid > 0) {
    close(alive[1]);
    AwaitCommand(pid);
  }
  close(alive[0]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd end{alive[1], 0, 0};
  if (poll(&end, 1, 0) > 0) _exit(kCannot);  // no reader: the helper already died
  close(alive[1]);
  if (terminal) setsid();
  return -1;
}

int EnterProcess(const SupervisorSpec& spec, const SupervisorStatus& status, const passwd* user,
                 bool terminal, const std::vector<std::string>& command) {
  const auto pid = static_cast<pid_t>(status.pid);
  const auto supervisor = static_cast<pid_t>(status.supervisor_pid);
  if (const int error = TakeGroups(user); error != 0) return Complain(spec.user.c_str(), error);
  if (const int error = JoinNamespaces(spec, pid, supervisor); error != 0)
    return Complain("the task's namespaces", error);
  if (spec.own_pids) {
    if (const int code = ForkInside(terminal); code >= 0) return code;
  }
  if (terminal) {
    if (const int error = TakeUsersTerminal(user); error != 0) return Complain("terminal", error);
  }
  if (const int error = ApplyLimits(spec); error != 0) return Complain("limits", error);
  if (const int error = BecomeUser(user); error != 0) return Complain(spec.user.c_str(), error);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which clears it
  if (chdir(spec.directory.c_str()) != 0) return Complain(spec.directory.c_str(), errno);
  return Become(command, spec.env);
}

}  // namespace

int ReadRunningTask(const std::string& directory, SupervisorSpec* spec, SupervisorStatus* status) {
  std::string text;
  if (ReadWholeFile(directory + "/spec", &text) != 0 || !DecodeSpec(text, spec)) return ESRCH;
  if (ReadWholeFile(directory + "/status", &text) != 0 || !DecodeStatus(text, status)) return ESRCH;
  return status->phase == SupervisorStatus::kRunning ? 0 : ESRCH;
}

int FindTaskUser(const SupervisorSpec& spec, const std::string& name, const passwd** user) {
  *user = name.empty() ? nullptr : getpwnam(name.c_str());
  if (!name.empty() && *user == nullptr) return ENOENT;
  const uid_t uid = *user == nullptr ? geteuid() : (*user)->pw_uid;
  return uid == 0 && !spec.allow_root ? EPERM : 0;
}

int ExecInTask(const std::string& directory, bool terminal,
               const std::vector<std::string>& command) {
  ResetSignals();
  umask(022);
  SupervisorSpec spec;
  SupervisorStatus status;
  if (command.empty()) return Complain("the command", EINVAL);
  if (const int error = ReadRunningTask(directory, &spec, &status); error != 0)
    return Complain("the task", error);
  const passwd* user = nullptr;
  if (const int error = FindTaskUser(spec, spec.user, &user); error != 0 && !spec.container)
    return Complain(error == EPERM ? "the user" : spec.user.c_str(), error);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (const int error = ControlGroup(spec.groups).Enter(); error != 0)
    return Complain("the task's control group", error);
  if (!spec.container) return EnterProcess(spec, status, user, terminal, command);
  if (terminal) {
    if (const int error = TakeUsersTerminal(user); error != 0) return Complain("terminal", error);
  }
  return EnterContainer(spec, terminal, command);
}

}  // namespace berth
