// HttpServer: texts to be had by GET, such as /metrics and /healthz, on GNU libmicrohttpd.
//
// No client makes another one wait, however slow and however many they are. One thread serves all
// connections and waits for none of them; http_connections.h bounds each connection's time. No body
// is read. Costly answers (Cost::kHigh) are made by kHttpCostly threads of their own, so a scrape
// does not delay a health page either.
#ifndef BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
#define BERTH_SUPPORT_HTTP_HTTP_SERVER_H_

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
#include "support/http/http_connections.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace berth {

struct HttpAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};
// Of Prometheus's text format.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
using HttpHandler = std::function<HttpAnswer()>;

inline constexpr size_t kHttpHeaderBytes = 4096;  // of a request
inline constexpr int kHttpCostly = 2;  // costly answers in the making; further requests get 503

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
  // handler is not running. A handler of Cost::kLow runs on the thread that serves all connections.
  void SetHandler(const std::string& path, HttpHandler handler, Cost cost = Cost::kLow)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int port() const { return port_; }

 private:
  struct Entry {
    HttpHandler handler;
    Cost cost = Cost::kLow;
  };
  // A request whose answer is made by another thread. Its connection is suspended until it is made.
  struct Order {
    MHD_Connection* connection = nullptr;
    std::string path;
    HttpAnswer answer;
  };
  struct Callbacks;  // libmicrohttpd's

  HttpServer() = default;

  // nullopt: an order for it was placed.
  std::optional<HttpAnswer> Respond(MHD_Connection* connection, const std::string& method,
                                    const std::string& path, void** state);
  bool PlaceOrder(MHD_Connection* connection, const std::string& path, void** state)
      ABSL_LOCKS_EXCLUDED(orders_mutex_);
  void MakeOrders() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  Order* AwaitOrder() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(orders_mutex_);
  Cost CostOf(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);
  HttpAnswer Make(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;  // read-held while a handler runs
  std::map<std::string, Entry> handlers_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex orders_mutex_;
  std::deque<Order*> orders_ ABSL_GUARDED_BY(orders_mutex_);
  int in_the_making_ ABSL_GUARDED_BY(orders_mutex_) = 0;  // and those in orders_
  bool stopping_ ABSL_GUARDED_BY(orders_mutex_) = false;

  HttpConnections connections_;
  std::vector<MHD_Daemon*> daemons_;  // one for each address that it listens on
  std::vector<std::thread> makers_;
  int port_ = 0;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
