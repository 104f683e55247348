// GET /metrics of the agent, on civetweb: one text, which is replaced as time goes on.
#ifndef BERTH_CLIENTS_AGENT_METRICS_SERVER_H_
#define BERTH_CLIENTS_AGENT_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

struct mg_connection;
struct mg_context;

namespace berth {

class MetricsServer {
 public:
  // "host:port"; port 0 takes a free one. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address);
  // Waits for requests in progress.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Thread-safe. Until the first text the answer is 503.
  void Set(std::string text) ABSL_LOCKS_EXCLUDED(mutex_);
  int port() const { return port_; }

 private:
  explicit MetricsServer(std::string host) : host_(std::move(host)) {}
  static int Handle(mg_connection* connection, void* server);
  void Knock() const;

  absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  const std::string host_;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_METRICS_SERVER_H_
