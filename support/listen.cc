#include "support/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth {
namespace {

constexpr int kBacklog = 4096;  // connections waiting to be accepted

struct Resolved {
  ~Resolved() {
    if (list != nullptr) freeaddrinfo(list);
  }
  addrinfo* list = nullptr;
};

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// -1 with errno on failure.
int ListenAt(const addrinfo& address, bool both_families) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // accepted sockets inherit it
  if (address.ai_family == AF_INET6)
    SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

absl::StatusOr<Listeners> Bind(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  Resolved resolved;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &resolved.list);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  Listeners listeners;
  std::string why = "no such address";
  for (const addrinfo* at = resolved.list; at != nullptr; at = at->ai_next) {
    auto* const port_of = at->ai_family == AF_INET6
                              ? &reinterpret_cast<sockaddr_in6*>(at->ai_addr)->sin6_port
                              : &reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port;
    if (listeners.port != 0) *port_of = htons(static_cast<uint16_t>(listeners.port));
    const int fd = ListenAt(*at, IsAnyAddress(host));
    if (fd >= 0) {
      listeners.fds.push_back(fd);
      listeners.port = PortOf(fd);
      continue;
    }
    why = std::strerror(errno);
    if (errno != EADDRINUSE) continue;  // an address family that this machine lacks
    for (const int bound : listeners.fds) close(bound);
    return absl::UnavailableError(why);
  }
  if (listeners.fds.empty()) return absl::UnavailableError(why);
  return listeners;
}

}  // namespace

absl::StatusOr<Listeners> ListenOn(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  if (IsAnyAddress(host)) {
    if (auto both = Bind("::", port); both.ok()) return both;
  }
  return Bind(host, port);  // also works where there is no IPv6
}

}  // namespace berth
