#include "clients/agent/supervisor/child.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/expand.h"
#include "clients/agent/supervisor/mounts.h"
#include "clients/agent/supervisor/namespaces.h"
#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/supervisor/shared_memory.h"

namespace berth {
namespace {

enum Stage : int { kStreams, kGroup, kMemory, kFiles, kVolumes, kLimits, kUser, kDirectory, kExec };
struct Failure {
  int stage;
  int error;
  MountError mount = {};  // kVolumes
};

[[noreturn]] void Fail(int pipe, Stage stage, int error, const MountError& mount = {}) {
  const Failure failure{stage, error, mount};
  if (write(pipe, &failure, sizeof failure) < 0) _exit(255);
  _exit(255);
}

// The state of the forked process that becomes the command.
struct Plan {
  const SupervisorSpec& spec;
  const std::vector<std::string>& argv;
  const std::vector<std::string>& env;
  const passwd* user;
  bool hook;
  bool terminal = false;
};

// Steps that need privileges, before they are dropped.
void EnterTask(const SupervisorSpec& spec, const passwd* user, int pipe) {
  if (const int error = ControlGroup(spec.groups).Enter(); error != 0) Fail(pipe, kGroup, error);
  if (!spec.shm.empty()) {
    if (const int error = SharedMemory(spec.shm).EnterIpc(); error != 0) Fail(pipe, kMemory, error);
  }
  const auto check = [pipe](const MountError& mount) {
    if (mount.error != 0) Fail(pipe, kVolumes, mount.error, mount);
  };
  if (spec.container) return check(EnterContainerMounts(spec));
  if (const int error = TakeGroups(user); error != 0) Fail(pipe, kUser, error);
  VolumeMounts volumes(spec, user);
  check(volumes.Open());
  if (const int error = EnterMounts(spec); error != 0) Fail(pipe, kFiles, error);
  check(volumes.Attach());
  if (const int error = ApplyLimits(spec); error != 0) Fail(pipe, kLimits, error);
  if (const int error = BecomeUser(user); error != 0) Fail(pipe, kUser, error);
}

// For a pipe whose only reader is the parent. The parent's PID is useless in another namespace.
bool ParentDied(int pipe) {
  pollfd end{pipe, 0, 0};
  return poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

// The command can open its terminal again by name, as its user.
void TakeTerminal(const Plan& plan, int terminal, int pipe) {
  if (setsid() < 0 || ioctl(terminal, TIOCSCTTY, 0) != 0) Fail(pipe, kStreams, errno);
  if (plan.user == nullptr || geteuid() != 0) return;
  if (fchown(terminal, plan.user->pw_uid, static_cast<gid_t>(-1)) != 0) Fail(pipe, kStreams, errno);
}

[[noreturn]] void RunChild(const Plan& plan, int out, int err, int pipe) {
  ResetSignals();
  if (plan.terminal)
    TakeTerminal(plan, out, pipe);
  else
    setpgid(0, 0);
  umask(022);
  const int in = plan.terminal ? out : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
    Fail(pipe, kStreams, errno);
  if (!plan.hook) EnterTask(plan.spec, plan.user, pipe);
  // After the change of user, which clears it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (ParentDied(pipe)) _exit(255);
  if (!plan.hook && chdir(plan.spec.directory.c_str()) != 0) Fail(pipe, kDirectory, errno);
  // Only here, so that no other process sees the values.
  const bool expand = !plan.hook && !plan.spec.container;
  const std::vector<std::string> command = expand ? ExpandCommand(plan.argv, plan.env) : plan.argv;
  std::vector<char*> argv = Pointers(command);
  std::vector<char*> env = Pointers(plan.env);
  environ = env.data();  // execvp searches the task's PATH, not ours
  execvp(argv[0], argv.data());
  Fail(pipe, kExec, errno);
}

// A command that cannot be run fails on every node.
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

// The process's limit, derived from the job's request, is too small for the program.
bool LimitTooSmall(const SupervisorSpec& spec, int error) {
  return error == ENOMEM && spec.data_limit_bytes > 0;
}

// Whether the job is to blame for a directory that cannot be entered: a lost file system may
// return.
bool IsDirectorysFault(int error) {
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

ChildResult Explain(const Plan& plan, const Failure& failure) {
  const SupervisorSpec& spec = plan.spec;
  const std::string why = std::strerror(failure.error);
  ChildResult result;
  result.refused = true;
  switch (failure.stage) {
    case kGroup:
      result.message = "cannot enter the task's control group: " + why;
      return result;
    case kMemory:
      result.message = "cannot set up the task's shared memory: " + why;
      return result;
    case kFiles:
      result.message =
          "cannot mount the task's /tmp, /dev/shm, /proc, /etc/hosts or NOTIFY_SOCKET: " + why;
      return result;
    case kVolumes:
      result.own_fault = IsJobsMountError(failure.mount);
      result.message = MountErrorText(spec, failure.mount);
      return result;
    case kLimits:
      result.message = "cannot limit the task: " + why;
      return result;
    case kUser:
      result.message = "cannot become user " + spec.user + ": " + why;
      return result;
    case kDirectory:
      result.own_fault = IsDirectorysFault(failure.error);
      result.message = "cannot enter directory " + spec.directory + ": " + why;
      return result;
    case kExec:
      if (spec.container && !plan.hook) {  // the runtime starts the command itself
        result.message = "cannot execute the container runtime " + plan.argv[0] + ": " + why;
        return result;
      }
      result.refused = !IsCommandsFault(failure.error) && !LimitTooSmall(spec, failure.error);
      result.exit_code = result.refused ? 0 : failure.error == ENOENT ? 127 : 126;
      result.message = (failure.error == ENOENT ? "command not found: " : "cannot execute ") +
                       plan.argv[0] + (failure.error == ENOENT ? "" : ": " + why);
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

// A successful exec closes the pipe: then nothing is read.
ChildResult AwaitExec(const Plan& plan, pid_t pid, int pipe) {
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
  return Explain(plan, failure);
}

ChildResult Spawn(const Plan& plan, int stdout_fd, int stderr_fd) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return Refused(std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) {
    close(pipe[0]);
    RunChild(plan, stdout_fd, stderr_fd, pipe[1]);
  }
  const int fork_error = errno;
  close(pipe[1]);
  // The child does it, too: either may be first. The leader of a session has its own group.
  if (pid > 0 && !plan.terminal) setpgid(pid, pid);
  ChildResult result = pid < 0 ? Refused(std::string("fork: ") + std::strerror(fork_error))
                               : AwaitExec(plan, pid, pipe[0]);
  close(pipe[0]);
  return result;
}

}  // namespace

namespace {

ChildResult Start(const SupervisorSpec& spec, int stdout_fd, int stderr_fd, bool terminal) {
  if (spec.argv.empty()) return Refused("no command");
  const passwd* user = spec.user.empty() ? nullptr : getpwnam(spec.user.c_str());
  if (!spec.user.empty() && user == nullptr) return Refused("no such user: " + spec.user);
  const uid_t uid = user == nullptr ? geteuid() : user->pw_uid;
  if (uid == 0 && !spec.allow_root && !spec.container)
    return Refused("tasks must not run as root on this node");
  std::optional<NewPidNamespace> pids;
  if (spec.own_pids && !spec.container) pids.emplace(spec.first_pid);
  if (pids && pids->error() != 0) {
    return Refused(std::string("cannot create the task's PID namespace: ") +
                   std::strerror(pids->error()));
  }
  const Plan plan = {spec, spec.argv, spec.env, user, false, terminal};
  ChildResult result = Spawn(plan, stdout_fd, stderr_fd);
  if (pids) result.init_pid = pids->init();
  return result;
}

}  // namespace

ChildResult StartChild(const SupervisorSpec& spec, int stdout_fd, int stderr_fd) {
  return Start(spec, stdout_fd, stderr_fd, false);
}

ChildResult StartOnTerminal(const SupervisorSpec& spec, int terminal_fd) {
  return Start(spec, terminal_fd, terminal_fd, true);
}

ChildResult StartHook(const SupervisorSpec& spec, const std::vector<std::string>& argv,
                      int output_fd) {
  ChildResult result = Spawn({spec, argv, spec.hook_env, nullptr, true}, output_fd, output_fd);
  if (result.pid < 0) result.refused = true;
  return result;
}

ChildResult StartTool(const SupervisorSpec& spec, const std::vector<std::string>& argv,
                      int output_fd) {
  static const std::vector<std::string> kEnvironment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  return Spawn({spec, argv, kEnvironment, nullptr, true}, output_fd, output_fd);
}

}  // namespace berth
