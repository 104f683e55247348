#include "clients/web/guards.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/web/sessions.h"

namespace berth::web {
namespace {

constexpr char kSessionName[] = "berth";
constexpr char kLoginName[] = "berth-login";

absl::string_view HostOf(absl::string_view origin) {
  const size_t at = origin.find("://");
  return at == absl::string_view::npos ? origin : origin.substr(at + 3);
}

bool IsJson(absl::string_view content_type) {
  const absl::string_view type = content_type.substr(0, content_type.find(';'));
  return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(type), "application/json");
}

}  // namespace

absl::Status Guards::CheckOrigin(const WebRequest& request) const {
  const std::string host = absl::AsciiStrToLower(request.Header("host"));
  const auto is_host = [&](const std::string& origin) { return HostOf(origin) == host; };
  if (std::none_of(origins_.begin(), origins_.end(), is_host)) {
    return absl::PermissionDeniedError(
        "this address is not one of berth-web's; its configuration names it (url)");
  }
  const std::string origin = request.Header("origin");
  const bool ours =
      origin.empty() || std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
  if (!ours) return absl::PermissionDeniedError("a page of another site may not call this");
  return absl::OkStatus();
}

absl::Status Guards::CheckSite(const WebRequest& request) const {
  const std::string site = request.Header("sec-fetch-site");
  if (site.empty() || site == "same-origin" || site == "none") return absl::OkStatus();
  return absl::PermissionDeniedError("a page of another site may not call this");
}

absl::Status Guards::CheckPost(const WebRequest& request, absl::string_view csrf) const {
  if (absl::Status status = CheckSite(request); !status.ok()) return status;
  if (!IsJson(request.Header("content-type"))) {
    return absl::InvalidArgumentError("the content type must be application/json");
  }
  if (!csrf.empty() && !SecretsEqual(request.Header("berth-csrf"), csrf)) {
    return absl::PermissionDeniedError(
        "the header Berth-Csrf must have the session's token (GET /api/session)");
  }
  return absl::OkStatus();
}

std::string Guards::CookieName(absl::string_view name) const {
  return secure_ ? absl::StrCat("__Host-", name) : std::string(name);
}

std::string Guards::CookieOf(const WebRequest& request, absl::string_view name) const {
  const std::string wanted = absl::StrCat(CookieName(name), "=");
  const std::string cookies = request.Header("cookie");
  for (const absl::string_view cookie : absl::StrSplit(cookies, ';')) {
    absl::string_view rest = absl::StripAsciiWhitespace(cookie);
    if (absl::ConsumePrefix(&rest, wanted)) return std::string(rest);
  }
  return "";
}

std::string Guards::SetCookie(absl::string_view name, absl::string_view secret,
                              absl::string_view same_site) const {
  return absl::StrCat(CookieName(name), "=", secret, "; Path=/; HttpOnly; SameSite=", same_site,
                      secure_ ? "; Secure" : "", secret.empty() ? "; Max-Age=0" : "");
}

std::string Guards::SessionOf(const WebRequest& request) const {
  return CookieOf(request, kSessionName);
}
std::string Guards::LoginOf(const WebRequest& request) const {
  return CookieOf(request, kLoginName);
}
std::string Guards::SessionCookie(absl::string_view secret) const {
  return SetCookie(kSessionName, secret, "Strict");
}
// The issuer sends the browser back to us, which Strict would not survive.
std::string Guards::LoginCookie(absl::string_view secret) const {
  return SetCookie(kLoginName, secret, "Lax");
}

void Guards::Harden(WebAnswer* answer) const {
  auto& headers = answer->headers;
  headers.emplace_back("Content-Security-Policy", kContentPolicy);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  headers.emplace_back("Referrer-Policy", "no-referrer");
  headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  const bool has_caching = std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return header.first == "Cache-Control";
  });
  if (!has_caching) headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace berth::web
