// WebServer: HTTP or HTTPS for browsers, on GNU libmicrohttpd.
//
// One thread serves all connections and waits for none. A handler gets each complete request and
// answers later, from any thread. Connections stay open between requests; each request and each
// answer has a deadline (bounds.h), streams of events have none.
#ifndef BERTH_CLIENTS_WEB_WEB_SERVER_H_
#define BERTH_CLIENTS_WEB_WEB_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "clients/authd/oidc/server_certificate.h"
#include "clients/web/bounds.h"
#include "clients/web/event_stream.h"
#include "support/http/http_connections.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace berth::web {

struct WebRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case; of several the last
  std::string body;
  std::string peer;  // "ADDRESS:PORT"
  // PEM, with its chain: the client has proved that it holds the key. Nobody has verified who
  // issued it. "" without one.
  std::string certificate;

  std::string Header(const std::string& name) const;
  std::string Query(const std::string& name) const;
};

struct WebAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<EventStream> stream;  // instead of a body
};

// Called once, from any thread.
using AnswerLater = std::function<void(WebAnswer answer)>;
// Called on the server's thread; must not wait.
using WebHandler = std::function<void(WebRequest request, AnswerLater answer)>;

class WebServer {
 public:
  struct Options {
    std::string address;  // "address:port"; port 0 picks a free one
    std::shared_ptr<oidc::ServerCertificate> certificate;  // null: HTTP
    bool client_certificates = false;                      // ask for one
  };
  // UNAVAILABLE if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const Options& options,
                                                          WebHandler handler);
  // Ends all streams, and waits for answers that were promised.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  int port() const { return port_; }

 private:
  struct Request;
  struct Callbacks;  // libmicrohttpd's

  WebServer(const Options& options, WebHandler handler)
      : options_(options), handler_(std::move(handler)) {}
  std::optional<WebAnswer> CheckRequest(MHD_Connection* connection,
                                        const std::string& method) const;
  void Ask(MHD_Connection* connection, Request* request);
  void NoteStream(const std::shared_ptr<EventStream>& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteAnswered() ABSL_LOCKS_EXCLUDED(mutex_);
  bool NothingPromised() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return promised_ == 0; }

  const Options options_;
  const WebHandler handler_;
  HttpConnections connections_{kWebHttp};
  absl::Mutex mutex_;
  int promised_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<EventStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<MHD_Daemon*> daemons_;  // one for each address
  int port_ = 0;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_WEB_SERVER_H_
