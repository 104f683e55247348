#include "clients/agent/images/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "clients/agent/images/file_tree.h"

namespace berth {
namespace {

constexpr int kWatchMs = 100;
constexpr size_t kMaxMessageBytes = 4000;
constexpr char kPath[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kHome[] = "HOME=/nonexistent";  // no configuration of the agent's user

struct Pipe {
  int read = -1, write = -1;
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  static void Close(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  ~Pipe() {
    Close(read);
    Close(write);
  }
};

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(resource, &limit);
}

// Runs in the child after fork.
[[noreturn]] void Become(const Child& child, char* const* argv, int output, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (const int signal : {SIGPIPE, SIGTERM}) ::signal(signal, SIG_DFL);
  Limit(RLIMIT_FSIZE, static_cast<rlim_t>(child.max_file_bytes));
  Limit(RLIMIT_CORE, 0);
  umask(022);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const char* env[] = {kPath, kHome, nullptr};
  if (null >= 0 && dup2(null, 0) >= 0 && dup2(output, 1) >= 0 && dup2(errors, 2) >= 0 &&
      chdir(child.directory.c_str()) == 0) {
    execve(child.program.c_str(), argv, const_cast<char**>(env));
  }
  dprintf(errors, "%s: %s", child.program.c_str(), std::strerror(errno));
  _exit(127);
}

// False at the end of the pipe.
bool Take(int pipe, size_t most, std::string* text) {
  char buffer[4096];
  const ssize_t n = read(pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  const size_t room = most - std::min(most, text->size());
  text->append(buffer, std::min(room, static_cast<size_t>(n)));
  return true;
}

// Collects what it writes until it ends or `watch` returns an error.
absl::Status Listen(const Child& child, Pipe& output, Pipe& errors,
                    const std::function<absl::Status()>& watch, ChildEnd* end) {
  while (output.read >= 0 || errors.read >= 0) {
    if (absl::Status status = watch(); !status.ok()) return status;
    pollfd fds[] = {{output.read, POLLIN, 0}, {errors.read, POLLIN, 0}};
    if (poll(fds, 2, kWatchMs) <= 0) continue;
    if (fds[0].revents != 0 && !Take(output.read, child.max_output, &end->output)) {
      Pipe::Close(output.read);
    }
    if (fds[1].revents != 0 && !Take(errors.read, kMaxMessageBytes, &end->message)) {
      Pipe::Close(errors.read);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChildEnd> RunChild(const Child& child, const std::function<absl::Status()>& watch) {
  Pipe output, errors;
  if (!output.Open() || !errors.Open()) return ErrnoError("pipe");
  std::vector<char*> argv;
  for (const std::string& word : child.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) Become(child, argv.data(), output.write, errors.write);
  if (pid < 0) return ErrnoError("fork");
  Pipe::Close(output.write);
  Pipe::Close(errors.write);
  ChildEnd end;
  const absl::Status watched = Listen(child, output, errors, watch, &end);
  if (!watched.ok()) kill(pid, SIGKILL);
  while (waitpid(pid, &end.status, 0) < 0 && errno == EINTR) {
  }
  if (!watched.ok()) return watched;
  return end;
}

bool Succeeded(const ChildEnd& end) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0;
}

std::string HowItEnded(const ChildEnd& end) {
  return WIFSIGNALED(end.status) ? absl::StrCat("killed by signal ", WTERMSIG(end.status))
                                 : absl::StrCat("code ", WEXITSTATUS(end.status));
}

}  // namespace berth
