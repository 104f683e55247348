// Guards: whether a request may come from our own page, and what answers tell browsers.
// docs/developers/web.md, "Guards".
#ifndef BERTH_CLIENTS_WEB_GUARDS_H_
#define BERTH_CLIENTS_WEB_GUARDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clients/web/web_server.h"

namespace berth::web {

class Guards {
 public:
  // The origins of our page, such as "https://berth.example" and "http://127.0.0.1:7072"; at least
  // one. `secure`: browsers reach us by https.
  Guards(std::vector<std::string> origins, bool secure)
      : origins_(std::move(origins)), secure_(secure) {}

  // PERMISSION_DENIED: the name of another host, or another site's page.
  absl::Status CheckOrigin(const WebRequest& request) const;
  // PERMISSION_DENIED: the browser says that another site's page asks.
  absl::Status CheckSite(const WebRequest& request) const;
  // Also of POST: INVALID_ARGUMENT if it is not JSON. `csrf`: the session's token; "" without one,
  // where the browser cannot have a cookie of ours.
  absl::Status CheckPost(const WebRequest& request, absl::string_view csrf) const;

  // The secrets of cookies; "" without the cookie.
  std::string SessionOf(const WebRequest& request) const;
  std::string LoginOf(const WebRequest& request) const;
  // Values of Set-Cookie. An empty secret removes the cookie.
  std::string SessionCookie(absl::string_view secret) const;
  std::string LoginCookie(absl::string_view secret) const;

  // Headers of every answer.
  void Harden(WebAnswer* answer) const;

 private:
  std::string CookieName(absl::string_view name) const;
  std::string CookieOf(const WebRequest& request, absl::string_view name) const;
  std::string SetCookie(absl::string_view name, absl::string_view secret,
                        absl::string_view same_site) const;

  const std::vector<std::string> origins_;
  const bool secure_;
};

inline constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types berth-live";

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_GUARDS_H_
