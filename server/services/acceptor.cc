#include "server/services/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "support/clock.h"
#include "support/grpc_log.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kBacklog = 4096;  // connections that wait to be accepted
constexpr absl::Duration kOutOfDescriptorsWait = absl::Milliseconds(100);
constexpr absl::Duration kComplainInterval = absl::Minutes(1);

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

// -1 and errno.
int ListenOn(const addrinfo& address, bool both_families) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // accepted ones inherit it
  if (address.ai_family == AF_INET6)
    SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// "10.0.0.7:41234", "[2001:db8::1]:41234".
std::string AddressText(const sockaddr_storage& address) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, host, sizeof host,
                  port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  absl::string_view name = host;
  absl::ConsumePrefix(&name, "::ffff:");  // of one socket for both families
  const bool v6 = absl::StrContains(name, ':');
  return absl::StrCat(v6 ? "[" : "", name, v6 ? "]:" : ":", port);
}

// A handshake that fails does so within moments of its connection; gRPC does not say whose it was.
struct RecentPeers {
  static constexpr size_t kMost = 4;
  static constexpr absl::Duration kRecent = absl::Seconds(5);

  void Add(const sockaddr_storage& address) ABSL_LOCKS_EXCLUDED(mutex) {
    std::string name = AddressText(address);
    absl::MutexLock lock(&mutex);
    peers.push_front({SystemClock().Steady(), std::move(name)});
    if (peers.size() > kMost) peers.pop_back();
  }
  std::string Text() ABSL_LOCKS_EXCLUDED(mutex) {
    const absl::Duration now = SystemClock().Steady();
    std::vector<std::string> names;
    absl::MutexLock lock(&mutex);
    for (const auto& [when, name] : peers) {
      if (now - when <= kRecent) names.push_back(name);
    }
    return absl::StrCat(names.size() > 1 ? "one of " : "", absl::StrJoin(names, ", "));
  }

  absl::Mutex mutex;
  std::deque<std::pair<absl::Duration, std::string>> peers ABSL_GUARDED_BY(mutex);  // newest first
};

RecentPeers& Recent() {
  static auto* const recent = new RecentPeers;  // outlives gRPC's threads
  return *recent;
}

}  // namespace

Acceptor::Acceptor(const Options& options)
    : options_(options),
      connections_(options.limits),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  for (const int fd : listeners_) close(fd);
  if (stop_fd_ >= 0) close(stop_fd_);
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address,
                                                           const Options& options) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const std::string port = address.substr(colon + 1);
  std::unique_ptr<Acceptor> acceptor(new Acceptor(options));
  absl::Status status = absl::UnavailableError("");
  if (IsAnyAddress(host)) status = acceptor->Bind("::", port);
  if (!status.ok()) status = acceptor->Bind(host, port);  // also where there is no IPv6
  if (status.ok()) return acceptor;
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", status.message(),
                                             ": is another berthd running?"));
}

// All addresses that a name has, on one port.
absl::Status Acceptor::Bind(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  Resolved resolved;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &resolved.list);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  std::string why = "no such address";
  for (const addrinfo* at = resolved.list; at != nullptr; at = at->ai_next) {
    auto* const port_of = at->ai_family == AF_INET6
                              ? &reinterpret_cast<sockaddr_in6*>(at->ai_addr)->sin6_port
                              : &reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port;
    if (port_ != 0) *port_of = htons(static_cast<uint16_t>(port_));  // that the first one was given
    const int fd = ListenOn(*at, IsAnyAddress(host));
    if (fd < 0) {
      why = std::strerror(errno);
      if (errno == EADDRINUSE) return absl::UnavailableError(why);
      continue;  // a family that this machine does not have
    }
    if (options_.user_timeout > absl::ZeroDuration()) {
      SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
                static_cast<int>(absl::ToInt64Milliseconds(options_.user_timeout)));
    }
    listeners_.push_back(fd);
    port_ = PortOf(fd);
  }
  return listeners_.empty() ? absl::UnavailableError(why) : absl::OkStatus();
}

void Acceptor::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server) {
  server_ = std::move(server);
  SetHandshakePeers([] { return Recent().Text(); });
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_fd_, 1);
  thread_.join();
  for (const int fd : std::exchange(listeners_, {})) close(fd);  // who waits is told at once
}

void Acceptor::CutConnections() { connections_.CutAll(); }

void Acceptor::Run() {
  std::vector<pollfd> waiting = {{stop_fd_, POLLIN, 0}};
  for (const int fd : listeners_) waiting.push_back({fd, POLLIN, 0});
  for (;;) {
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[0].revents != 0) return;
    for (size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) Accept(waiting[i].fd);
    }
  }
}

void Acceptor::Accept(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int fd =
      accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    Complain(std::strerror(errno), refused_.load());
    absl::SleepFor(kOutOfDescriptorsWait);  // it waits in the backlog
    return;
  }
  if (!connections_.Admit(fd, PeerOf(address))) {
    close(fd);
    return Complain("too many, in all or of one address (limits.connections)", ++refused_);
  }
  Recent().Add(address);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  server_->HandleNewConnection(&connection);
}

void Acceptor::Complain(const char* what, uint64_t count) {
  const absl::Duration now = SystemClock().Steady();
  if (now - complained_ < kComplainInterval) return;
  complained_ = now;
  LogWarn("a connection was not taken",
          {{"why", what}, {"open", connections_.size()}, {"refused", count}});
}

}  // namespace berth
