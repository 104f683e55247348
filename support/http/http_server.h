// HttpServer: texts to be had by GET, such as /metrics and /healthz.
//
// Nobody makes anybody else wait, however slow they are and however many. One thread serves all
// connections and waits for none of them. Each has a time for its request, and one for taking the
// answer, whatever it sends or reads meanwhile; beyond kHttpConnections, or kHttpAnswerBytes that
// wait to be taken, the oldest connection is closed. No body is read. Answers that are costly
// (Cost::kHigh) are made by kHttpCostly threads of their own, so that a scrape does not make a
// health page wait either.
#ifndef BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
#define BERTH_SUPPORT_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "support/http/http_connection.h"
#include "support/listen.h"

namespace berth {

// Of Prometheus's text format.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
using HttpHandler = std::function<HttpAnswer()>;

inline constexpr size_t kHttpConnections = 256;
inline constexpr size_t kHttpAnswerBytes = size_t{64} << 20;  // not yet taken, all together
inline constexpr int kHttpCostly = 2;  // costly answers in the making; more get 503

class HttpServer {
 public:
  enum class Cost { kLow, kHigh };
  // "address:port"; port 0 takes a free one. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address);
  // Waits for answers in the making, and closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Sets who answers GET `path`, or takes the answer away (404). Thread-safe; afterwards the old
  // handler is not running. One of Cost::kLow runs on the thread that serves everybody.
  void SetHandler(const std::string& path, HttpHandler handler, Cost cost = Cost::kLow)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int port() const { return listeners_.port; }

 private:
  using ConnectionId = uint64_t;  // the older, the smaller
  using Connections = std::map<ConnectionId, std::unique_ptr<HttpConnection>>;
  struct Entry {
    HttpHandler handler;
    Cost cost = Cost::kLow;
  };
  struct Order {
    ConnectionId connection = 0;
    std::string path;
  };
  struct Made {
    ConnectionId connection = 0;
    HttpAnswer answer;
  };

  explicit HttpServer(Listeners listeners);

  // On the serving thread.
  void Serve();
  void Advance(ConnectionId id, short events);
  // nullopt: it is in the making.
  std::optional<HttpAnswer> Respond(ConnectionId id, absl::string_view request);
  bool PlaceOrder(Order order) ABSL_LOCKS_EXCLUDED(orders_mutex_);
  void Deliver() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  void Accept(int listener);
  void CloseLate();
  void CloseOldest();
  int PatienceMillis() const;

  void MakeOrders() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  std::optional<Order> AwaitOrder() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(orders_mutex_);
  Cost CostOf(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);
  HttpAnswer Make(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(orders_mutex_);

  mutable absl::Mutex mutex_;  // read-held while a handler runs
  std::map<std::string, Entry> handlers_ ABSL_GUARDED_BY(mutex_);

  mutable absl::Mutex orders_mutex_;
  std::deque<Order> orders_ ABSL_GUARDED_BY(orders_mutex_);
  std::vector<Made> made_ ABSL_GUARDED_BY(orders_mutex_);
  int in_the_making_ ABSL_GUARDED_BY(orders_mutex_) = 0;  // and those in orders_
  bool stopping_ ABSL_GUARDED_BY(orders_mutex_) = false;

  const Listeners listeners_;
  const int wake_fd_;        // ends a poll of the serving thread
  Connections connections_;  // the serving thread's
  ConnectionId next_connection_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
