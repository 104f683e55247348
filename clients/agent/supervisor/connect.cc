#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/enter.h"
#include "clients/agent/supervisor/namespaces.h"
#include "clients/agent/supervisor/privileges.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kConnectMs = 10'000;
constexpr int kConnectFailed = 126;

// One packet to the agent. `connection`: a descriptor that goes with it; -1: none.
int AnswerAgent(const std::string& text, int connection) {
  std::string body = text;
  iovec part{body.data(), body.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (connection >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &connection, sizeof(int));
  }
  return sendmsg(0, &message, MSG_NOSIGNAL) >= 0 && connection >= 0 ? 0 : kConnectFailed;
}

int RefuseConnection(const std::string& what, int error) {
  return AnswerAgent(what + ": " + std::strerror(error), -1);
}

// Returns an errno, within kConnectMs.
int ConnectSocket(int fd, const sockaddr* address, socklen_t bytes) {
  if (connect(fd, address, bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{fd, POLLOUT, 0};
  const int count = poll(&ready, 1, kConnectMs);
  if (count < 0) return errno;
  if (count == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// The connection, or the negative of an errno.
int ConnectLoopback(int family, uint16_t port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const int error = family == AF_INET
                        ? ConnectSocket(fd, reinterpret_cast<const sockaddr*>(&v4), sizeof v4)
                        : ConnectSocket(fd, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (error == 0) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  close(fd);
  return -error;
}

}  // namespace

int ConnectInTask(const std::string& directory, uint16_t port) {
  ResetSignals();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SupervisorSpec spec;
  SupervisorStatus status;
  if (ReadRunningTask(directory, &spec, &status) != 0)
    return AnswerAgent("the task does not run", -1);
  const std::string& name = spec.container ? spec.container_user : spec.user;
  if (spec.container && name.empty())
    return AnswerAgent("the task was started by an older version, which did not record its user",
                       -1);
  const passwd* user = nullptr;
  if (const int error = FindTaskUser(spec, name, &user); error != 0)
    return RefuseConnection("the task's user", error);
  if (const int error = ControlGroup(spec.groups).Enter(); error != 0)
    return RefuseConnection("the task's control group", error);
  if (const int error =
          JoinNetwork(static_cast<pid_t>(status.pid), static_cast<pid_t>(status.supervisor_pid));
      error != 0) {
    return RefuseConnection("the task's network namespace", error);
  }
  if (const int error = BecomeUser(user); error != 0)
    return RefuseConnection("the task's user", error);
  int connection = ConnectLoopback(AF_INET, port);
  if (connection == -ECONNREFUSED) {
    connection = ConnectLoopback(AF_INET6, port);
    if (connection == -EAFNOSUPPORT || connection == -EADDRNOTAVAIL) connection = -ECONNREFUSED;
  }
  if (connection == -ECONNREFUSED)
    return AnswerAgent("nothing listens on port " + std::to_string(port) + " of the task", -1);
  if (connection < 0)
    return RefuseConnection("port " + std::to_string(port) + " of the task", -connection);
  return AnswerAgent("connected", connection);
}

}  // namespace berth
