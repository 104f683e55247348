#include "support/http/http_connections.h"

#include <sys/socket.h>

#include <algorithm>

#include "support/clock.h"

namespace berth {
namespace {

absl::Duration Now() { return SystemClock().Steady(); }

}  // namespace

HttpConnections::HttpConnections(const HttpLimits& limits)
    : limits_(limits), watcher_([this] { Watch(); }) {}

HttpConnections::~HttpConnections() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  watcher_.join();
}

void HttpConnections::Opened(int fd) {
  absl::MutexLock lock(&mutex_);
  connections_[fd] = {.number = next_number_++, .deadline = Now() + limits_.request_time};
  ++open_;
  ShutOldest();
  changed_.Signal();
}

void HttpConnections::Asked(int fd) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(fd);
  if (found != connections_.end()) found->second.deadline = absl::InfiniteDuration();
}

void HttpConnections::Answered(int fd, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end() || found->second.shut) return;
  found->second.deadline = Now() + limits_.answer_time;
  found->second.answer_bytes = bytes;
  answer_bytes_ += bytes;
  ShutOldest();
  changed_.Signal();
}

void HttpConnections::Closed(int fd) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  if (!found->second.shut) {
    --open_;
    answer_bytes_ -= found->second.answer_bytes;
  }
  connections_.erase(found);
}

void HttpConnections::Watch() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    absl::Duration first = absl::InfiniteDuration();
    for (const auto& [fd, connection] : connections_) {
      if (!connection.shut) first = std::min(first, connection.deadline);
    }
    changed_.WaitWithTimeout(&mutex_, std::max(first - Now(), absl::ZeroDuration()));
    ShutLate();
  }
}

void HttpConnections::ShutLate() {
  for (auto& connection : connections_) {
    if (!connection.second.shut && connection.second.deadline <= Now()) Shut(connection);
  }
}

void HttpConnections::ShutOldest() {
  while (open_ > limits_.connections || (open_ > 1 && answer_bytes_ > limits_.answer_bytes)) {
    Connections::value_type* oldest = nullptr;
    for (auto& connection : connections_) {
      if (connection.second.shut) continue;
      if (oldest == nullptr || connection.second.number < oldest->second.number) {
        oldest = &connection;
      }
    }
    Shut(*oldest);
  }
}

// The server notices that the connection has ended, and closes it.
void HttpConnections::Shut(Connections::value_type& connection) {
  connection.second.shut = true;
  --open_;
  answer_bytes_ -= connection.second.answer_bytes;
  shutdown(connection.first, SHUT_RDWR);
}

}  // namespace berth
