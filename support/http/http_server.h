// HttpServer: texts to be had by GET, such as /metrics and /healthz, on civetweb.
//
// Clients may be slow, and need not speak at all: there are far more threads than anybody opens
// connections in earnest, a request must be there within kHttpHeaderTimeout, and answers that are
// costly (Cost::kHigh) take only kHttpCostly threads at once. So a scrape never makes a health page
// wait, and idle connections neither.
#ifndef BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
#define BERTH_SUPPORT_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

struct mg_connection;
struct mg_context;

namespace berth {

struct HttpAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};
// Of Prometheus's text format.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";
using HttpHandler = std::function<HttpAnswer()>;

inline constexpr int kHttpConnections = 256;  // served at once; more wait, up to the time-out
inline constexpr absl::Duration kHttpHeaderTimeout = absl::Seconds(2);  // of a request, and a write
inline constexpr int kHttpHeaderBytes = 4096;                           // of a request
inline constexpr int kHttpCostly = 2;  // costly answers in the making; more get 503

class HttpServer {
 public:
  enum class Cost { kLow, kHigh };
  // "address:port"; port 0 takes a free one. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address);
  // Waits for requests in progress.
  ~HttpServer();

  // Sets who answers GET `path`, or takes the answer away (404). Thread-safe; afterwards the old
  // handler is not running.
  void SetHandler(const std::string& path, HttpHandler handler, Cost cost = Cost::kLow)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int port() const { return port_; }

 private:
  explicit HttpServer(std::string host) : host_(std::move(host)) {}
  HttpAnswer Answer(const std::string& method, const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string NothingHere() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static int Handle(mg_connection* connection, void* server);
  void Knock() const;

  struct Entry {
    HttpHandler handler;
    Cost cost = Cost::kLow;
  };

  absl::Mutex mutex_;  // read-held while a handler runs
  std::map<std::string, Entry> handlers_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> costly_{0};  // in the making
  const std::string host_;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_SERVER_H_
