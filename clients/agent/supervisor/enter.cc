#include "clients/agent/supervisor/enter.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kCannot = 126;
constexpr int kNotFound = 127;

int Complain(const char* what, int error) {
  std::fprintf(stderr, "berth exec: %s: %s\n", what, std::strerror(error));
  return kCannot;
}

// Field 4 of /proc/PID/stat.
pid_t ParentOf(int64_t pid) {
  std::string text;
  if (ReadWholeFile("/proc/" + std::to_string(pid) + "/stat", &text) != 0) return 0;
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::atol(text.c_str() + name_end + 4));
}

// The namespace is opened first and the parent looked at then: as long as the supervisor is the
// parent, the number had not passed to another process when it was opened.
int JoinMounts(const SupervisorStatus& status) {
  const std::string path = "/proc/" + std::to_string(status.pid) + "/ns/mnt";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = 0;
  if (ParentOf(status.pid) != status.supervisor_pid)
    error = ESRCH;
  else if (setns(fd, CLONE_NEWNS) != 0)
    error = errno;
  close(fd);
  return error;
}

int TakeTerminal(const passwd* user) {
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

// A container runtime enters by itself.
int EnterContainer(const SupervisorSpec& spec, bool terminal,
                   const std::vector<std::string>& command) {
  std::vector<std::string> argv = terminal ? spec.exec_tty_argv : spec.exec_argv;
  if (argv.empty()) return Complain("the task's container", EINVAL);
  argv.insert(argv.end(), command.begin(), command.end());
  return Become(std::move(argv), spec.env);
}

int EnterProcess(const SupervisorSpec& spec, const SupervisorStatus& status, const passwd* user,
                 const std::vector<std::string>& command) {
  if (!spec.tmp.empty()) {
    if (const int error = JoinMounts(status); error != 0)
      return Complain("the task's files", error);
  }
  if (const int error = ApplyLimits(spec); error != 0) return Complain("limits", error);
  if (const int error = BecomeUser(user); error != 0) return Complain(spec.user.c_str(), error);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which clears it
  if (chdir(spec.directory.c_str()) != 0) return Complain(spec.directory.c_str(), errno);
  return Become(command, spec.env);
}

}  // namespace

int ExecInTask(const std::string& directory, bool terminal,
               const std::vector<std::string>& command) {
  ResetSignals();
  umask(022);
  std::string text;
  SupervisorSpec spec;
  SupervisorStatus status;
  if (command.empty() || ReadWholeFile(directory + "/spec", &text) != 0 ||
      !DecodeSpec(text, &spec) || ReadWholeFile(directory + "/status", &text) != 0 ||
      !DecodeStatus(text, &status) || status.phase != SupervisorStatus::kRunning) {
    return Complain("the task", ESRCH);
  }
  const passwd* user = spec.user.empty() ? nullptr : getpwnam(spec.user.c_str());
  if (!spec.user.empty() && user == nullptr) return Complain(spec.user.c_str(), ENOENT);
  const uid_t uid = user == nullptr ? geteuid() : user->pw_uid;
  if (uid == 0 && !spec.allow_root && !spec.container) return Complain("the user", EPERM);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (const int error = ControlGroup(spec.groups).Enter(); error != 0)
    return Complain("the task's control group", error);
  if (terminal) {
    if (const int error = TakeTerminal(user); error != 0) return Complain("terminal", error);
  }
  if (spec.container) return EnterContainer(spec, terminal, command);
  return EnterProcess(spec, status, user, command);
}

}  // namespace berth
