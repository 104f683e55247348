// HttpServer: serves texts by GET, such as /metrics and /healthz, on GNU libmicrohttpd.
//
// No client delays another, however slow or numerous clients are. One thread serves all connections
// without blocking on any; http_connections.h limits the time of each. Request bodies are not read.
// kHttpCostly separate threads compute costly responses (Cost::kHigh), so a scrape does not delay a
// health page either.
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
// Prometheus's text format.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
using HttpHandler = std::function<HttpAnswer()>;

inline constexpr size_t kHttpHeaderBytes = 4096;  // of a request
inline constexpr int kHttpCostly = 2;  // costly responses in progress; further requests get 503

class HttpServer {
 public:
  enum class Cost { kLow, kHigh };
  // "address:port"; port 0 picks a free one. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address);
  // Waits for responses in progress, and closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Sets the handler of GET `path`, or removes it (404). Thread-safe; the old handler is not
  // running after the call. Handlers of Cost::kLow run on the thread that serves all connections.
  void SetHandler(const std::string& path, HttpHandler handler, Cost cost = Cost::kLow)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int port() const { return port_; }

 private:
  struct Entry {
    HttpHandler handler;
    Cost cost = Cost::kLow;
  };
  // A request whose response another thread computes. Its connection is suspended meanwhile.
  struct Order {
    MHD_Connection* connection = nullptr;
    std::string path;
    HttpAnswer answer;
  };
  struct Callbacks;  // libmicrohttpd's

  HttpServer() = default;

  // nullopt: an order was placed.
  std::optional<HttpAnswer> Respond(MHD_Connection* connection, const std::string& method,
                                    const std::string& path, void** state);
  bool EnqueueOrder(MHD_Connection* connection, const std::string& path, void** state)
      ABSL_LOCKS_EXCLUDED(orders_mutex_);
  void RunWorker() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  Order* AwaitOrder() ABSL_LOCKS_EXCLUDED(orders_mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(orders_mutex_);
  Cost CostOf(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);
  HttpAnswer Make(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;  // read-held while a handler runs
  std::map<std::string, Entry> handlers_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex orders_mutex_;
  std::deque<Order*> orders_ ABSL_GUARDED_BY(orders_mutex_);
  int in_progress_ ABSL_GUARDED_BY(orders_mutex_) = 0;  // including those in orders_
  bool stopping_ ABSL_GUARDED_BY(orders_mutex_) = false;

  HttpConnections connections_;
  std::vector<MHD_Daemon*> daemons_;  // one for each address
  std::vector<std::thread> workers_;
  int port_ = 0;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
