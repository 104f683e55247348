#include "support/http/http_server.h"

#include <microhttpd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/listen.h"

namespace berth {
namespace {

// More than the connections kept open, as shut connections take a moment to close.
constexpr unsigned kMaxOpenSockets = 2 * kHttpConnections;
// libmicrohttpd's memory per connection: the headers of request and response.
constexpr size_t kConnectionBytes = kHttpHeaderBytes + 1024;

int SocketOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

bool HasBody(MHD_Connection* connection) {
  const auto header = [&](const char* name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  };
  const char* length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
  return (length != nullptr && std::string(length) != "0") ||
         header(MHD_HTTP_HEADER_TRANSFER_ENCODING) != nullptr;
}

MHD_Result Queue(MHD_Connection* connection, const HttpAnswer& answer) {
  // The library copies the text; its interface lacks the const.
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

struct HttpServer::Callbacks {
  // Called when a request's header has arrived, and again when a costly response is complete.
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* /*data*/,
                           size_t* /*data_size*/, void** state) {
    auto* server = static_cast<HttpServer*>(self);
    const int fd = SocketOf(connection);
    std::optional<HttpAnswer> answer;
    if (*state != nullptr) {
      answer = static_cast<Order*>(*state)->answer;
    } else {
      server->connections_.Asked(fd);
      answer = server->Respond(connection, method, url, state);
    }
    if (!answer.has_value()) return MHD_YES;
    server->connections_.Answered(fd, answer->body.size());
    return Queue(connection, *answer);
  }

  static void RequestEnded(void* /*self*/, MHD_Connection* /*connection*/, void** state,
                           MHD_RequestTerminationCode /*how*/) {
    delete static_cast<Order*>(std::exchange(*state, nullptr));
  }

  static void ConnectionChanged(void* self, MHD_Connection* connection, void** /*state*/,
                                MHD_ConnectionNotificationCode what) {
    HttpConnections& connections = static_cast<HttpServer*>(self)->connections_;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      connections.Opened(SocketOf(connection));
    } else {
      connections.Closed(SocketOf(connection));
    }
  }

  // Null if the system lacks resources. Otherwise owns `fd`.
  static MHD_Daemon* Listen(HttpServer* server, int fd) {
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr,
                            nullptr, &Callbacks::Handle, server, MHD_OPTION_LISTEN_SOCKET, fd,  //
                            MHD_OPTION_CONNECTION_LIMIT, kMaxOpenSockets,                       //
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,               //
                            MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::RequestEnded, server,
                            MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::ConnectionChanged, server,
                            MHD_OPTION_END);
  }
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address) {
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot listen for HTTP on ", address, ": ", why));
  };
  const absl::StatusOr<Listeners> listeners = ListenOn(address);
  if (!listeners.ok()) return failed(listeners.status().message());
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->port_ = listeners->port;
  for (const int fd : listeners->fds) {
    MHD_Daemon* daemon = Callbacks::Listen(server.get(), fd);
    if (daemon != nullptr) {
      server->daemons_.push_back(daemon);
    } else {
      close(fd);
    }
  }
  if (server->daemons_.size() < listeners->fds.size()) return failed("out of resources");
  for (int i = 0; i < kHttpCostly; ++i) {
    server->workers_.emplace_back([server = server.get()] { server->RunWorker(); });
  }
  return server;
}

// No connection is suspended once the worker threads have ended, as libmicrohttpd requires.
HttpServer::~HttpServer() {
  {
    absl::MutexLock lock(&orders_mutex_);
    stopping_ = true;
  }
  for (std::thread& maker : workers_) maker.join();
  for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
}

std::optional<HttpAnswer> HttpServer::Respond(MHD_Connection* connection, const std::string& method,
                                              const std::string& path, void** state) {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) return {{405, "only GET\n"}};
  if (HasBody(connection)) return {{400, "request bodies are not accepted\n"}};
  if (CostOf(path) == Cost::kLow) return Make(path);
  if (EnqueueOrder(connection, path, state)) return std::nullopt;
  return {{503, "too many requests for this page at once; try again later\n"}};
}

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
  return {404, absl::StrCat("not found; try ", paths, "\n")};
}

// Suspends the connection first: the worker thread that computes the response resumes it.
bool HttpServer::EnqueueOrder(MHD_Connection* connection, const std::string& path, void** state) {
  absl::MutexLock lock(&orders_mutex_);
  if (stopping_ || in_progress_ == kHttpCostly) return false;
  ++in_progress_;
  MHD_suspend_connection(connection);
  auto* order = new Order{.connection = connection, .path = path, .answer = {}};
  *state = order;  // until RequestEnded
  orders_.push_back(order);
  return true;
}

bool HttpServer::HasWork() const { return stopping_ || !orders_.empty(); }

void HttpServer::RunWorker() {
  while (Order* order = AwaitOrder()) {
    order->answer = Make(order->path);
    {
      absl::MutexLock lock(&orders_mutex_);
      --in_progress_;
    }
    MHD_resume_connection(order->connection);  // last: this may finish and delete the order
  }
}

// Null: the server is stopping.
HttpServer::Order* HttpServer::AwaitOrder() {
  absl::MutexLock lock(&orders_mutex_);
  orders_mutex_.Await(absl::Condition(this, &HttpServer::HasWork));
  if (orders_.empty()) return nullptr;
  Order* order = orders_.front();
  orders_.pop_front();
  return order;
}

}  // namespace berth
