#include "support/http/http_server.h"

#include <civetweb.h>

#include <array>
#include <map>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace berth {
namespace {

constexpr absl::Duration kKnockInterval = absl::Milliseconds(5);

const char* Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address) {
  mg_init_library(0);
  std::unique_ptr<HttpServer> server(new HttpServer(address.substr(0, address.rfind(':'))));
  const std::string threads = absl::StrCat(kHttpConnections);
  const std::string timeout = absl::StrCat(absl::ToInt64Milliseconds(kHttpHeaderTimeout));
  const std::string header = absl::StrCat(kHttpHeaderBytes);
  std::array<const char*, 13> options = {"listening_ports",
                                         address.c_str(),
                                         "num_threads",
                                         threads.c_str(),
                                         "request_timeout_ms",
                                         timeout.c_str(),
                                         "max_request_size",
                                         header.c_str(),
                                         "enable_directory_listing",
                                         "no",
                                         "enable_keep_alive",
                                         "no",
                                         nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not to stderr
  server->context_ = mg_start(&callbacks, server.get(), options.data());
  if (server->context_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen for HTTP on ", address));
  }
  mg_server_port port{};
  if (mg_get_server_ports(server->context_, 1, &port) == 1) server->port_ = port.port;
  mg_set_request_handler(server->context_, "/", &HttpServer::Handle, server.get());
  return server;
}

// civetweb looks for its end only when its listening thread wakes, up to two seconds later: so
// connections are made to it until it has ended.
HttpServer::~HttpServer() {
  if (context_ == nullptr) return;
  absl::Notification stopped;
  std::thread stop([&] {
    mg_stop(context_);
    stopped.Notify();
  });
  while (!stopped.WaitForNotificationWithTimeout(kKnockInterval)) Knock();
  stop.join();
}

void HttpServer::Knock() const {
  std::array<char, 256> error;
  mg_connection* connection =
      mg_connect_client(host_.c_str(), port_, /*use_ssl=*/0, error.data(), error.size());
  if (connection != nullptr) mg_close_connection(connection);
}

void HttpServer::SetHandler(const std::string& path, HttpHandler handler, Cost cost) {
  absl::MutexLock lock(&mutex_);
  if (handler == nullptr) {
    handlers_.erase(path);
  } else {
    handlers_[path] = {std::move(handler), cost};
  }
}

HttpAnswer HttpServer::Answer(const std::string& method, const std::string& path) {
  if (method != "GET" && method != "HEAD") return {405, "only GET\n"};
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = handlers_.find(path);
  if (found == handlers_.end()) return {404, NothingHere()};
  const Entry& entry = found->second;
  if (entry.cost == Cost::kLow) return entry.handler();
  const bool free = costly_.fetch_add(1) < kHttpCostly;
  const absl::Cleanup done = [this] { costly_.fetch_sub(1); };
  if (!free) return {503, "busy with other requests for this; try again\n"};
  return entry.handler();
}

std::string HttpServer::NothingHere() const {
  return absl::StrCat("nothing here; try ",
                      absl::StrJoin(handlers_, ", ",
                                    [](std::string* out, const auto& handler) {
                                      absl::StrAppend(out, handler.first);
                                    }),
                      "\n");
}

int HttpServer::Handle(mg_connection* connection, void* server) {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string method = request->request_method;
  const HttpAnswer answer = static_cast<HttpServer*>(server)->Answer(method, request->local_uri);
  mg_printf(
      connection,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
      answer.code, Reason(answer.code), answer.content_type.c_str(), answer.body.size());
  if (method == "GET") mg_write(connection, answer.body.data(), answer.body.size());
  return answer.code;
}

}  // namespace berth
