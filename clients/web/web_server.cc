#include "clients/web/web_server.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/authd/oidc/tls_certificates.h"
#include "support/clock.h"
#include "support/http/connection_info.h"
#include "support/listen.h"

namespace berth::web {
namespace {

// More than the connections kept open, as shut connections take a moment to close.
constexpr unsigned kMostWebSockets = 2 * static_cast<unsigned>(kWebHttp.connections);
constexpr size_t kStreamBlock = size_t{16} << 10;

using Values = std::map<std::string, std::string>;

MHD_Result AddValue(void* values, MHD_ValueKind kind, const char* key, const char* value) {
  auto* map = static_cast<Values*>(values);
  if (map->size() >= kMaxHeaders) return MHD_NO;
  const std::string name = kind == MHD_HEADER_KIND ? absl::AsciiStrToLower(key) : key;
  (*map)[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

// More than any limit if it is not a number.
uint64_t BodyLength(MHD_Connection* connection) {
  const char* text =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  uint64_t length = 0;
  if (text == nullptr) return 0;
  return absl::SimpleAtoi(text, &length) ? length : UINT64_MAX;
}

// What libmicrohttpd holds while a stream of events goes on.
struct StreamHolder {
  std::shared_ptr<EventStream> stream;
  MHD_Connection* connection = nullptr;
};

ssize_t TakeEvents(void* holder, uint64_t /*position*/, char* buffer, size_t size) {
  auto* of = static_cast<StreamHolder*>(holder);
  const long taken = of->stream->Take(of->connection, buffer, size);
  return taken == EventStream::kEnd ? MHD_CONTENT_READER_END_OF_STREAM : taken;
}

void EventsEnded(void* holder) {
  const std::unique_ptr<StreamHolder> of(static_cast<StreamHolder*>(holder));
  of->stream->ConnectionEnded();
}

MHD_Response* ResponseOf(MHD_Connection* connection, const WebAnswer& answer) {
  if (answer.stream == nullptr) {
    // The library copies the text; its interface lacks the const.
    return MHD_create_response_from_buffer(
        answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  }
  auto* holder = new StreamHolder{.stream = answer.stream, .connection = connection};
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, &TakeEvents, holder,
                                           &EventsEnded);
}

MHD_Result QueueAnswer(MHD_Connection* connection, const WebAnswer& answer) {
  MHD_Response* response = ResponseOf(connection, answer);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return result;
}

WebAnswer PlainRefusal(int code, absl::string_view why) {
  WebAnswer answer{.code = code, .body = absl::StrCat(why, "\n"), .headers = {}, .stream = nullptr};
  answer.content_type = "text/plain; charset=utf-8";
  answer.headers.emplace_back("Connection", "close");
  return answer;
}

}  // namespace

std::string WebRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string WebRequest::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

struct WebServer::Request {
  WebRequest request;
  bool asked = false;
  std::shared_ptr<std::optional<WebAnswer>> answer;  // set before the connection is resumed
};

struct WebServer::Callbacks {
  // Called when the header has arrived, for each part of the body, at its end, and when the answer
  // is there.
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* data,
                           size_t* data_size, void** state) {
    auto* server = static_cast<WebServer*>(self);
    auto* request = static_cast<Request*>(*state);
    if (request == nullptr) {
      const std::optional<WebAnswer> refusal = server->CheckRequest(connection, method);
      if (refusal.has_value()) return Answer(server, connection, *refusal);
      request = new Request;  // until RequestEnded
      request->request.method = method;
      request->request.path = url;
      *state = request;
      return MHD_YES;
    }
    if (*data_size > 0) {
      std::string& body = request->request.body;
      if (*data_size > kMaxWebBodyBytes - body.size()) return MHD_NO;  // closes it
      body.append(data, *data_size);
      *data_size = 0;
      return MHD_YES;
    }
    if (!request->asked) {
      server->Ask(connection, request);
      return MHD_YES;
    }
    return Answer(server, connection, **request->answer);
  }

  static MHD_Result Answer(WebServer* server, MHD_Connection* connection, const WebAnswer& answer) {
    if (answer.stream == nullptr) {
      server->connections_.Answered(FdOf(connection), answer.body.size());
    }
    return QueueAnswer(connection, answer);
  }

  // Then the connection waits for the next request, as if it were new.
  static void RequestEnded(void* self, MHD_Connection* connection, void** state,
                           MHD_RequestTerminationCode how) {
    const std::unique_ptr<Request> request(static_cast<Request*>(std::exchange(*state, nullptr)));
    // The connection may have ended before the stream was given to it.
    if (request != nullptr && request->answer != nullptr && request->answer->has_value() &&
        (*request->answer)->stream != nullptr) {
      (*request->answer)->stream->ConnectionEnded();
    }
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK) return;
    HttpConnections& connections = static_cast<WebServer*>(self)->connections_;
    connections.Closed(FdOf(connection));
    connections.Opened(FdOf(connection));
  }

  static void ConnectionChanged(void* self, MHD_Connection* connection, void** /*state*/,
                                MHD_ConnectionNotificationCode what) {
    auto* server = static_cast<WebServer*>(self);
    if (what != MHD_CONNECTION_NOTIFY_STARTED) {
      return server->connections_.Closed(FdOf(connection));
    }
    server->connections_.Opened(FdOf(connection));
    if (server->options_.certificate == nullptr) return;
    // The handshake comes next.
    gnutls_session_t session = oidc::TlsSessionOf(connection);
    gnutls_session_set_ptr(session, server);
    if (server->options_.client_certificates) {
      gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    }
  }

  static int GiveCertificate(gnutls_session_t session, const gnutls_cert_retr_st* /*info*/,
                             gnutls_pcert_st** chain, unsigned* length, gnutls_ocsp_data_st** ocsp,
                             unsigned* ocsp_length, gnutls_privkey_t* key, unsigned* flags) {
    auto* server = static_cast<WebServer*>(gnutls_session_get_ptr(session));
    *ocsp = nullptr;
    *ocsp_length = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return oidc::ImportForTls(server->options_.certificate->Current(SystemClock().Steady()), chain,
                              length, key);
  }

  // Null if the system lacks resources. Otherwise owns `fd`.
  static MHD_Daemon* Listen(WebServer* server, int fd) {
    const bool secure = server->options_.certificate != nullptr;
    constexpr unsigned kFlags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(
        secure ? kFlags | MHD_USE_TLS : kFlags, 0, nullptr, nullptr, &Handle, server,  //
        MHD_OPTION_LISTEN_SOCKET, fd,                                                  //
        MHD_OPTION_CONNECTION_LIMIT, kMostWebSockets,                                  //
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsOfAddress,                     //
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kWebHeaderBytes,                           //
        MHD_OPTION_NOTIFY_COMPLETED, &RequestEnded, server,                            //
        MHD_OPTION_NOTIFY_CONNECTION, &ConnectionChanged, server,                      //
        // The list ends here without TLS.
        secure ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END, &GiveCertificate,
        MHD_OPTION_HTTPS_PRIORITIES, oidc::kTlsVersions, MHD_OPTION_END);
  }
};

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const Options& options,
                                                            WebHandler handler) {
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address, ": ", why));
  };
  const absl::StatusOr<Listeners> listeners = ListenOn(options.address);
  if (!listeners.ok()) return failed(listeners.status().message());
  std::unique_ptr<WebServer> server(new WebServer(options, std::move(handler)));
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
  return server;
}

// No connection is suspended when the daemons stop, as libmicrohttpd requires.
WebServer::~WebServer() {
  std::vector<std::weak_ptr<EventStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    mutex_.Await(absl::Condition(this, &WebServer::NothingPromised));
    streams = streams_;
  }
  for (const std::weak_ptr<EventStream>& weak : streams) {
    if (const std::shared_ptr<EventStream> stream = weak.lock()) stream->Close();
  }
  // The last events are still sent, to pages that read.
  const auto all_gone = [&] {
    return std::all_of(streams.begin(), streams.end(), [](const auto& weak) {
      const std::shared_ptr<EventStream> stream = weak.lock();
      return stream == nullptr || stream->gone();
    });
  };
  for (int i = 0; i < kLastWordsTries && !all_gone(); ++i) absl::SleepFor(kLastWordsWait);
  for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
}

std::optional<WebAnswer> WebServer::CheckRequest(MHD_Connection* connection,
                                                 const std::string& method) const {
  const bool known = method == MHD_HTTP_METHOD_GET || method == MHD_HTTP_METHOD_POST;
  if (!known) return PlainRefusal(405, "only GET and POST");
  const uint64_t most = method == MHD_HTTP_METHOD_POST ? kMaxWebBodyBytes : 0;
  if (BodyLength(connection) > most) return PlainRefusal(413, "the body is too large");
  const int headers =
      MHD_get_connection_values(connection, MHD_HEADER_KIND, nullptr, nullptr) +
      MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, nullptr, nullptr);
  if (headers > static_cast<int>(kMaxHeaders)) return PlainRefusal(431, "too many headers");
  return std::nullopt;
}

void WebServer::Ask(MHD_Connection* connection, Request* request) {
  request->asked = true;
  connections_.Asked(FdOf(connection));
  WebRequest& asked = request->request;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &AddValue, &asked.headers);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &AddValue, &asked.query);
  asked.peer = PeerOf(connection);
  if (options_.client_certificates) asked.certificate = oidc::ClientCertificateOf(connection);
  request->answer = std::make_shared<std::optional<WebAnswer>>();
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      *request->answer = PlainRefusal(503, "berth-web stops");
      return;  // libmicrohttpd asks again
    }
    ++promised_;
  }
  MHD_suspend_connection(connection);
  handler_(std::move(asked), [this, connection, kept = request->answer](WebAnswer answer) {
    if (answer.stream != nullptr) NoteStream(answer.stream);
    *kept = std::move(answer);
    MHD_resume_connection(connection);
    NoteAnswered();
  });
}

void WebServer::NoteStream(const std::shared_ptr<EventStream>& stream) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<EventStream>& weak) { return weak.expired(); });
  streams_.push_back(stream);
  if (stopping_) stream->Close();
}

void WebServer::NoteAnswered() {
  absl::MutexLock lock(&mutex_);
  --promised_;
}

}  // namespace berth::web
