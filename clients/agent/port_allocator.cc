#include "clients/agent/port_allocator.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {

bool IsPortBindable(int port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool v6 = fd >= 0;
  const int any = v6 ? fd : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (any < 0) return false;
  const int on = 1;
  const int off = 0;
  setsockopt(any, SOL_SOCKET, SO_REUSEADDR, &on,
             sizeof on);  // ports in TIME_WAIT are free, those with a listener are not
  int result = -1;
  if (v6) {
    setsockopt(any, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    result = bind(any, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    result = bind(any, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  close(any);
  return result == 0;
}

PortAllocator::PortAllocator(int first, int last, Probe probe)
    : first_(first), last_(last), probe_(std::move(probe)), next_(first) {}

absl::StatusOr<int> PortAllocator::Reserve(const TaskId& id, int preferred) {
  if (const auto held = by_task_.find(id); held != by_task_.end()) return held->second;
  const bool in_range = first_ <= preferred && preferred <= last_;
  if (in_range && !by_port_.contains(preferred) && probe_(preferred)) {
    Adopt(id, preferred);
    return preferred;
  }
  for (int tries = first_; tries <= last_; ++tries) {
    const int port = next_;
    next_ = port == last_ ? first_ : port + 1;
    if (by_port_.contains(port) || !probe_(port)) continue;
    Adopt(id, port);
    return port;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no rendezvous port is free in ", first_, "..", last_));
}

void PortAllocator::Adopt(const TaskId& id, int port) {
  by_task_[id] = port;
  by_port_[port] = id;
}

void PortAllocator::Release(const TaskId& id) {
  const auto held = by_task_.find(id);
  if (held == by_task_.end()) return;
  by_port_.erase(held->second);
  by_task_.erase(held);
}

}  // namespace berth
