// A small HTTPS server for few paths, with a bound on everything that a stranger can use up.
//
// One thread for each connection, which takes one request. A connection has kTokenHttp.request_time
// for the handshake and the request together, however slowly it sends; what is over the bounds is
// closed.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_HTTPS_SERVER_H_
#define BERTH_CLIENTS_AUTHD_OIDC_HTTPS_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/authd/oidc/server_certificate.h"
#include "support/http/http_connections.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace berth::oidc {

inline constexpr HttpLimits kTokenHttp = {.connections = 64,
                                          .answer_bytes = size_t{16} << 20,
                                          .request_time = absl::Seconds(10),
                                          .answer_time = absl::Seconds(10)};
inline constexpr unsigned kConnectionsOfAddress = 16;
inline constexpr size_t kMaxBodyBytes = size_t{64}
                                        << 10;  // a token and a request for a certificate

struct HttpsReply {
  int code = 200;
  std::string body;  // JSON
};

struct HttpsCall {
  std::string body;  // "" for GET
  std::string peer;  // "ADDRESS:PORT"
  // PEM, with its chain: the client has proved that it holds the key. Nobody has verified who
  // issued it. "" if it sent none, or was not asked for one.
  std::string certificate;
};

// Runs on several threads at once.
using HttpsHandler = std::function<HttpsReply(const HttpsCall& call)>;

class HttpsServer {
 public:
  struct Route {
    std::string method;  // GET or POST
    HttpsHandler handler;
  };
  using Routes = std::map<std::string, Route>;  // by path
  enum class Clients { kAnonymous, kMayHaveCertificates };

  // "address:port"; port 0 picks a free one. UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpsServer>> Start(const std::string& address,
                                                            ServerCertificate certificate,
                                                            Routes routes,
                                                            Clients clients = Clients::kAnonymous);
  // Closes all connections; waits for handlers that run.
  ~HttpsServer();
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  int port() const { return port_; }

 private:
  struct Request;
  struct Callbacks;  // libmicrohttpd's and GnuTLS's

  HttpsServer(ServerCertificate certificate, Routes routes, Clients clients);
  // The answer to a request whose header has arrived, or null: its body is awaited.
  std::unique_ptr<HttpsReply> CheckHeader(MHD_Connection* connection, const std::string& method,
                                          const std::string& path) const;

  ServerCertificate certificate_;
  const Routes routes_;
  const Clients clients_;
  HttpConnections connections_{kTokenHttp};
  std::vector<MHD_Daemon*> daemons_;  // one for each address
  int port_ = 0;
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_HTTPS_SERVER_H_
