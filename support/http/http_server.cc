#include "support/http/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "support/clock.h"
#include "support/http/http_request.h"

namespace berth {
namespace {

constexpr absl::Duration kOutOfDescriptorsWait = absl::Milliseconds(10);

absl::Duration Now() { return SystemClock().Steady(); }

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address) {
  absl::StatusOr<Listeners> listeners = ListenOn(address);
  if (listeners.ok()) return std::unique_ptr<HttpServer>(new HttpServer(*std::move(listeners)));
  return absl::UnavailableError(
      absl::StrCat("cannot listen for HTTP on ", address, ": ", listeners.status().message()));
}

HttpServer::HttpServer(Listeners listeners)
    : listeners_(std::move(listeners)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (int i = 0; i < kHttpCostly; ++i) threads_.emplace_back([this] { MakeOrders(); });
  threads_.emplace_back([this] { Serve(); });
}

HttpServer::~HttpServer() {
  {
    absl::MutexLock lock(&orders_mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_fd_, 1);
  for (std::thread& thread : threads_) thread.join();
  for (const int fd : listeners_.fds) close(fd);
  close(wake_fd_);
}

bool HttpServer::stopping() const {
  absl::MutexLock lock(&orders_mutex_);
  return stopping_;
}

// ---- Connections

// Whoever has asked is heard before anybody new is let in, and so before anybody is closed for
// them.
void HttpServer::Serve() {
  while (!stopping()) {
    std::vector<pollfd> watched = {{wake_fd_, POLLIN, 0}};
    for (const int fd : listeners_.fds) watched.push_back({fd, POLLIN, 0});
    const size_t doors = watched.size();
    std::vector<ConnectionId> ids;
    for (const auto& [id, connection] : connections_) {
      watched.push_back({connection->fd(), connection->events(), 0});
      ids.push_back(id);
    }
    if (poll(watched.data(), watched.size(), PatienceMillis()) < 0) continue;
    for (size_t i = 0; i < ids.size(); ++i) Advance(ids[i], watched[doors + i].revents);
    if (watched[0].revents != 0) Deliver();
    for (size_t i = 1; i < doors; ++i) {
      if (watched[i].revents != 0) Accept(watched[i].fd);
    }
    CloseLate();
    CloseOldest();
  }
}

int HttpServer::PatienceMillis() const {
  absl::Duration first = absl::InfiniteDuration();
  for (const auto& [id, connection] : connections_) first = std::min(first, connection->deadline());
  if (first == absl::InfiniteDuration()) return -1;
  const absl::Duration left = std::max(first - Now(), absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

void HttpServer::Advance(ConnectionId id, short events) {
  const auto found = connections_.find(id);
  HttpConnection& connection = *found->second;
  bool goes_on = connection.Advance(events);
  if (goes_on && connection.asks()) {
    const std::optional<HttpAnswer> answer = Respond(id, connection.request());
    if (answer.has_value()) {
      goes_on = connection.Answer(*answer, Now());
    } else {
      connection.AwaitAnswer();
    }
  }
  if (!goes_on) connections_.erase(found);
}

std::optional<HttpAnswer> HttpServer::Respond(ConnectionId id, absl::string_view request) {
  if (HttpHeadOf(request).empty()) return HttpAnswer{431, "the request is too long\n"};
  const std::optional<HttpRequest> parsed = ParseHttpHead(request);
  if (!parsed.has_value()) return HttpAnswer{400, "not a request of HTTP/1\n"};
  if (parsed->method != "GET" && parsed->method != "HEAD") return HttpAnswer{405, "only GET\n"};
  if (parsed->has_body) return HttpAnswer{400, "no body is taken\n"};
  std::string path(parsed->path);
  if (CostOf(path) == Cost::kLow) return Make(path);
  if (PlaceOrder({.connection = id, .path = std::move(path)})) return std::nullopt;
  return HttpAnswer{503, "busy with other requests for this; try again\n"};
}

void HttpServer::Accept(int listener) {
  for (size_t i = 0; i < kHttpConnections; ++i) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EAGAIN) absl::SleepFor(kOutOfDescriptorsWait);  // it waits in the backlog
      return;
    }
    connections_.emplace(next_connection_++, std::make_unique<HttpConnection>(fd, Now()));
  }
}

void HttpServer::CloseLate() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    at = at->second->deadline() <= Now() ? connections_.erase(at) : std::next(at);
  }
}

// The newest stays: it may be the only one in earnest.
void HttpServer::CloseOldest() {
  size_t bytes = 0;
  for (const auto& [id, connection] : connections_) bytes += connection->answer_bytes();
  while (connections_.size() > kHttpConnections ||
         (connections_.size() > 1 && bytes > kHttpAnswerBytes)) {
    bytes -= connections_.begin()->second->answer_bytes();
    connections_.erase(connections_.begin());
  }
}

// ---- Answers

void HttpServer::SetHandler(const std::string& path, HttpHandler handler, Cost cost) {
  absl::MutexLock lock(&mutex_);
  if (handler == nullptr) {
    handlers_.erase(path);
  } else {
    handlers_[path] = {std::move(handler), cost};
  }
}

HttpServer::Cost HttpServer::CostOf(const std::string& path) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = handlers_.find(path);
  return found == handlers_.end() ? Cost::kLow : found->second.cost;
}

HttpAnswer HttpServer::Make(const std::string& path) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = handlers_.find(path);
  if (found != handlers_.end()) return found->second.handler();
  const std::string paths = absl::StrJoin(
      handlers_, ", ",
      [](std::string* out, const auto& handler) { absl::StrAppend(out, handler.first); });
  return {404, absl::StrCat("nothing here; try ", paths, "\n")};
}

bool HttpServer::PlaceOrder(Order order) {
  absl::MutexLock lock(&orders_mutex_);
  if (in_the_making_ == kHttpCostly) return false;
  ++in_the_making_;
  orders_.push_back(std::move(order));
  return true;
}

bool HttpServer::HasWork() const { return stopping_ || !orders_.empty(); }

// A thread of its own.
void HttpServer::MakeOrders() {
  while (const std::optional<Order> order = AwaitOrder()) {
    HttpAnswer answer = Make(order->path);
    absl::MutexLock lock(&orders_mutex_);
    --in_the_making_;
    made_.push_back({.connection = order->connection, .answer = std::move(answer)});
    eventfd_write(wake_fd_, 1);
  }
}

// nullopt: there will be no more.
std::optional<HttpServer::Order> HttpServer::AwaitOrder() {
  absl::MutexLock lock(&orders_mutex_);
  orders_mutex_.Await(absl::Condition(this, &HttpServer::HasWork));
  if (stopping_) return std::nullopt;
  Order order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

// Whose connection is gone by now gets none.
void HttpServer::Deliver() {
  eventfd_t ignored;
  eventfd_read(wake_fd_, &ignored);
  std::vector<Made> made;
  {
    absl::MutexLock lock(&orders_mutex_);
    made.swap(made_);
  }
  for (const auto& [id, answer] : made) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && !found->second->Answer(answer, Now())) {
      connections_.erase(found);
    }
  }
}

}  // namespace berth
