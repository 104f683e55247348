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
#include "support/listen.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kOutOfDescriptorsWait = absl::Milliseconds(100);
constexpr absl::Duration kComplainInterval = absl::Minutes(1);

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

// A failing handshake fails within moments of its connection; gRPC does not report which one
// failed.
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

Acceptor::Acceptor(const Options& options, Listeners listeners)
    : connections_(options.limits),
      listeners_(std::move(listeners.fds)),
      port_(listeners.port),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  for (const int fd : listeners_) close(fd);
  if (stop_fd_ >= 0) close(stop_fd_);
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address,
                                                           const Options& options) {
  absl::StatusOr<Listeners> listeners = ListenOn(address);
  if (!listeners.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ",
                                               listeners.status().message(),
                                               ": is another berthd running?"));
  }
  const int timeout = static_cast<int>(absl::ToInt64Milliseconds(options.user_timeout));
  for (const int fd : listeners->fds) {  // accepted sockets inherit it
    if (timeout > 0) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  }
  return std::unique_ptr<Acceptor>(new Acceptor(options, *std::move(listeners)));
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
  for (const int fd : std::exchange(listeners_, {})) close(fd);  // waiting clients see it at once
}

void Acceptor::CutConnections() {
  absl::MutexLock lock(&mutex_);
  connections_.CutAll();
}

void Acceptor::Cut(const ClientEnd& end, absl::Duration ban) {
  absl::MutexLock lock(&mutex_);
  if (!connections_.Cut(end, SystemClock().Steady() + ban)) return;
  LogWarn("a connection was cut: its client opens and resets calls faster than they can be ended",
          {{"peer", TextOf(end)},
           {"others_refused_for", IsLoopback(end) ? "0" : absl::FormatDuration(ban)}});
}

void Acceptor::End(const ClientEnd& end) {
  absl::MutexLock lock(&mutex_);
  if (!connections_.End(end)) return;
  LogInfo("a connection ended: its client's certificate has expired", {{"peer", TextOf(end)}});
}

bool Acceptor::Admit(int fd, const sockaddr_storage& address) {
  absl::MutexLock lock(&mutex_);
  return connections_.Admit(fd, address, SystemClock().Steady());
}

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
    absl::SleepFor(kOutOfDescriptorsWait);  // the connection waits in the backlog
    return;
  }
  if (!Admit(fd, address)) {
    close(fd);
    return Complain(
        "too many connections, in total or from one address (limits.connections), or one of an "
        "address that was cut",
        ++refused_);
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
  size_t open = 0;
  {
    absl::MutexLock lock(&mutex_);
    open = connections_.size();
  }
  LogWarn("a connection was refused", {{"why", what}, {"open", open}, {"refused", count}});
}

}  // namespace berth
