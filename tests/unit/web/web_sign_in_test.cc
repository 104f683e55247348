// From a proof to a session: certificates, tokens, issuers, and the limits of sessions.
#include <fstream>

#include "absl/time/clock.h"
#include "berth/auth/v1/auth.pb.h"
#include "catch2/catch.hpp"
#include "clients/web/sessions.h"
#include "clients/web/sign_in.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/certificate.h"
#include "support/proto_json.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::web {
namespace {

const SpiffeId kAda{.trust_domain = "berth", .kind = SpiffeId::Kind::kUser, .name = "ada"};

struct SignInWorld {
  SignInWorld() {
    const NewAuthority servers = Made("servers"), people = Made("people"), ours = Made("ours");
    people_certificate = people.certificate;
    authority.emplace(*Authority::Open(people.certificate, people.key, absl::Now()));
    config.set_ca(Write("ca", servers.certificate));
    config.set_url("https://berth.example");
    config.mutable_authd()->set_url("https://authd.example:7080");
    config.mutable_certificates()->set_ca(Write("people", people.certificate));
    config.mutable_certificates()->set_authority(Write("ours", ours.certificate));
    config.mutable_certificates()->set_authority_key(Write("ours-key", ours.key));
    config.mutable_certificates()->set_trust_domain("berth");
    sign_in = SignIn::Open(config, [this](const HttpsRequest& request, const HttpsTrust&) {
                return Answer(request);
              }).value();
  }

  static NewAuthority Made(const std::string& name) {
    return MakeAuthority(name, absl::Hours(100), absl::Now()).value();
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string CertificateOf(const SpiffeId& id, absl::Duration lifetime = absl::Hours(1),
                            absl::Time now = absl::Now()) {
    const std::string request = MakeCertificateRequest().value().request;
    return authority->Issue(request, id, {"ml", "ops"}, lifetime, now).value();
  }
  // berth-authd, and an issuer.
  absl::StatusOr<HttpsAnswer> Answer(const HttpsRequest& request) {
    urls.push_back(request.url);
    if (request.url == "https://authd.example:7080/v1/login") {
      return HttpsAnswer{
          200, R"({"issuers":[{"issuer":"https://id","clientId":"web","scopes":["openid"]}]})"};
    }
    if (request.url == "https://id/.well-known/openid-configuration") {
      return HttpsAnswer{
          200,
          R"({"issuer":"https://id","authorizationEndpoint":"https://id/go","tokenEndpoint":"https://id/token"})"};
    }
    if (request.url == "https://id/token") {
      token_form = request.body;
      return HttpsAnswer{200, R"({"idToken":"good"})"};
    }
    auth::v1::TokenOrder order;
    if (!ParseJson(request.body, &order)) return absl::InternalError("not an order");
    auth::v1::CertificateAnswer answer;
    if (order.token() != "good") {
      answer.set_error("a token of nobody");
      return HttpsAnswer{403, WriteJson(answer)};
    }
    answer.set_certificate(
        authority->Issue(order.request(), kAda, {}, absl::Hours(2), absl::Now()).value());
    answer.set_servers("servers");
    return HttpsAnswer{200, WriteJson(answer)};
  }

  TempDirectory directory;
  v1::Web config;
  std::string people_certificate;
  std::optional<Authority> authority;
  std::unique_ptr<SignIn> sign_in;
  std::vector<std::string> urls;
  std::string token_form;
};

TEST_CASE("sign-in: a certificate becomes one with the same names, end and serial number") {
  SignInWorld world;
  const std::string own = world.CertificateOf(kAda);
  const auto signed_in = world.sign_in->ByCertificate(own, absl::Now());
  REQUIRE(signed_in.ok());
  const CertificateNames before = ReadCertificateNames(own).value();
  const CertificateNames after = ReadCertificateNames(signed_in->identity.certificate).value();
  CHECK(signed_in->user == "ada");
  CHECK(after.uris == before.uris);
  CHECK(after.groups == before.groups);
  CHECK(after.serial == before.serial);
  CHECK(after.not_after <= before.not_after);
  CHECK(signed_in->identity.key.find("PRIVATE KEY") != std::string::npos);
}

TEST_CASE("sign-in: certificates that are no proof") {
  SignInWorld world;
  const auto refused = [&](const std::string& pem) {
    return absl::IsPermissionDenied(world.sign_in->ByCertificate(pem, absl::Now()).status());
  };
  CHECK(refused(""));
  CHECK(refused("nonsense"));
  CHECK(refused(world.people_certificate));
  CHECK(refused(world.CertificateOf({"berth", SpiffeId::Kind::kNode, "n1"})));
  CHECK(refused(world.CertificateOf({"other", SpiffeId::Kind::kUser, "ada"})));
  CHECK(refused(world.CertificateOf(kAda, absl::Hours(1), absl::Now() - absl::Hours(9))));
  SignInWorld others;
  CHECK(refused(others.CertificateOf(kAda)));
}

TEST_CASE("sign-in: tokens go to berth-authd") {
  SignInWorld world;
  const auto signed_in = world.sign_in->ByToken("good");
  REQUIRE(signed_in.ok());
  CHECK(signed_in->user == "ada");
  const absl::Status bad = world.sign_in->ByToken("bad").status();
  CHECK(absl::IsPermissionDenied(bad));
  CHECK(bad.message() == "berth-authd at https://authd.example:7080: a token of nobody");
  CHECK(absl::IsInvalidArgument(world.sign_in->ByToken("").status()));
  CHECK(absl::IsInvalidArgument(
      world.sign_in->ByToken(std::string(kMaxTokenBytes + 1, 'a')).status()));
}

TEST_CASE("sign-in: a code counts once, in the browser that asked, for a while") {
  SignInWorld world;
  const absl::Time now = absl::Now();
  CHECK(world.sign_in->Issuers() == std::vector<std::string>{"https://id"});
  CHECK(absl::IsNotFound(world.sign_in->Begin("https://evil", now).status()));
  const auto state_in = [](const std::string& url) {
    const size_t at = url.find("&state=") + 7;
    return url.substr(at, url.find('&', at) - at);
  };
  const auto begun = world.sign_in->Begin("https://id", now);
  REQUIRE(begun.ok());
  INFO(begun->url);
  CHECK(begun->url.find("https://id/go?response_type=code&client_id=web&redirect_uri=https%3a%2f%"
                        "2fberth.example%2fapi%2fsign-in%2fcallback&scope=openid&state=") == 0);
  CHECK(begun->url.find(begun->secret) == std::string::npos);
  const std::string state = state_in(begun->url);
  CHECK(absl::IsPermissionDenied(world.sign_in->Finish(state, "code", "", now).status()));
  CHECK(absl::IsPermissionDenied(
      world.sign_in->Finish("other", "code", begun->secret, now).status()));
  const auto signed_in = world.sign_in->Finish(state, "code", begun->secret, now);
  REQUIRE(signed_in.ok());
  CHECK(signed_in->user == "ada");
  CHECK(world.token_form.find("code_verifier=") != std::string::npos);
  CHECK(
      absl::IsPermissionDenied(world.sign_in->Finish(state, "code", begun->secret, now).status()));
  const auto late = world.sign_in->Begin("https://id", now);
  CHECK(absl::IsPermissionDenied(
      world.sign_in->Finish(state_in(late->url), "code", late->secret, now + kIssuerLoginTime)
          .status()));
}

std::shared_ptr<Session> SessionOf(const std::string& user, absl::Time end,
                                   SessionBounds bounds = {}) {
  return std::make_shared<Session>(
      user, end,
      std::make_shared<Upstream>(std::vector<std::string>{"127.0.0.1:1"}, UpstreamIdentity{}),
      bounds);
}

TEST_CASE("sessions: by their secret only, until they end") {
  Sessions sessions;
  const absl::Time now = absl::Now();
  const auto session = SessionOf("ada", now + absl::Hours(1));
  const std::string secret = sessions.Add(session).value();
  CHECK(secret.size() >= 43);
  CHECK(sessions.Find(secret, now) == session);
  CHECK(sessions.Find(secret + "A", now) == nullptr);
  CHECK(sessions.Find("", now) == nullptr);
  CHECK(sessions.Find(secret, now + absl::Hours(1)) == nullptr);
  sessions.Remove(secret, absl::UnauthenticatedError("x"));
  CHECK(sessions.Find(secret, now) == nullptr);
}

TEST_CASE("sessions: idle ones and those that are over are swept, and a user has so many") {
  Sessions sessions;
  const absl::Time now = absl::Now();
  const absl::Duration steady = SystemClock().Steady();
  const std::string used = sessions.Add(SessionOf("ada", now + absl::Hours(9))).value();
  const std::string over = sessions.Add(SessionOf("ada", now)).value();
  sessions.Sweep(steady, now);
  CHECK(sessions.All().size() == 1);
  CHECK(sessions.Find(used, now)->CallBegins(steady + absl::Hours(2)).ok());
  sessions.Sweep(steady + absl::Hours(9), now);
  CHECK(sessions.All().size() == 1);  // a call is under way
  sessions.Find(used, now)->CallEnded();
  sessions.Sweep(steady + absl::Hours(9), now);
  CHECK(sessions.All().empty());
  for (size_t i = 0; i < kSessionsOfUser; ++i) {
    CHECK(sessions.Add(SessionOf("bob", now + absl::Hours(1))).ok());
  }
  CHECK(absl::IsResourceExhausted(sessions.Add(SessionOf("bob", now + absl::Hours(1))).status()));
  CHECK(sessions.Add(SessionOf("ada", now + absl::Hours(1))).ok());
}

TEST_CASE("sessions: calls at once, calls a second, streams") {
  const auto session =
      SessionOf("ada", absl::InfiniteFuture(),
                {.calls_per_second = 1, .calls_together = 4, .calls_at_once = 2, .streams = 1});
  const absl::Duration now = SystemClock().Steady();
  CHECK(session->CallBegins(now).ok());
  CHECK(session->CallBegins(now).ok());
  CHECK(absl::IsResourceExhausted(session->CallBegins(now)));  // two at once
  session->CallEnded();
  CHECK(session->CallBegins(now).ok());
  session->CallEnded();
  CHECK(session->StreamBegins(now).ok());
  CHECK(absl::IsResourceExhausted(session->StreamBegins(now + absl::Seconds(9))));
  session->StreamEnded();
  CHECK(session->StreamBegins(now + absl::Seconds(9)).ok());
  session->CallEnded();
  int taken = 0;
  while (session->CallBegins(now + absl::Seconds(9)).ok()) {
    session->CallEnded();
    ++taken;
  }
  CHECK(taken <= 4);
}

}  // namespace
}  // namespace berth::web
