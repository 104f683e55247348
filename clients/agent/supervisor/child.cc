#include "clients/agent/supervisor/child.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth {
namespace {

enum Stage : int { kStreams, kUser, kDirectory, kParentDied, kExec };
struct Failure {
  int stage;
  int error;
};

[[noreturn]] void Fail(int pipe, Stage stage, int error) {
  const Failure failure{stage, error};
  if (write(pipe, &failure, sizeof failure) < 0) _exit(255);
  _exit(255);
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool BecomeUser(const passwd& user) {
  if (geteuid() != 0) return user.pw_uid == geteuid();
  return initgroups(user.pw_name, user.pw_gid) == 0 && setgid(user.pw_gid) == 0 &&
         setuid(user.pw_uid) == 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void RunChild(const SupervisorSpec& spec, const passwd* user, int out, int err,
                           int pipe, pid_t parent) {
  ResetSignals();
  setpgid(0, 0);
  umask(022);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
    Fail(pipe, kStreams, errno);
  if (user != nullptr && !BecomeUser(*user)) Fail(pipe, kUser, errno);
  // After the change of user, which clears it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) Fail(pipe, kParentDied, ESRCH);
  if (chdir(spec.directory.c_str()) != 0) Fail(pipe, kDirectory, errno);
  std::vector<char*> argv = Pointers(spec.argv);
  std::vector<char*> env = Pointers(spec.env);
  environ = env.data();  // execvp searches the task's PATH, not ours
  execvp(argv[0], argv.data());
  Fail(pipe, kExec, errno);
}

// Whose fault an exec error is: a command that cannot be run fails on every node.
bool IsCommandsFault(int error) {
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case ENOTDIR:
    case EISDIR:
    case E2BIG:
    case ELOOP:
    case ENAMETOOLONG:
    case ETXTBSY:
    case EINVAL:
    case ELIBBAD:
      return true;
    default:
      return false;
  }
}

ChildResult Explain(const SupervisorSpec& spec, const Failure& failure) {
  const std::string why = std::strerror(failure.error);
  ChildResult result;
  result.refused = true;
  switch (failure.stage) {
    case kUser:
      result.message = "cannot become user " + spec.user + ": " + why;
      return result;
    case kDirectory:
      result.message = "cannot enter directory " + spec.directory + ": " + why;
      return result;
    case kExec:
      result.refused = !IsCommandsFault(failure.error);
      result.exit_code = result.refused ? 0 : failure.error == ENOENT ? 127 : 126;
      result.message = (failure.error == ENOENT ? "command not found: " : "cannot execute ") +
                       spec.argv[0] + (failure.error == ENOENT ? "" : ": " + why);
      return result;
    default:
      result.message = "cannot set up the process: " + why;
      return result;
  }
}

ChildResult Refused(const std::string& message) {
  ChildResult result;
  result.refused = true;
  result.message = message;
  return result;
}

// Closed by a successful exec: then nothing is read.
ChildResult AwaitExec(const SupervisorSpec& spec, pid_t pid, int pipe) {
  Failure failure{};
  ssize_t n;
  do n = read(pipe, &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n != sizeof failure) {
    ChildResult result;
    result.pid = pid;
    return result;
  }
  waitpid(pid, nullptr, 0);
  return Explain(spec, failure);
}

}  // namespace

ChildResult StartChild(const SupervisorSpec& spec, int stdout_fd, int stderr_fd) {
  if (spec.argv.empty()) return Refused("no command");
  const passwd* user = spec.user.empty() ? nullptr : getpwnam(spec.user.c_str());
  if (!spec.user.empty() && user == nullptr) return Refused("no such user: " + spec.user);
  const uid_t uid = user == nullptr ? geteuid() : user->pw_uid;
  if (uid == 0 && !spec.allow_root) return Refused("tasks must not run as root here");
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return Refused(std::string("pipe: ") + std::strerror(errno));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunChild(spec, user, stdout_fd, stderr_fd, pipe[1], parent);
  const int fork_error = errno;
  close(pipe[1]);
  if (pid > 0) setpgid(pid, pid);  // the child does it as well: whoever comes first
  ChildResult result = pid < 0 ? Refused(std::string("fork: ") + std::strerror(fork_error))
                               : AwaitExec(spec, pid, pipe[0]);
  close(pipe[0]);
  return result;
}

}  // namespace berth
