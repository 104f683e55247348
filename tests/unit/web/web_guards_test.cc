// Who may call berth-web from a browser, and what browsers are told.
#include "catch2/catch.hpp"
#include "clients/web/guards.h"
#include "clients/web/sessions.h"

namespace berth::web {
namespace {

WebRequest Request(std::map<std::string, std::string> headers) {
  WebRequest request;
  request.method = "POST";
  headers.emplace("host", "berth.example");
  headers.emplace("content-type", "application/json");
  request.headers = std::move(headers);
  return request;
}

const Guards& Ours() {
  static const Guards* const kGuards = new Guards({"https://berth.example"}, true);
  return *kGuards;
}

TEST_CASE("guards: only our own names and origins") {
  CHECK(Ours().CheckOrigin(Request({})).ok());
  CHECK(Ours().CheckOrigin(Request({{"origin", "https://berth.example"}})).ok());
  CHECK(Ours().CheckOrigin(Request({{"host", "BERTH.example"}})).ok());
  for (const char* host : {"", "evil.example", "berth.example.evil", "berth.example:444"}) {
    CHECK(absl::IsPermissionDenied(Ours().CheckOrigin(Request({{"host", host}}))));
  }
  for (const char* origin : {"null", "https://evil.example", "http://berth.example",
                             "https://berth.example:444", "https://berth.example.evil"}) {
    CHECK(absl::IsPermissionDenied(Ours().CheckOrigin(Request({{"origin", origin}}))));
  }
}

TEST_CASE("guards: a POST is JSON, has the session's token, and comes from our page") {
  const std::string token = NewSecret();
  CHECK(Ours().CheckPost(Request({{"berth-csrf", token}}), token).ok());
  CHECK(Ours().CheckPost(Request({}), "").ok());
  CHECK(absl::IsPermissionDenied(Ours().CheckPost(Request({}), token)));
  CHECK(absl::IsPermissionDenied(Ours().CheckPost(Request({{"berth-csrf", token + "A"}}), token)));
  CHECK(absl::IsPermissionDenied(Ours().CheckPost(Request({{"berth-csrf", NewSecret()}}), token)));
  for (const char* site : {"cross-site", "same-site"}) {
    CHECK(absl::IsPermissionDenied(
        Ours().CheckPost(Request({{"berth-csrf", token}, {"sec-fetch-site", site}}), token)));
  }
  CHECK(Ours()
            .CheckPost(Request({{"berth-csrf", token}, {"sec-fetch-site", "same-origin"}}), token)
            .ok());
  // What a form of another site can send.
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
        "application/jsonp", "text/plain;application/json"}) {
    WebRequest request = Request({{"berth-csrf", token}});
    request.headers["content-type"] = type;
    CHECK(absl::IsInvalidArgument(Ours().CheckPost(request, token)));
  }
  WebRequest request = Request({{"berth-csrf", token}});
  request.headers["content-type"] = "Application/JSON; charset=utf-8";
  CHECK(Ours().CheckPost(request, token).ok());
}

TEST_CASE("guards: cookies") {
  CHECK(Ours().SessionCookie("abc") ==
        "__Host-berth=abc; Path=/; HttpOnly; SameSite=Strict; Secure");
  CHECK(Ours().SessionCookie("") ==
        "__Host-berth=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0");
  CHECK(Ours().LoginCookie("x") == "__Host-berth-login=x; Path=/; HttpOnly; SameSite=Lax; Secure");
  const WebRequest request =
      Request({{"cookie", "berth=no; x__Host-berth=no; __Host-berth=yes; __Host-berth-login=l"}});
  CHECK(Ours().SessionOf(request) == "yes");
  CHECK(Ours().LoginOf(request) == "l");
  CHECK(Ours().SessionOf(Request({})).empty());
  const Guards plain({"http://127.0.0.1:7072"}, false);
  CHECK(plain.SessionCookie("abc") == "berth=abc; Path=/; HttpOnly; SameSite=Strict");
}

TEST_CASE("guards: every answer is hardened, and what says how long it lasts keeps that") {
  WebAnswer answer, lasting;
  lasting.headers.emplace_back("Cache-Control", "no-cache");
  Ours().Harden(&answer);
  Ours().Harden(&lasting);
  const auto count = [](const WebAnswer& of, absl::string_view name, absl::string_view value) {
    return std::count(of.headers.begin(), of.headers.end(),
                      std::pair<std::string, std::string>(name, value));
  };
  CHECK(count(answer, "Cache-Control", "no-store") == 1);
  CHECK(count(lasting, "Cache-Control", "no-store") == 0);
  CHECK(count(answer, "X-Content-Type-Options", "nosniff") == 1);
  const std::string policy = kContentPolicy;
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find("http") == std::string::npos);
  CHECK(count(answer, "Content-Security-Policy", policy) == 1);
}

}  // namespace
}  // namespace berth::web
