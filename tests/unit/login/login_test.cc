// berth login against an issuer and a berth-authd whose answers the test gives; waiting takes no
// time.
#include "clients/login/login.h"

#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/login/device_flow.h"
#include "support/pki/authority.h"
#include "tests/unit/client/fake_world.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

using Answer = absl::StatusOr<HttpsAnswer>;

// Answers by URL, in order; the last one again and again.
struct Servers {
  std::map<std::string, std::deque<Answer>> answers;
  std::vector<HttpsRequest> requests;
  std::vector<HttpsTrust> trusts;

  Ask ask() {
    return [this](const HttpsRequest& request, const HttpsTrust& trust) -> Answer {
      requests.push_back(request);
      trusts.push_back(trust);
      const auto found = answers.find(request.url);
      if (found == answers.end()) return HttpsAnswer{404, "not found"};
      Answer answer = found->second.front();
      if (found->second.size() > 1) found->second.pop_front();
      return answer;
    };
  }
};

class Flow {
 public:
  Flow() {
    issuer.set_issuer("https://sso.example/realm");
    issuer.set_client_id("berth cli");
    issuer.add_scopes("openid");
    issuer.add_scopes("profile");
    issuer.set_authority("PEM");
    servers.answers["https://sso.example/realm/.well-known/openid-configuration"] = {HttpsAnswer{
        200,
        R"({"issuer":"https://sso.example/realm","device_authorization_endpoint":"https://sso.example/device",)"
        R"("token_endpoint":"https://sso.example/token","claims_supported":["x"]})"}};
    Device(
        R"("interval":2,"expires_in":60,"verification_uri_complete":"https://sso.example/d?c=AB-CD")");
    Token(200, R"({"id_token":"a.b.c","access_token":"never used"})");
  }

  void Device(const std::string& more) {
    servers.answers["https://sso.example/device"] = {HttpsAnswer{
        200,
        absl::StrCat(
            R"({"device_code":"secret","user_code":"AB-CD","verification_uri":"https://sso.example/d",)",
            more, "}")}};
  }
  void Token(int code, const std::string& body) {
    servers.answers["https://sso.example/token"].push_back(HttpsAnswer{code, body});
  }
  void OnlyToken(int code, const std::string& body) {
    servers.answers["https://sso.example/token"] = {HttpsAnswer{code, body}};
  }
  absl::StatusOr<std::string> Run() {
    return TokenByDeviceFlow(issuer, servers.ask(), world.environment(),
                             [this](const DevicePrompt& shown) {
                               prompt = shown;
                               ++shows;
                             });
  }
  std::string Error() { return std::string(Run().status().message()); }

  FakeWorld world;
  Servers servers;
  auth::v1::LoginOffer::Issuer issuer;
  DevicePrompt prompt;
  int shows = 0;
};

constexpr char kPending[] = R"({"error":"authorization_pending"})";

TEST_CASE("A login waits until it is confirmed", "[device]") {
  Flow flow;
  flow.servers.answers["https://sso.example/token"] = {HttpsAnswer{400, kPending},
                                                       HttpsAnswer{400, kPending},
                                                       HttpsAnswer{200, R"({"id_token":"a.b.c"})"}};
  const absl::StatusOr<std::string> token = flow.Run();
  INFO(token.status().ToString());
  REQUIRE(token.ok());
  CHECK(*token == "a.b.c");
  CHECK(flow.shows == 1);
  CHECK(flow.prompt.page == "https://sso.example/d");
  CHECK(flow.prompt.code == "AB-CD");
  CHECK(flow.prompt.complete_page == "https://sso.example/d?c=AB-CD");
  CHECK(flow.world.sleeps == std::vector<absl::Duration>(3, absl::Seconds(2)));
  REQUIRE(flow.servers.requests.size() == 5);
  CHECK(flow.servers.requests[0].body.empty());
  CHECK(flow.servers.requests[1].body == "client_id=berth%20cli&scope=openid%20profile");
  CHECK(flow.servers.requests[2].body ==
        "grant_type=urn%3aietf%3aparams%3aoauth%3agrant-type%3adevice_code&device_code=secret&"
        "client_id=berth%20cli");
  for (const HttpsTrust& trust : flow.servers.trusts) CHECK(trust.pem == "PEM");
}

TEST_CASE("A login asks less often if the issuer wants it, or is away", "[device]") {
  Flow flow;
  flow.servers.answers["https://sso.example/token"] = {HttpsAnswer{400, R"({"error":"slow_down"})"},
                                                       absl::UnavailableError("no route"),
                                                       HttpsAnswer{200, R"({"id_token":"t"})"}};
  CHECK(flow.Run().ok());
  CHECK(flow.world.sleeps ==
        std::vector<absl::Duration>{absl::Seconds(2), absl::Seconds(7), absl::Seconds(14)});
}

TEST_CASE("What an issuer says about time has limits", "[device]") {
  const auto first_sleep = [](const std::string& more) {
    Flow flow;
    flow.Device(more);
    const absl::Status status = flow.Run().status();
    return flow.world.sleeps.empty() ? absl::ZeroDuration() : flow.world.sleeps.front();
  };
  CHECK(first_sleep(R"("expires_in":60)") == absl::Seconds(5));
  CHECK(first_sleep(R"("expires_in":60,"interval":-5)") == absl::Seconds(1));
  CHECK(first_sleep(R"("expires_in":60,"interval":9223372036854775807)") == absl::Minutes(1));
  Flow flow;
  flow.Device(R"("expires_in":9223372036854775807)");
  flow.OnlyToken(400, kPending);
  CHECK_THAT(flow.Error(), Contains("the code was not confirmed in time"));
  absl::Duration waited;
  for (const absl::Duration sleep : flow.world.sleeps) waited += sleep;
  CHECK(waited <= kLongestCode + absl::Seconds(5));
}

TEST_CASE("A login that comes to nothing says why", "[device]") {
  const auto token_error = [](int code, const std::string& body) {
    Flow flow;
    flow.OnlyToken(code, body);
    return flow.Error();
  };
  CHECK_THAT(token_error(400, R"({"error":"access_denied"})"),
             Contains("the login was refused there"));
  CHECK_THAT(token_error(400, R"({"error":"expired_token"})"), Contains("not confirmed in time"));
  CHECK_THAT(token_error(401, R"({"error":"invalid_client","error_description":"who?"})"),
             Contains("it gives no token: invalid_client: who?"));
  CHECK_THAT(token_error(500, "oops"), Contains("it gives no token (code 500)"));
  CHECK_THAT(token_error(200, R"({"access_token":"x"})"), Contains("has no ID token"));

  Flow other;
  other.servers.answers["https://sso.example/realm/.well-known/openid-configuration"] = {
      HttpsAnswer{200, R"({"issuer":"https://evil.example"})"}};
  CHECK_THAT(other.Error(), Contains("its document is not at"));
  Flow without;
  without.servers.answers["https://sso.example/realm/.well-known/openid-configuration"] = {
      HttpsAnswer{200, R"({"issuer":"https://sso.example/realm"})"}};
  CHECK_THAT(without.Error(), Contains("does not offer the device flow"));
  Flow plain;
  plain.servers.answers["https://sso.example/device"] = {HttpsAnswer{
      200, R"({"device_code":"s","user_code":"A","verification_uri":"http://sso.example/d"})"}};
  CHECK_THAT(plain.Error(), Contains("no https page"));
  CHECK(plain.shows == 0);
  Flow refused;
  refused.servers.answers["https://sso.example/device"] = {
      HttpsAnswer{400, R"({"error":"unauthorized_client"})"}};
  CHECK_THAT(refused.Error(), Contains("it refuses to begin a login: unauthorized_client"));
  Flow away;
  away.servers.answers["https://sso.example/device"] = {absl::UnavailableError("no route")};
  CHECK_THAT(away.Error(), Contains("the issuer https://sso.example/realm: no route"));
}

class Daemon {
 public:
  static constexpr char kUrl[] = "https://login.example:7080/v1/certificate";

  HttpsAnswer Certificate() const {
    return {200, absl::StrCat(R"({"certificate":")",
                              absl::StrReplaceAll(authority_.certificate, {{"\n", "\\n"}}),
                              R"(","servers":"S"})")};
  }
  absl::StatusOr<NewLogin> Exchange(const std::string& url = "https://login.example:7080/") {
    return ExchangeToken({.url = url, .ca_file = "/ca.pem"}, "a.b.c", files(), absl::Seconds(30),
                         servers.ask(), world.environment());
  }
  TlsFiles files() const { return LoginFiles(directory_.path()); }
  bool kept() const { return std::filesystem::exists(files().certificate); }

  FakeWorld world;
  Servers servers;

 private:
  TempDirectory directory_;
  const NewAuthority authority_ = MakeAuthority("ada", absl::Hours(12), absl::Now()).value();
};

TEST_CASE("A token is exchanged for a certificate, which is kept", "[exchange]") {
  Daemon daemon;
  daemon.servers.answers[Daemon::kUrl] = {HttpsAnswer{503, R"({"error":"later","retry":true})"},
                                          daemon.Certificate()};
  const absl::StatusOr<NewLogin> login = daemon.Exchange();
  INFO(login.status().ToString());
  REQUIRE(login.ok());
  CHECK(login->user == "ada");
  CHECK(daemon.kept());
  CHECK(daemon.world.sleeps.size() == 1);
  const HttpsRequest& request = daemon.servers.requests.front();
  CHECK(absl::StrContains(request.body, R"("token":"a.b.c")"));
  CHECK(absl::StrContains(request.body, "BEGIN CERTIFICATE REQUEST"));
  CHECK(!absl::StrContains(request.body, "PRIVATE"));
  CHECK(daemon.servers.trusts.front().file == "/ca.pem");
  CHECK(LookAtCertificate(daemon.files()).end == login->end);
  CHECK(*ForgetCertificate(daemon.files()));
  CHECK(!daemon.kept());
  CHECK(!*ForgetCertificate(daemon.files()));
}

TEST_CASE("An exchange that comes to nothing leaves nothing", "[exchange]") {
  const auto error = [](const Answer& answer) {
    Daemon daemon;
    daemon.servers.answers[Daemon::kUrl] = {answer};
    const absl::Status status = daemon.Exchange().status();
    CHECK(!daemon.kept());
    return absl::StrCat(status.ToString(), " after ", daemon.servers.requests.size());
  };
  CHECK_THAT(error(HttpsAnswer{403, R"({"error":"no"})"}),
             Contains("PERMISSION_DENIED: berth-authd at https://login.example:7080/: no after 1"));
  CHECK_THAT(error(HttpsAnswer{503, R"({"error":"no","retry":true})"}),
             Contains("UNAVAILABLE") && Contains(" after 15"));
  CHECK_THAT(error(absl::UnavailableError("no route")),
             Contains("UNAVAILABLE") && Contains("no route after 1"));
  CHECK_THAT(error(HttpsAnswer{200, "{}"}), Contains("not its own (code 200) after 1"));
  CHECK_THAT(error(HttpsAnswer{502, "<html>"}), Contains("not its own (code 502) after 1"));
  CHECK_THAT(error(HttpsAnswer{200, R"({"certificate":"x"})"}), Contains("UNAVAILABLE"));
  Daemon daemon;
  CHECK_THAT(daemon.Exchange("http://login.example").status().ToString(),
             Contains("not a URL such as https://"));
}

TEST_CASE("URLs are https, and nothing else is in them", "[url]") {
  for (const char* good : {"https://a", "https://a:1/b?c=d", "https://[::1]:7080/x"})
    CHECK(IsHttpsUrl(good));
  for (const char* wrong :
       {"", "a", "http://a", "https://", "https:///a", "https://?a", "https://a b", "https://a\n",
        "https://u@a", "https://u:p@a/b", "https://a#b", "https://a\"", "https://a\\b", "HTTPS://a",
        "https://\xc3\xa4"}) {
    CAPTURE(wrong);
    CHECK(!IsHttpsUrl(wrong));
  }
  CHECK(!IsHttpsUrl(absl::StrCat("https://", std::string(kMaxUrlBytes, 'a'))));
  CHECK(FormOf({{"a b", "c&d="}, {"e", "\xc3\xa4\n"}}) == "a%20b=c%26d%3d&e=%c3%a4%0a");
  CHECK(AskHttps({.url = "http://a"}, {}).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace berth
