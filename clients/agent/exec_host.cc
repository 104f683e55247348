#include "clients/agent/exec_host.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/supervisor/enter.h"
#include "clients/agent/supervisor/terminal.h"
#include "clients/agent/task_containers.h"

namespace berth {
namespace {

constexpr int kMaxExecEvents = 64;
constexpr char kEndOfInput = 4;  // Ctrl-D, as on a terminal
constexpr uint32_t kMaxTerminalSide = 10'000;

winsize ToWinsize(const v1::TerminalSize& size) {
  winsize result{};
  result.ws_row = static_cast<uint16_t>(std::clamp<uint32_t>(size.rows(), 1, kMaxTerminalSide));
  result.ws_col = static_cast<uint16_t>(std::clamp<uint32_t>(size.columns(), 1, kMaxTerminalSide));
  return result;
}

void CloseFd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// Both ends close on exec; the parent's end is non-blocking.
bool MakePipe(int ends[2], int parents) {
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  return fcntl(ends[parents], F_SETFL, O_NONBLOCK) == 0;
}

constexpr uint32_t kMaxExecPort = 65'535;

absl::Status CheckOpen(const v1::OpenExec& request) {
  size_t bytes = 0;
  const bool other = request.attach() || request.port() != 0;
  if (other && !request.container().empty())
    return absl::InvalidArgumentError("a container has no terminal and no port of its own");
  if (other && (!request.command().empty() || (request.attach() && request.port() != 0)))
    return absl::InvalidArgumentError("a command, the task's terminal, or a port: one of them");
  if (request.port() > kMaxExecPort) return absl::InvalidArgumentError("no such port");
  if (other) return absl::OkStatus();
  for (const std::string& argument : request.command()) {
    bytes += argument.size() + 1;
    if (argument.find('\0') != std::string::npos)
      return absl::InvalidArgumentError("a command must not have NUL bytes");
  }
  if (request.command().empty() || request.command(0).empty())
    return absl::InvalidArgumentError("no command");
  if (bytes > kMaxExecCommandBytes)
    return absl::InvalidArgumentError(absl::StrCat("the command is longer than 64 KiB"));
  return absl::OkStatus();
}

// The child's three descriptors; the parent closes them after the spawn.
struct Ends {
  ~Ends() {
    for (int* fd : {&in, &out, &err}) CloseFd(fd);
  }
  int in = -1, out = -1, err = -1;
};

int SpawnHelper(const std::string& program, const std::vector<std::string>& arguments,
                const Ends& ends, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, ends.in, 0);
  posix_spawn_file_actions_adddup2(&actions, ends.out, 1);
  posix_spawn_file_actions_adddup2(&actions, ends.err, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawn(pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

ExecHost::ExecHost(std::string supervisor, std::string tasks_directory)
    : supervisor_(std::move(supervisor)),
      tasks_directory_(std::move(tasks_directory)),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {}

ExecHost::~ExecHost() {
  Clear();
  CloseFd(&epoll_fd_);
}

void ExecHost::Open(const v1::OpenExec& request) {
  const uint64_t number = request.request();
  if (sessions_.contains(number)) return;
  Session session;
  session.task = ToTaskId(request.key());
  absl::Status status = CheckOpen(request);
  if (status.ok() && sessions_.size() >= kMaxExecSessions)
    status = absl::ResourceExhaustedError("too many commands in tasks of this node");
  if (status.ok()) status = Begin(request, &session);
  if (!status.ok()) return End(number, session, std::string(status.message()));
  if (session.kind != Kind::kPort) TellStarted(number);  // that is told once it is connected
  Watch(number, session);
  visited_.insert(session.task);
  sessions_[number] = std::move(session);
}

void ExecHost::TellStarted(uint64_t request) {
  v1::ExecOutput started;
  started.set_request(request);
  started.set_started(true);
  told_.push_back(std::move(started));
}

void ExecHost::TellOutput(uint64_t request, Session& session, v1::LogStream stream,
                          const char* data, size_t bytes) {
  session.unconfirmed += bytes;
  v1::ExecOutput output;
  output.set_request(request);
  output.set_stream(stream);
  output.set_data(data, bytes);
  told_.push_back(std::move(output));
}

absl::Status ExecHost::Begin(const v1::OpenExec& request, Session* session) {
  if (request.attach()) return Attach(request, session);
  if (request.port() != 0) return StartConnecting(request, session);
  session->kind = request.has_terminal() ? Kind::kOnTerminal : Kind::kCommand;
  return Spawn(request, session);
}

// The supervisor's socket takes a connection at once, or is full.
absl::Status ExecHost::Attach(const v1::OpenExec& request, Session* session) {
  session->kind = Kind::kAttached;
  const std::string directory = absl::StrCat(tasks_directory_, "/", ToString(session->task));
  int at = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return ErrnoStatus(errno, directory);
  session->out = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int error =
      session->out < 0 ? errno : UseSocketIn(at, kTerminalSocket, session->out, false);
  CloseFd(&at);
  if (error == ENOENT) return absl::FailedPreconditionError("the task has no terminal");
  if (error == ECONNREFUSED) return absl::FailedPreconditionError("the task's command has ended");
  if (error != 0) return ErrnoStatus(error, "the task's terminal");
  const winsize size = ToWinsize(request.terminal());
  session->window = absl::StrCat("w", size.ws_row, " ", size.ws_col);
  return absl::OkStatus();
}

absl::Status ExecHost::StartConnecting(const v1::OpenExec& request, Session* session) {
  session->kind = Kind::kPort;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoStatus(errno, "socketpair");
  session->helper = pair[0];
  Ends ends;
  ends.in = pair[1];
  ends.out = open("/dev/null", O_WRONLY | O_CLOEXEC);
  ends.err = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (fcntl(session->helper, F_SETFL, O_NONBLOCK) != 0 || ends.out < 0 || ends.err < 0)
    return ErrnoStatus(errno, "socketpair or /dev/null");
  const std::vector<std::string> arguments = {
      supervisor_, "--connect", absl::StrCat(tasks_directory_, "/", ToString(session->task)),
      absl::StrCat(request.port())};
  const int error = SpawnHelper(supervisor_, arguments, ends, &session->pid);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, absl::StrCat("spawn ", supervisor_));
}

// The helper's answer: the connection, or why there is none. It ends by itself.
void ExecHost::TakeConnection(uint64_t request, Session& session) {
  char text[512];
  iovec part{text, sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(session.helper, &message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  CloseFd(&session.helper);
  dying_.push_back(std::exchange(session.pid, 0));
  const cmsghdr* header = n >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&session.out, CMSG_DATA(header), sizeof(int));
  }
  if (session.out >= 0 && fcntl(session.out, F_SETFL, O_NONBLOCK) == 0) return TellStarted(request);
  session.error = n > 0 ? std::string(text, static_cast<size_t>(n))
                        : "the connection could not be made inside the task";
}

absl::Status ExecHost::Spawn(const v1::OpenExec& request, Session* session) {
  const auto directory = NamedDirectory(
      absl::StrCat(tasks_directory_, "/", ToString(session->task)), request.container());
  if (!directory.ok()) return directory.status();
  if (!request.container().empty() && access(directory->c_str(), F_OK) != 0)
    return absl::NotFoundError(absl::StrCat("the task has no container ", request.container()));
  Ends ends;
  bool made = false;
  if (session->kind == Kind::kOnTerminal) {
    const winsize size = ToWinsize(request.terminal());
    made = openpty(&session->out, &ends.in, nullptr, nullptr, &size) == 0;
    if (made) {
      ends.out = fcntl(ends.in, F_DUPFD_CLOEXEC, 3);
      ends.err = fcntl(ends.in, F_DUPFD_CLOEXEC, 3);
      fcntl(session->out, F_SETFD, FD_CLOEXEC);
      fcntl(session->out, F_SETFL, O_NONBLOCK);
    }
  } else {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    made = MakePipe(in, 1) && MakePipe(out, 0) && MakePipe(err, 0);
    ends.in = in[0];
    ends.out = out[1];
    ends.err = err[1];
    session->in = in[1];
    session->out = out[0];
    session->err = err[0];
  }
  if (!made) return ErrnoStatus(errno, "pipe or terminal");
  std::vector<std::string> arguments = {
      supervisor_, session->kind == Kind::kOnTerminal ? "--exec-tty" : "--exec", *directory};
  arguments.insert(arguments.end(), request.command().begin(), request.command().end());
  const int error = SpawnHelper(supervisor_, arguments, ends, &session->pid);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("spawn ", supervisor_));
  session->pid_fd = static_cast<int>(syscall(SYS_pidfd_open, session->pid, 0));
  if (session->pid_fd >= 0) return absl::OkStatus();
  return ErrnoStatus(errno, "pidfd");  // End kills it
}

// What Poll can process: output is not read while too much is unconfirmed.
void ExecHost::Watch(uint64_t request, const Session& session) {
  const bool room = session.unconfirmed < kExecWindow && !session.output_ended;
  const bool both = session.kind != Kind::kCommand;  // `out` takes the input
  struct Interest {
    int fd;
    uint32_t events;
  };
  const bool waits = !session.input.empty() || !session.window.empty();
  const uint32_t feed = waits ? static_cast<uint32_t>(EPOLLOUT) : 0u;
  const uint32_t read = room ? static_cast<uint32_t>(EPOLLIN) : 0u;
  for (const Interest& interest :
       {Interest{session.pid_fd, session.exited ? read : static_cast<uint32_t>(EPOLLIN)},
        Interest{session.in, feed}, Interest{session.err, read},
        Interest{session.helper, static_cast<uint32_t>(EPOLLIN)},
        Interest{session.out, read | (both ? feed : 0u)}}) {
    if (interest.fd < 0) continue;
    epoll_event event{};
    // One-shot: a pipe whose other end is closed is always ready, even with no events requested.
    event.events = interest.events | static_cast<uint32_t>(EPOLLONESHOT);
    event.data.u64 = request;
    const int operation = interest.events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll_fd_, operation, interest.fd, &event) != 0 && interest.events != 0)
      epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, interest.fd, &event);
  }
}

void ExecHost::Input(const v1::ExecInput& input) {
  const auto found = sessions_.find(input.request());
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (input.cancel()) {
    Close(session);
    sessions_.erase(found);
    return;
  }
  session.unconfirmed -= std::min<size_t>(session.unconfirmed, input.consumed());
  if (input.has_resize()) {
    const winsize size = ToWinsize(input.resize());
    if (session.kind == Kind::kOnTerminal) ioctl(session.out, TIOCSWINSZ, &size);
    if (session.kind == Kind::kAttached)
      session.window = absl::StrCat("w", size.ws_row, " ", size.ws_col);
  }
  if (!session.input_ended) session.input += input.data();
  if (session.input.size() > kExecWindow) {
    End(input.request(), session, "input exceeds the flow-control window");
    sessions_.erase(found);
    return;
  }
  if (input.end() && !session.input_ended) {
    session.input_ended = true;
    if (session.kind == Kind::kOnTerminal) session.input.push_back(kEndOfInput);
  }
  Work(input.request(), session);  // output that waited for room may be the last
  if (!session.error.empty() || Over(session)) {
    End(input.request(), session, session.error);
    sessions_.erase(found);
    return;
  }
  Watch(input.request(), session);
}

void ExecHost::Feed(uint64_t request, Session& session) {
  if (session.helper >= 0) return;  // it is not connected yet
  const size_t fed = session.kind == Kind::kAttached ? FeedTerminal(session) : FeedBytes(session);
  session.input.erase(0, fed);
  if (session.input.empty() && session.input_ended) {
    CloseFd(&session.in);
    if (session.kind == Kind::kPort && session.out >= 0) shutdown(session.out, SHUT_WR);
  }
  if (fed == 0) return;
  v1::ExecOutput taken;
  taken.set_request(request);
  taken.set_consumed(fed);
  told_.push_back(std::move(taken));
}

size_t ExecHost::FeedBytes(Session& session) {
  const int fd = session.kind == Kind::kCommand ? session.in : session.out;
  size_t fed = 0;
  while (fd >= 0 && fed < session.input.size()) {
    const char* data = session.input.data() + fed;
    const size_t left = session.input.size() - fed;
    const ssize_t n =
        session.kind == Kind::kPort ? send(fd, data, left, MSG_NOSIGNAL) : write(fd, data, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return fed;
    // No reader is left: the input is dropped, so that the client is not blocked.
    fed = n < 0 ? session.input.size() : fed + static_cast<size_t>(n);
  }
  return fd < 0 ? session.input.size() : fed;
}

// In packets (supervisor/terminal.h), sizes first.
size_t ExecHost::FeedTerminal(Session& session) {
  if (session.out < 0) return session.input.size();
  if (!session.window.empty()) {
    if (send(session.out, session.window.data(), session.window.size(), MSG_NOSIGNAL) < 0 &&
        errno == EAGAIN) {
      return 0;
    }
    session.window.clear();
  }
  size_t fed = 0;
  while (fed < session.input.size()) {
    const size_t bytes = std::min(session.input.size() - fed, kTerminalPacketBytes);
    const std::string packet = absl::StrCat("i", session.input.substr(fed, bytes));
    if (send(session.out, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0)
      fed += bytes;
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      return session.input.size();
  }
  return fed;
}

void ExecHost::Read(uint64_t request, Session& session, int* fd, v1::LogStream stream) {
  std::string buffer(kMaxExecDataBytes, '\0');
  while (*fd >= 0 && !session.output_ended && session.unconfirmed < kExecWindow) {
    const ssize_t n = read(*fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 && session.kind == Kind::kPort) {
      session.output_ended = true;
      if (n < 0) session.error = absl::StrCat("the connection broke: ", std::strerror(errno));
      if (n == 0) TellOutput(request, session, stream, "", 0);
      return;
    }
    if (n <= 0) return CloseFd(fd);  // EIO: nobody has the terminal open
    TellOutput(request, session, stream, buffer.data(), static_cast<size_t>(n));
  }
}

void ExecHost::ReadTerminal(uint64_t request, Session& session) {
  char buffer[kTerminalPacketBytes + 1];
  bool broken = false;
  while (session.out >= 0 && session.unconfirmed < kExecWindow) {
    const ssize_t n = recv(session.out, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    // The terminal closed without reading what was sent to it: its last words come after this.
    if (n < 0 && errno == ECONNRESET && !std::exchange(broken, true)) continue;
    if (n < 0 && errno == EAGAIN) return;
    const std::string body = n > 0 ? std::string(buffer + 1, static_cast<size_t>(n) - 1) : "";
    if (n > 0 && buffer[0] == 'o') {
      if (!body.empty()) TellOutput(request, session, v1::STDOUT, body.data(), body.size());
      continue;
    }
    if (n > 0 && buffer[0] == 'x')
      session.exited = absl::SimpleAtoi(body, &session.exit_code);
    else if (n > 0 && buffer[0] == 'e')
      session.error = body;
    else
      session.error = "the task's terminal has ended, or this client did not read what it printed";
    return CloseFd(&session.out);
  }
}

// Checks without reaping; it stays a zombie until Close, so that its process group is not reused.
void ExecHost::Look(Session& session) {
  siginfo_t info{};
  if (session.exited || session.pid_fd < 0) return;
  const int options = WEXITED | WNOHANG | WNOWAIT;
  if (waitid(P_PID, static_cast<id_t>(session.pid), &info, options) != 0 || info.si_pid == 0)
    return;
  session.exited = true;
  session.exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

// After the command ends, the remaining output in the pipes is read, but processes that it left
// behind are not waited for.
std::vector<v1::ExecOutput> ExecHost::Poll() {
  epoll_event ready[kMaxExecEvents];
  std::erase_if(dying_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  const int count = epoll_wait(epoll_fd_, ready, kMaxExecEvents, 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t request = ready[i].data.u64;
    const auto found = sessions_.find(request);
    if (found == sessions_.end()) continue;
    Session& session = found->second;
    Work(request, session);
    if (!session.error.empty() || Over(session)) {
      End(request, session, session.error);
      sessions_.erase(found);
      continue;
    }
    Watch(request, session);
  }
  return std::exchange(told_, {});
}

void ExecHost::Work(uint64_t request, Session& session) {
  if (session.helper >= 0) TakeConnection(request, session);
  Look(session);
  Feed(request, session);
  if (session.kind == Kind::kAttached) return ReadTerminal(request, session);
  Read(request, session, &session.out, v1::STDOUT);
  Read(request, session, &session.err, v1::STDERR);
}

// The rest of the output has been told, or nothing more can be read or written.
bool ExecHost::Over(const Session& session) {
  if (session.kind == Kind::kPort)
    return session.output_ended && session.input_ended && session.input.empty();
  return session.exited && (session.kind == Kind::kAttached || session.unconfirmed < kExecWindow);
}

std::set<TaskId> ExecHost::TakeVisited() {
  std::set<TaskId> visited = std::exchange(visited_, {});
  for (const auto& [request, session] : sessions_) visited.insert(session.task);
  return visited;
}

void ExecHost::End(uint64_t request, Session& session, const std::string& error) {
  v1::ExecOutput end;
  end.set_request(request);
  end.set_end(true);
  end.set_error(error);
  if (error.empty()) end.set_exit_code(session.exit_code);
  told_.push_back(std::move(end));
  Close(session);
}

void ExecHost::Close(Session& session) {
  if (session.pid > 0) {
    kill(-session.pid, SIGKILL);
    if (waitpid(session.pid, nullptr, WNOHANG) == 0) dying_.push_back(session.pid);
  }
  for (int* fd : {&session.pid_fd, &session.in, &session.out, &session.err, &session.helper})
    CloseFd(fd);
}

void ExecHost::EndTask(const TaskId& id) {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    // The terminal itself tells its clients how the task ended.
    if (at->second.task != id || at->second.kind == Kind::kAttached) {
      ++at;
      continue;
    }
    End(at->first, at->second, "the task has ended");
    at = sessions_.erase(at);
  }
}

void ExecHost::Clear() {
  for (auto& [request, session] : sessions_) Close(session);
  sessions_.clear();
  told_.clear();
}

}  // namespace berth
