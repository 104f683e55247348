#include "clients/slurm/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr int kTaken[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                          SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGTSTP};

sigset_t TakenSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kTaken) sigaddset(&set, signal);
  return set;
}

std::vector<char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawnp would search this process's PATH.
std::string InPath(const std::string& program, const std::vector<std::string>& environment) {
  if (absl::StrContains(program, '/')) return program;
  absl::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& entry : environment) {
    absl::string_view value = entry;
    if (absl::ConsumePrefix(&value, "PATH=")) path = value;
  }
  while (!path.empty()) {
    const size_t colon = path.find(':');
    const std::string candidate = absl::StrCat(path.substr(0, colon), "/", program);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    path = colon == absl::string_view::npos ? "" : path.substr(colon + 1);
  }
  return program;
}

}  // namespace

absl::StatusOr<pid_t> StartChild(const ChildProcess& child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const int wanted[] = {child.in, child.out, child.err};
  for (int fd = 0; fd < 3; ++fd) {
    if (wanted[fd] >= 0) {
      posix_spawn_file_actions_adddup2(&actions, wanted[fd], fd);
    } else {
      posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    }
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!child.directory.empty())
    posix_spawn_file_actions_addchdir_np(&actions, child.directory.c_str());
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::string program = InPath(child.arguments.front(), child.environment);
  const std::vector<char*> argv = PointersTo(child.arguments);
  const std::vector<char*> envp = PointersTo(child.environment);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  const std::string why = absl::StrCat(child.arguments.front(), ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(why) : absl::PermissionDeniedError(why);
}

std::vector<std::string> InterpreterOf(absl::string_view script) {
  if (!absl::ConsumePrefix(&script, "#!")) return {};
  const absl::string_view line = absl::StripAsciiWhitespace(script.substr(0, script.find('\n')));
  const size_t blank = line.find_first_of(" \t");
  std::vector<std::string> words = {std::string(line.substr(0, blank))};
  if (blank != absl::string_view::npos)
    words.emplace_back(absl::StripLeadingAsciiWhitespace(line.substr(blank)));
  return words;
}

SignalEvents::SignalEvents() {
  const sigset_t taken = TakenSignals();
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  fd_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalEvents::~SignalEvents() {
  const sigset_t taken = TakenSignals();
  close(fd_);
  sigprocmask(SIG_UNBLOCK, &taken, nullptr);
}

int SignalEvents::Take() {
  signalfd_siginfo info{};
  return read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

int ExitCodeOfWait(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void EndLike(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

}  // namespace berth
