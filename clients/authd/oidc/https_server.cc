#include "clients/authd/oidc/https_server.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/authd/oidc/tls_certificates.h"
#include "support/clock.h"
#include "support/http/connection_info.h"
#include "support/listen.h"

namespace berth::oidc {
namespace {

// More than the connections kept open, as shut connections take a moment to close.
constexpr unsigned kMostSockets = 2 * static_cast<unsigned>(kTokenHttp.connections);
constexpr size_t kHeaderBytes = size_t{16} << 10;  // with libmicrohttpd's own data

MHD_Result QueueReply(MHD_Connection* connection, const HttpsReply& reply) {
  // The library copies the text; its interface lacks the const.
  MHD_Response* response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(reply.code), response);
  MHD_destroy_response(response);
  return result;
}

HttpsReply ErrorReply(int code, absl::string_view error) {
  return {code, absl::StrCat("{\"error\":\"", error, "\"}\n")};
}

// nullopt: not given. More than any limit if it is not a number.
std::optional<uint64_t> LengthOf(MHD_Connection* connection) {
  const char* text =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  if (text == nullptr) return std::nullopt;
  uint64_t length = 0;
  return absl::SimpleAtoi(text, &length) ? length : UINT64_MAX;
}

}  // namespace

// A request whose body is arriving.
struct HttpsServer::Request {
  std::string path;
  std::string body;
};

struct HttpsServer::Callbacks {
  // Called when the header has arrived, for each part of the body, and at its end.
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* data,
                           size_t* data_size, void** state) {
    auto* server = static_cast<HttpsServer*>(self);
    auto* request = static_cast<Request*>(*state);
    if (request == nullptr) {
      const std::unique_ptr<HttpsReply> refusal = server->CheckHeader(connection, method, url);
      if (refusal != nullptr) return Answer(server, connection, *refusal);
      *state = new Request{.path = url, .body = ""};  // until RequestEnded
      return MHD_YES;
    }
    if (*data_size > 0) {
      if (*data_size > kMaxBodyBytes - request->body.size()) return MHD_NO;  // closes it
      request->body.append(data, *data_size);
      *data_size = 0;
      return MHD_YES;
    }
    server->connections_.Asked(FdOf(connection));
    const Route& route = server->routes_.at(request->path);
    HttpsCall call{.body = std::move(request->body), .peer = PeerOf(connection), .certificate = ""};
    if (server->clients_ == Clients::kMayHaveCertificates) {
      call.certificate = ClientCertificateOf(connection);
    }
    return Answer(server, connection, route.handler(call));
  }

  static MHD_Result Answer(HttpsServer* server, MHD_Connection* connection,
                           const HttpsReply& reply) {
    server->connections_.Answered(FdOf(connection), reply.body.size());
    return QueueReply(connection, reply);
  }

  static void RequestEnded(void* /*self*/, MHD_Connection* /*connection*/, void** state,
                           MHD_RequestTerminationCode /*how*/) {
    delete static_cast<Request*>(std::exchange(*state, nullptr));
  }

  static void ConnectionChanged(void* self, MHD_Connection* connection, void** /*state*/,
                                MHD_ConnectionNotificationCode what) {
    auto* server = static_cast<HttpsServer*>(self);
    if (what != MHD_CONNECTION_NOTIFY_STARTED) {
      return server->connections_.Closed(FdOf(connection));
    }
    server->connections_.Opened(FdOf(connection));
    // The handshake comes next, and asks for the certificate.
    gnutls_session_t session = TlsSessionOf(connection);
    gnutls_session_set_ptr(session, server);
    if (server->clients_ == Clients::kMayHaveCertificates) {
      gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    }
  }

  static int GiveCertificate(gnutls_session_t session, const gnutls_cert_retr_st* /*info*/,
                             gnutls_pcert_st** chain, unsigned* length, gnutls_ocsp_data_st** ocsp,
                             unsigned* ocsp_length, gnutls_privkey_t* key, unsigned* flags) {
    auto* server = static_cast<HttpsServer*>(gnutls_session_get_ptr(session));
    *ocsp = nullptr;
    *ocsp_length = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    return ImportForTls(server->certificate_.Current(SystemClock().Steady()), chain, length, key);
  }

  // Null if the system lacks resources. Otherwise owns `fd`.
  static MHD_Daemon* Listen(HttpsServer* server, int fd) {
    return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                                MHD_USE_POLL | MHD_USE_TLS,
                            0, nullptr, nullptr, &Callbacks::Handle, server,    //
                            MHD_OPTION_LISTEN_SOCKET, fd,                       //
                            MHD_OPTION_HTTPS_CERT_CALLBACK2, &GiveCertificate,  //
                            MHD_OPTION_HTTPS_PRIORITIES, kTlsVersions,          //
                            MHD_OPTION_CONNECTION_LIMIT, kMostSockets,          //
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsOfAddress,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeaderBytes,  //
                            MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::RequestEnded, server,
                            MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::ConnectionChanged, server,
                            MHD_OPTION_END);
  }
};

absl::StatusOr<std::unique_ptr<HttpsServer>> HttpsServer::Start(const std::string& address,
                                                                ServerCertificate certificate,
                                                                Routes routes, Clients clients) {
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot listen for HTTPS on ", address, ": ", why));
  };
  const absl::StatusOr<Listeners> listeners = ListenOn(address);
  if (!listeners.ok()) return failed(listeners.status().message());
  std::unique_ptr<HttpsServer> server(
      new HttpsServer(std::move(certificate), std::move(routes), clients));
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

HttpsServer::HttpsServer(ServerCertificate certificate, Routes routes, Clients clients)
    : certificate_(std::move(certificate)), routes_(std::move(routes)), clients_(clients) {}

HttpsServer::~HttpsServer() {
  for (MHD_Daemon* daemon : daemons_) MHD_stop_daemon(daemon);
}

std::unique_ptr<HttpsReply> HttpsServer::CheckHeader(MHD_Connection* connection,
                                                     const std::string& method,
                                                     const std::string& path) const {
  const auto refused = [](int code, absl::string_view why) {
    return std::make_unique<HttpsReply>(ErrorReply(code, why));
  };
  const auto route = routes_.find(path);
  if (route == routes_.end()) return refused(404, "not found");
  if (method != route->second.method) {
    return refused(405, absl::StrCat("only ", route->second.method));
  }
  const std::optional<uint64_t> length = LengthOf(connection);
  const uint64_t most = method == MHD_HTTP_METHOD_POST ? kMaxBodyBytes : 0;
  if (length.value_or(0) > most) return refused(413, "the body is too large");
  return nullptr;
}

}  // namespace berth::oidc
