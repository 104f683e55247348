#include "clients/agent/metrics_server.h"

#include <civetweb.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace berth {
namespace {

constexpr absl::Duration kKnockInterval = absl::Milliseconds(5);

void Answer(mg_connection* connection, const char* status, const std::string& type,
            const std::string& body, bool with_body) {
  mg_printf(connection,
            "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
            status, type.c_str(), body.size());
  if (with_body) mg_write(connection, body.data(), body.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address) {
  mg_init_library(0);
  std::unique_ptr<MetricsServer> server(new MetricsServer(address.substr(0, address.rfind(':'))));
  // A scrape at a time; slow clients are cut.
  const char* options[] = {"listening_ports",
                           address.c_str(),
                           "num_threads",
                           "2",
                           "request_timeout_ms",
                           "10000",
                           "enable_directory_listing",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not to stderr
  server->context_ = mg_start(&callbacks, server.get(), options);
  if (server->context_ == nullptr)
    return absl::UnavailableError(absl::StrCat("cannot listen for HTTP on ", address));
  mg_server_port port{};
  if (mg_get_server_ports(server->context_, 1, &port) == 1) server->port_ = port.port;
  mg_set_request_handler(server->context_, "/", &MetricsServer::Handle, server.get());
  return server;
}

// civetweb looks for its end only when its listening thread wakes, up to two seconds later: so
// connections are made to it until it has ended.
MetricsServer::~MetricsServer() {
  if (context_ == nullptr) return;
  absl::Notification stopped;
  std::thread stop([&] {
    mg_stop(context_);
    stopped.Notify();
  });
  while (!stopped.WaitForNotificationWithTimeout(kKnockInterval)) Knock();
  stop.join();
}

void MetricsServer::Knock() const {
  char error[256];
  mg_connection* connection =
      mg_connect_client(host_.c_str(), port_, /*use_ssl=*/0, error, sizeof error);
  if (connection != nullptr) mg_close_connection(connection);
}

void MetricsServer::Set(std::string text) {
  absl::MutexLock lock(&mutex_);
  text_ = std::move(text);
}

int MetricsServer::Handle(mg_connection* connection, void* data) {
  auto* server = static_cast<MetricsServer*>(data);
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string method = request->request_method;
  const std::string plain = "text/plain; charset=utf-8";
  const bool get = method == "GET";
  if (!get && method != "HEAD") {
    Answer(connection, "405 Method Not Allowed", plain, "only GET\n", true);
    return 405;
  }
  if (std::string(request->local_uri) != "/metrics") {
    Answer(connection, "404 Not Found", plain, "nothing here; try /metrics\n", get);
    return 404;
  }
  std::string text;
  {
    absl::MutexLock lock(&server->mutex_);
    text = server->text_;
  }
  if (text.empty()) {
    Answer(connection, "503 Service Unavailable", plain, "nothing is known yet\n", get);
    return 503;
  }
  Answer(connection, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text, get);
  return 200;
}

}  // namespace berth
