#include "server/ha/leader_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/time/clock.h"

namespace berth {
namespace {

constexpr absl::Duration kApart = absl::Milliseconds(50);
constexpr absl::Duration kRetry = absl::Milliseconds(200);
constexpr int kConnectMilliseconds = 50;

}  // namespace

LeaderProbe::~LeaderProbe() { Close(); }

void LeaderProbe::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

bool LeaderProbe::Resolve(const std::string& address) {
  Close();
  address_ = address;
  where_.clear();
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0) {
    return false;
  }
  family_ = found->ai_family;
  where_.assign(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen);
  freeaddrinfo(found);
  return true;
}

// The peer sends nothing before it has got something, except the end.
bool LeaderProbe::IsOpen() const {
  if (socket_ < 0) return false;
  char byte;
  const ssize_t got = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

LeaderProbe::Result LeaderProbe::Connect() {
  Close();
  socket_ = socket(family_, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return Result::kUnknown;
  const auto* where = reinterpret_cast<const sockaddr*>(where_.data());
  int error = 0;
  if (connect(socket_, where, static_cast<socklen_t>(where_.size())) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd waiting = {.fd = socket_, .events = POLLOUT, .revents = 0};
      if (poll(&waiting, 1, kConnectMilliseconds) != 1) return Close(), Result::kUnknown;
      socklen_t size = sizeof(error);
      getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return Result::kConnected;
  Close();
  return error == ECONNREFUSED ? Result::kRefused : Result::kUnknown;
}

bool LeaderProbe::IsGone(const std::string& address) {
  if (address != address_) {
    next_try_ = absl::InfinitePast();
    if (!Resolve(address)) return false;
  }
  if (where_.empty() || IsOpen()) return false;
  const absl::Time now = absl::Now();
  if (now < next_try_) return false;
  next_try_ = now + kRetry;
  if (Connect() != Result::kRefused) return false;
  absl::SleepFor(kApart);
  return Connect() == Result::kRefused;
}

}  // namespace berth
