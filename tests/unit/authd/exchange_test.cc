// Tokens: which ones prove a user, and what refuses the others.
#include "clients/authd/oidc/exchange.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "clients/authd/authd_config.h"
#include "support/log.h"
#include "support/utf8.h"
#include "support/yaml_proto.h"
#include "tests/unit/authd/signed_tokens.h"

namespace berth::oidc {
namespace {

using Catch::Matchers::Contains;

const bool kQuiet = StartLog("error", "").ok();

const SigningKey& Rsa() {
  static const SigningKey key = SigningKey::Rsa("rsa");
  return key;
}
const SigningKey& Ec() {
  static const SigningKey key = SigningKey::Ec("ec");
  return key;
}

auth::v1::Authd ConfigOf(const std::string& rules) {
  auth::v1::Authd config;
  const std::string yaml = absl::StrCat(
      "certificate: /ca.pem\nkey: /ca.key\n"
      "oidc:\n  listen: 127.0.0.1:0\n  certificate: /s.pem\n  key: /s.key\n  issuers:\n",
      rules);
  const absl::Status status = ReadYaml(yaml, "authd.yaml", &config);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return config;
}

class World {
 public:
  explicit World(const std::string& rules = kRules) {
    auth::v1::Authd config = ConfigOf(rules);
    config.mutable_oidc()->set_listen("127.0.0.1:7443");
    const absl::Status status = CompleteAuthdConfig(&config);
    INFO(status.ToString());
    REQUIRE(status.ok());
    issuer.keys = {Rsa().Json(), Ec().Json()};
    exchange_ = std::make_unique<TokenExchange>(
        config.oidc(), [this](const auth::v1::TokenRule&) { return issuer.Fetcher(); }, clock);
  }

  static constexpr char kRules[] =
      "  - {issuer: https://sso.example, clientId: berth, userClaim: name, groupsClaim: groups}\n";

  // The claims of a good token, with replacements: an empty value removes the claim.
  std::string Claims(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
    const int64_t now = absl::ToUnixSeconds(clock.Now());
    std::vector<std::pair<std::string, std::string>> claims = {{"iss", R"("https://sso.example")"},
                                                               {"sub", R"("4711")"},
                                                               {"aud", R"("berth")"},
                                                               {"iat", absl::StrCat(now)},
                                                               {"exp", absl::StrCat(now + 600)},
                                                               {"name", R"("ada")"},
                                                               {"groups", R"(["ml", "hpc"])"}};
    for (const auto& change : changes) {
      std::erase_if(claims, [&](const auto& claim) { return claim.first == change.first; });
      if (!change.second.empty()) claims.push_back(change);
    }
    return absl::StrCat("{",
                        absl::StrJoin(claims, ",",
                                      [](std::string* out, const auto& claim) {
                                        absl::StrAppend(out, "\"", claim.first,
                                                        "\":", claim.second);
                                      }),
                        "}");
  }
  std::string Token(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
    return Rsa().Sign("RS256", Claims(changes));
  }
  absl::StatusOr<TokenHolder> Try(const std::string& token) {
    return exchange_->HolderOfToken(token);
  }
  // The reason why a token with these changes is refused.
  std::string Refusal(const std::vector<std::pair<std::string, std::string>>& changes) {
    return RefusalOf(Token(changes));
  }
  std::string RefusalOf(const std::string& token) {
    const absl::StatusOr<TokenHolder> holder = Try(token);
    if (holder.ok()) return absl::StrCat("accepted for ", holder->user);
    if (!token.empty()) CHECK_THAT(std::string(holder.status().message()), !Contains(token));
    return std::string(holder.status().message());
  }
  std::string User(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
    const absl::StatusOr<TokenHolder> holder = Try(Token(changes));
    return holder.ok() ? holder->user : holder.status().ToString();
  }
  std::string At(absl::Duration offset) {
    return absl::StrCat(absl::ToUnixSeconds(clock.Now() + offset));
  }

  TestClock clock;
  FakeIssuer issuer;

 private:
  std::unique_ptr<TokenExchange> exchange_;
};

std::string UnsignedToken(const std::string& header, const std::string& claims) {
  return absl::StrCat(absl::WebSafeBase64Escape(header), ".", absl::WebSafeBase64Escape(claims),
                      ".");
}

TEST_CASE("A good token proves its user and groups", "[tokens]") {
  World world;
  for (const char* algorithm : {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}) {
    CAPTURE(algorithm);
    const absl::StatusOr<TokenHolder> holder = world.Try(Rsa().Sign(algorithm, world.Claims()));
    INFO(holder.status().ToString());
    REQUIRE(holder.ok());
    CHECK(holder->user == "ada");
    CHECK(holder->groups == std::vector<std::string>{"ml", "hpc"});
    CHECK(holder->issuer == "https://sso.example");
    CHECK(holder->subject == "4711");
    CHECK(holder->lifetime == absl::Hours(12));
  }
  CHECK(world.Try(Ec().Sign("ES256", world.Claims())).ok());
  CHECK(world.issuer.fetches == 1);
}

TEST_CASE("Larger curves have their own algorithm", "[tokens]") {
  World world;
  const SigningKey p384 = SigningKey::Ec("p384", CJOSE_JWK_EC_P_384);
  const SigningKey p521 = SigningKey::Ec("p521", CJOSE_JWK_EC_P_521);
  world.issuer.keys = {p384.Json(), p521.Json()};
  CHECK(world.Try(p384.Sign("ES384", world.Claims())).ok());
  CHECK(world.Try(p521.Sign("ES512", world.Claims())).ok());
  CHECK_THAT(world.RefusalOf(p384.Sign("ES256", world.Claims())), Contains("signed with a key"));
}

TEST_CASE("A token counts between its times, give or take a minute", "[tokens]") {
  World world;
  CHECK_THAT(
      world.Refusal({{"iat", world.At(-absl::Minutes(20))}, {"exp", world.At(-absl::Seconds(60))}}),
      Contains("the token expired at 2027-01-15T07:59:00"));
  CHECK(world.User({{"iat", world.At(-absl::Minutes(20))},
                    {"exp", world.At(-absl::Seconds(59))}}) == "ada");
  CHECK_THAT(world.Refusal({{"nbf", world.At(absl::Seconds(61))}}),
             Contains("is not valid before"));
  CHECK(world.User({{"nbf", world.At(absl::Seconds(60))}}) == "ada");
  CHECK_THAT(world.Refusal({{"iat", world.At(absl::Seconds(61))}}),
             Contains("is not valid before"));
  CHECK_THAT(world.Refusal({{"exp", ""}}), Contains("has no claim \"exp\""));
  CHECK_THAT(world.Refusal({{"iat", ""}}), Contains("has no claim \"iat\""));
  for (const char* wrong : {R"("1800000000")", "-1", "1e300", "true", "[]", "null"}) {
    CHECK_THAT(world.Refusal({{"exp", wrong}}), Contains("has a claim \"exp\" that is no time"));
    CHECK_THAT(world.Refusal({{"nbf", wrong}}), Contains("has a claim \"nbf\" that is no time"));
  }
}

TEST_CASE("A token may be valid for an hour, or as the configuration says", "[tokens]") {
  World world;
  CHECK(world.User({{"exp", world.At(absl::Hours(1))}}) == "ada");
  CHECK_THAT(world.Refusal({{"exp", world.At(absl::Seconds(3601))}}),
             Contains("is valid for 1h1s; at most 1h is allowed"));
  CHECK_THAT(
      world.Refusal({{"iat", world.At(absl::Seconds(30))}, {"exp", world.At(absl::Seconds(20))}}),
      Contains("is valid for -10s"));
  World longer(
      "  - {issuer: https://sso.example, clientId: berth, userClaim: name, maxTokenAge: 65m, "
      "lifetime: 1h}\n");
  CHECK(longer.User({{"exp", longer.At(absl::Minutes(65))}}) == "ada");
  CHECK(longer.Try(longer.Token())->lifetime == absl::Hours(1));
}

TEST_CASE("Every audience of a token is one of ours", "[tokens]") {
  World world;
  CHECK_THAT(world.Refusal({{"aud", R"("other")"}}),
             Contains("is for the audience \"other\", not for \"berth\""));
  CHECK_THAT(world.Refusal({{"aud", R"(["berth", "other"])"}}),
             Contains("is for the audience \"other\""));
  CHECK_THAT(world.Refusal({{"aud", R"("berth2")"}}), Contains("is for the audience \"berth2\""));
  CHECK(world.User({{"aud", R"(["berth"])"}}) == "ada");
  for (const char* wrong : {"", "[]", "1", "[1]", "{}"}) {
    CHECK_THAT(world.Refusal({{"aud", wrong}}), Contains("has no claim \"aud\" with an audience"));
  }
  World two("  - {issuer: https://sso.example, audiences: [a, b], userClaim: name}\n");
  CHECK(two.User({{"aud", R"(["a", "b"])"}}) == "ada");
}

TEST_CASE("Only the named issuers count, compared whole", "[tokens]") {
  World world;
  for (const char* other :
       {"https://sso.example/", "https://sso.exampl", "https://SSO.example", "x"}) {
    CHECK_THAT(world.Refusal({{"iss", absl::StrCat("\"", other, "\"")}}),
               Contains(absl::StrCat("the token's issuer \"", other,
                                     "\" is not one that berth-authd trusts")));
  }
  CHECK_THAT(world.Refusal({{"iss", ""}}), Contains("names no issuer"));
  CHECK_THAT(world.Refusal({{"iss", "[\"https://sso.example\"]"}}), Contains("names no issuer"));
  CHECK(world.issuer.fetches == 0);
}

TEST_CASE("Messages have no more of a token than its beginning, in whole characters", "[tokens]") {
  World world;
  std::string text = "x";
  for (int i = 0; i < 1000; ++i) text += "\xc3\xa4";
  for (const char* claim : {"iss", "aud"}) {
    const std::string refusal = world.Refusal({{claim, absl::StrCat("\"", text, "\"")}});
    CHECK(refusal.size() < 400);
    CHECK(FirstBadUtf8(refusal) == absl::string_view::npos);
  }
}

TEST_CASE("A public key is no secret, and no signature is none", "[tokens]") {
  World world;
  REQUIRE(world.User() == "ada");
  const SigningKey secret = SigningKey::Secret("rsa", Rsa().Json());
  for (const char* algorithm : {"HS256", "HS384", "HS512"}) {
    CHECK_THAT(world.RefusalOf(secret.Sign(algorithm, world.Claims())),
               Contains(absl::StrCat("algorithm \"", algorithm,
                                     "\" is not accepted; accepted are RS256")));
  }
  for (const char* name : {"none", "None", "EdDSA", "rs256", ""}) {
    const std::string header = absl::StrCat(R"({"alg":")", name, R"(","kid":"rsa"})");
    CHECK_THAT(world.RefusalOf(UnsignedToken(header, world.Claims())),
               Contains(absl::StrCat("algorithm \"", name, "\" is not accepted")));
  }
  CHECK_THAT(world.RefusalOf(UnsignedToken(R"({"kid":"rsa"})", world.Claims())),
             Contains("names no algorithm"));
  // The right algorithm without a signature, and with one of another key.
  CHECK_THAT(world.RefusalOf(UnsignedToken(R"({"alg":"RS256","kid":"rsa"})", world.Claims())),
             Contains("not a signed JWT"));
  const SigningKey thief = SigningKey::Rsa("rsa");
  CHECK_THAT(world.RefusalOf(thief.Sign("RS256", world.Claims())),
             Contains("signature is not valid"));
  // A key of another kind under the id.
  CHECK_THAT(world.RefusalOf(SigningKey::Ec("rsa").Sign("ES256", world.Claims())),
             Contains("signed with a key"));
}

TEST_CASE("Not one byte of a token may change", "[tokens]") {
  World world;
  const std::string token = Ec().Sign("ES256", world.Claims());
  const size_t signature = token.rfind('.') + 1;
  int accepted = 0;
  for (size_t at = 0; at < token.size(); ++at) {
    if (token[at] == '.') continue;
    std::string changed = token;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    if (changed == token) continue;
    // The last letter of base64 may have bits that say nothing.
    if (at + 1 == token.size() || at + 1 == signature - 1) continue;
    if (world.Try(changed).ok()) ++accepted;
  }
  CHECK(accepted == 0);
  CHECK(!world.Try(token.substr(0, token.size() - 4)).ok());
}

TEST_CASE("What is not a signed JWT is refused", "[tokens]") {
  World world;
  const std::string token = world.Token();
  for (const std::string& text :
       {std::string(), std::string("xyz"), std::string(".."), std::string("a.b.c"), token + ".x",
        " " + token, token + "\n", absl::StrReplaceAll(token, {{".", "="}}), std::string("{}"),
        std::string(3, '\0')}) {
    CHECK_THAT(world.RefusalOf(text), Contains("signed JWT"));
  }
  CHECK_THAT(world.RefusalOf(std::string(kMaxTokenBytes + 1, 'a')),
             Contains("has more than 16384 bytes"));
  const std::string large = absl::StrCat("\"", std::string(12000, 'x'), "\"");
  CHECK_THAT(world.Refusal({{"more", large}}), Contains("has more than 16384 bytes"));
  CHECK_THAT(world.RefusalOf(UnsignedToken(R"({"alg":"RS256","alg":"RS256"})", "{}")),
             Contains("signed JWT"));
  CHECK_THAT(world.RefusalOf(Rsa().Sign("RS256", "[]")), Contains("signed JWT"));
  CHECK_THAT(world.RefusalOf(Rsa().Sign("RS256", world.Claims(), {{"crit", R"(["exp"])"}})),
             Contains("(crit)"));
  CHECK_THAT(world.RefusalOf(Rsa().Sign("RS256", world.Claims(), {{"typ", R"("logout+jwt")"}})),
             Contains("(typ)"));
  CHECK_THAT(world.RefusalOf(UnsignedToken(R"({"alg":"RS256","kid":7})", world.Claims())),
             Contains("(kid)"));
  CHECK(world.Try(Rsa().Sign("RS256", world.Claims(), {{"typ", R"("JWT")"}})).ok());
  CHECK_THAT(world.Refusal({{"events", "{}"}}), Contains("is one of a log-out"));
  // An address of keys in the token is not asked.
  const std::vector<std::pair<std::string, std::string>> own = {
      {"jku", R"("https://evil.example/keys")"}, {"jwk", SigningKey::Rsa("rsa").Json()}};
  CHECK_THAT(world.RefusalOf(SigningKey::Rsa("rsa").Sign("RS256", world.Claims(), own)),
             Contains("signature is not valid"));
}

TEST_CASE("Text that is not base64url does not reach the library", "[tokens]") {
  World world;
  const std::string token = world.Token();
  const std::string start = token.substr(0, token.rfind('.') + 1);
  for (const char* signature :
       {"A", "AAAAA", "A=", "AA==", "AAA=", "A+AA", "A/AA", "=", "====", " "}) {
    CAPTURE(signature);
    CHECK_THAT(world.RefusalOf(absl::StrCat(start, signature)), Contains("signed JWT"));
  }
  CHECK_THAT(world.RefusalOf(absl::StrCat(start, "AA")), Contains("signature is not valid"));
  for (const char* text : {"A", "AAAAA", "AQ=", "AQ==", "A*AB", ""}) {
    CAPTURE(text);
    const std::string n(342, 'A');
    for (const std::string& key :
         {absl::StrCat(R"({"kty":"RSA","kid":"k","e":"AQAB","n":")", n, text, "=\"}"),
          absl::StrCat(R"({"kty":"RSA","kid":"k","n":")", n, R"(","e":")", text, "\"}"),
          absl::StrCat(R"({"kty":"EC","crv":"P-256","kid":"k","x":"AQAB","y":")", text, "\"}")}) {
      CHECK(KeySet::Parse(absl::StrCat(R"({"keys":[)", key, "]}")).value().size() == 0);
    }
  }
}

TEST_CASE("The claim of the user is a text, and a possible name", "[tokens]") {
  World world;
  CHECK_THAT(world.Refusal({{"name", ""}}), Contains("has no claim \"name\" (userClaim)"));
  for (const char* wrong : {"7", "null", "[\"ada\"]", "{}", "true"}) {
    CHECK_THAT(world.Refusal({{"name", wrong}}), Contains("has a claim \"name\" that is no text"));
  }
  CHECK_THAT(world.Refusal({{"name", R"("")"}}), Contains("has an empty claim \"name\""));
  const std::string too_long = absl::StrCat("\"", std::string(254, 'a'), "\"");
  for (const std::string& wrong :
       {std::string(R"("a\"b")"), std::string(R"("a\\b")"), std::string(R"("a\nb")"),
        std::string(R"("a\u007f")"), too_long}) {
    CHECK_THAT(world.Refusal({{"name", wrong}}), Contains("names a user with characters"));
  }
  CHECK_THAT(world.Refusal({{"name", R"("a\u0000b")"}}), Contains("signed JWT"));
  CHECK_THAT(world.Refusal({{"name", R"("root")"}}), Contains("\"root\", who gets no certificate"));
  CHECK(world.User({{"name", R"("Zo\u00eb/x@corp")"}}) == "Zo\xc3\xab/x@corp");
  CHECK_THAT(world.Refusal({{"sub", ""}}), Contains("has no claim \"sub\""));
  CHECK_THAT(world.Refusal({{"sub", "7"}}), Contains("has no claim \"sub\""));
}

TEST_CASE("Names of an issuer can be told apart, and addresses shortened", "[tokens]") {
  World prefixed(
      "  - {issuer: https://sso.example, clientId: berth, userClaim: name, userPrefix: 'ext:', "
      "groupsClaim: groups, groupPrefix: 'ext-', groups: [people]}\n");
  const absl::StatusOr<TokenHolder> holder = prefixed.Try(prefixed.Token());
  REQUIRE(holder.ok());
  CHECK(holder->user == "ext:ada");
  CHECK(holder->groups == std::vector<std::string>{"people", "ext-ml", "ext-hpc"});

  World mail(
      "  - {issuer: https://sso.example, clientId: berth, userClaim: email, removeSuffix: "
      "'@corp.example'}\n");
  CHECK(mail.User({{"email", R"("ada@corp.example")"}, {"email_verified", "true"}}) == "ada");
  for (const char* unverified : {"", "false", R"("true")", "1"}) {
    CHECK_THAT(mail.Refusal({{"email", R"("ada@corp.example")"}, {"email_verified", unverified}}),
               Contains("has not verified"));
  }
  CHECK_THAT(mail.Refusal({{"email", R"("ada@evil.example")"}, {"email_verified", "true"}}),
             Contains("without the end that removeSuffix asks for"));
  CHECK_THAT(mail.Refusal({{"email", R"("@corp.example")"}, {"email_verified", "true"}}),
             Contains("has an empty claim"));
}

TEST_CASE("Groups are a list, one, or none", "[tokens]") {
  World world;
  const auto groups = [&](const std::string& json) {
    const absl::StatusOr<TokenHolder> holder = world.Try(world.Token({{"groups", json}}));
    return holder.ok() ? absl::StrJoin(holder->groups, "|")
                       : std::string(holder.status().message());
  };
  CHECK(groups("") == "");
  CHECK(groups(R"("ml")") == "ml");
  CHECK(groups("[]") == "");
  CHECK(groups(R"(["ml", "a\"b", "", "ml", "hpc"])") == "ml|hpc");
  for (const char* wrong : {"1", "{}", "[1]", "[\"ml\", null]", "true"}) {
    CHECK_THAT(groups(wrong), Contains("that is no list of at most 1000 groups"));
  }
}

TEST_CASE("CI: required claims choose the entry, and its user", "[tokens]") {
  const std::string rules =
      "  - {issuer: https://sso.example, audiences: [berth], requiredClaims: {repository: "
      "org/train, protected: 'true'}, "
      "user: ci-train, groups: [ci]}\n"
      "  - {issuer: https://sso.example, audiences: [berth], requiredClaims: {repository: "
      "org/other}, user: ci-other, "
      "lifetime: 30m}\n";
  World world(rules);
  CHECK(world.User({{"repository", R"("org/train")"}, {"protected", "true"}}) == "ci-train");
  CHECK(world.User({{"repository", R"("org/train")"}, {"protected", R"("true")"}}) == "ci-train");
  CHECK(world.User({{"repository", R"(["x", "org/other"])"}}) == "ci-other");
  CHECK(world.Try(world.Token({{"repository", R"("org/other")"}}))->lifetime == absl::Minutes(30));
  for (const char* wrong : {R"("org/train2")", R"("org/trai")", R"("ORG/TRAIN")",
                            R"({"org/train":1})", "1", "null", ""}) {
    const std::string refusal = world.Refusal({{"repository", wrong}, {"protected", "true"}});
    CHECK_THAT(refusal, Contains("does not have the required value of the claim \"repository\""));
    CHECK_THAT(refusal, !Contains("org/"));  // whatever the configuration wants is its own affair
  }
  CHECK_THAT(world.Refusal({{"repository", R"("org/train")"}, {"protected", "false"}}),
             Contains("does not have the required value of the claim \"protected\""));
}

TEST_CASE("A new key counts soon, and an old one no longer", "[keys]") {
  World world;
  REQUIRE(world.User() == "ada");
  const SigningKey next = SigningKey::Rsa("next");
  world.issuer.keys = {next.Json()};
  world.clock.passed += absl::Seconds(21);
  CHECK(world.Try(next.Sign("RS256", world.Claims())).ok());
  CHECK(world.issuer.fetches == 2);
  CHECK_THAT(world.Refusal({}),
             Contains("signed with a key that the issuer https://sso.example did not have"));
  CHECK(world.issuer.fetches == 2);
}

TEST_CASE("An old key is dropped after a quarter of an hour, also if nobody comes with a new one",
          "[keys]") {
  World world;
  REQUIRE(world.User() == "ada");
  world.issuer.keys = {Ec().Json()};
  world.clock.passed += absl::Minutes(14);
  CHECK(world.User() == "ada");
  world.clock.passed += absl::Minutes(1);
  CHECK_THAT(world.Refusal({}), Contains("signed with a key"));
  CHECK(world.issuer.fetches == 2);
}

TEST_CASE("A flood of unknown keys is none at the issuer", "[keys]") {
  World world;
  const SigningKey unknown = SigningKey::Ec("unknown");
  for (int second = 0; second < 60; ++second) {
    world.clock.passed += absl::Seconds(1);
    CHECK_THAT(world.RefusalOf(unknown.Sign("ES256", world.Claims())),
               Contains("signed with a key"));
    CHECK(world.User() == "ada");
  }
  CHECK(world.issuer.fetches == 3);
}

TEST_CASE("While the issuer is away its keys serve for an hour", "[keys]") {
  World world;
  REQUIRE(world.User() == "ada");
  world.issuer.down = true;
  world.clock.passed += absl::Minutes(59);
  CHECK(world.User() == "ada");
  world.clock.passed += absl::Minutes(1);
  CHECK(world.Try(world.Token()).status().code() == absl::StatusCode::kUnavailable);
  world.issuer.down = false;
  world.clock.passed += absl::Seconds(20);
  CHECK(world.User() == "ada");
}

TEST_CASE("Many tokens at once are one question at the issuer", "[keys]") {
  World world;
  const std::vector<std::string> tokens = {world.Token(), Ec().Sign("ES256", world.Claims()),
                                           SigningKey::Ec("unknown").Sign("ES256", world.Claims())};
  std::atomic<int> good = 0, bad = 0, unknown = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100;) {
        const bool ours = (round + i) % 3 != 2;
        const absl::Status status =
            world.Try(tokens[static_cast<size_t>((round + i) % 3)]).status();
        if (ours && absl::IsUnavailable(status)) continue;  // the first keys are being fetched
        ++(status.ok() ? good : absl::IsUnavailable(status) ? unknown : bad);
        ++round;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good + unknown == 800);
  CHECK(unknown == 266);
  CHECK(bad == 0);
  CHECK(world.issuer.fetches == 1);
}

TEST_CASE("A document of somebody else gives no keys", "[keys]") {
  for (const char* document :
       {R"({"issuer":"https://evil.example","jwks_uri":"https://sso.example/keys"})",
        R"({"issuer":"https://sso.example/","jwks_uri":"https://sso.example/keys"})",
        R"({"jwks_uri":"https://sso.example/keys"})", R"({"issuer":"https://sso.example"})",
        R"({"issuer":"https://sso.example","jwks_uri":"http://sso.example/keys"})",
        R"({"issuer":"https://sso.example","jwks_uri":"file:///etc/passwd"})", "[]", "x"}) {
    CAPTURE(document);
    World world;
    world.issuer.document = document;
    CHECK(world.Try(world.Token()).status().code() == absl::StatusCode::kUnavailable);
    CHECK(world.issuer.fetches == 0);
  }
}

TEST_CASE("Key sets have limits", "[keys]") {
  World world;
  std::vector<std::string> many(kMaxKeys + 1, Rsa().Json());
  CHECK(!KeySet::Parse(absl::StrCat(R"({"keys":[)", absl::StrJoin(many, ","), "]}")).ok());
  CHECK(!KeySet::Parse(std::string(kMaxKeySetBytes + 1, ' ')).ok());
  for (const char* wrong : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[],"keys":[]})"}) {
    CHECK(!KeySet::Parse(wrong).ok());
  }
  const auto size = [](const std::string& key) {
    return KeySet::Parse(absl::StrCat(R"({"keys":[)", key, "]}")).value().size();
  };
  CHECK(size(Rsa().Json()) == 1);
  CHECK(size(Rsa().Json(R"(,"use":"sig","alg":"RS256","key_ops":["verify"])")) == 1);
  CHECK(size(Rsa().Json(R"(,"use":"enc")")) == 0);
  CHECK(size(Rsa().Json(R"(,"key_ops":["encrypt"])")) == 0);
  CHECK(size(Rsa().Json(R"(,"alg":"RSA-OAEP")")) == 0);
  CHECK(size(Rsa().Json(R"(,"alg":"ES256")")) == 0);
  CHECK(size(SigningKey::Rsa("weak", 1024).Json()) == 0);
  CHECK(size(R"({"kty":"oct","kid":"rsa","k":"c2VjcmV0"})") == 0);
  for (const char* wrong :
       {"1", "{}", R"({"kty":"RSA"})", R"({"kty":"RSA","n":"","e":""})",
        R"({"kty":"EC","crv":"P-256"})", R"({"kty":"EC","crv":"P-256","x":"AA","y":"AA"})",
        R"({"kty":["RSA"]})"}) {
    CAPTURE(wrong);
    CHECK(size(wrong) == 0);
  }
}

TEST_CASE("A key may be for one algorithm only, and an id may be missing", "[keys]") {
  World world;
  world.issuer.keys = {Rsa().Json(R"(,"alg":"PS256")")};
  CHECK(world.Try(Rsa().Sign("PS256", world.Claims())).ok());
  CHECK_THAT(world.Refusal({}), Contains("signed with a key"));

  World nameless;
  const SigningKey one = SigningKey::Rsa(""), two = SigningKey::Rsa("");
  nameless.issuer.keys = {one.Json(), Ec().Json()};
  CHECK(nameless.Try(one.Sign("RS256", nameless.Claims())).ok());
  nameless.issuer.keys = {one.Json(), two.Json()};
  nameless.clock.passed += absl::Minutes(15);
  CHECK_THAT(nameless.RefusalOf(one.Sign("RS256", nameless.Claims())),
             Contains("signed with a key"));
}

TEST_CASE("The section oidc is checked as a whole", "[config]") {
  const auto problem = [](const std::string& rules, const std::string& listen = "127.0.0.1:7443") {
    auth::v1::Authd config = ConfigOf(rules);
    config.mutable_oidc()->set_listen(listen);
    return std::string(CompleteAuthdConfig(&config).message());
  };
  const auto rule = [&](const std::string& fields) {
    return problem(absl::StrCat("  - {", fields, "}\n"));
  };
  CHECK(rule("issuer: https://a, clientId: berth, userClaim: sub") == "");
  CHECK_THAT(rule("issuer: http://a, clientId: berth, userClaim: sub"),
             Contains("oidc.issuers[0].issuer: must be an https"));
  CHECK_THAT(rule("issuer: 'https://a?b', clientId: berth, userClaim: sub"),
             Contains("issuer: must be an https"));
  CHECK_THAT(rule("issuer: https://a, userClaim: sub"),
             Contains("audiences: required without client_id"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth"), Contains("user_claim: set either"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, user: x"),
             Contains("user_claim: set either"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, user: 'a\"b'"),
             Contains("user: is no name"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, user: x, userPrefix: y"),
             Contains("user_prefix: needs user_claim"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, groupPrefix: y"),
             Contains("needs groups_claim"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, maxTokenAge: 25h"),
             Contains("must be 1m..24h"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, lifetime: 1m"),
             Contains("must be 5m..168h"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, scopes: [email]"),
             Contains("must contain openid"));
  CHECK_THAT(rule("issuer: https://a, clientId: berth, userClaim: sub, caFile: x.pem"),
             Contains("ca_file: must be an absolute path"));
  CHECK_THAT(problem("  - {issuer: https://a, clientId: b, userClaim: sub}\n  - {issuer: "
                     "https://a, clientId: c, userClaim: sub}\n"),
             Contains("oidc.issuers[1].client_id: another entry"));
  CHECK_THAT(problem("  - {issuer: https://a, clientId: b, userClaim: sub}\n  - {issuer: "
                     "https://a, audiences: [c], userClaim: sub, caFile: /x}\n"),
             Contains("oidc.issuers[1].ca_file: must be that of the other entry"));
  CHECK_THAT(problem("  - {issuer: https://a, clientId: b, userClaim: sub}\n", "unix:/x"),
             Contains("oidc.listen"));
  CHECK_THAT(problem("  - {issuer: https://a, clientId: b, userClaim: sub}\n", ""),
             Contains("oidc.listen"));
  auth::v1::Authd config;
  config.set_listen("off");
  CHECK_THAT(std::string(CompleteAuthdConfig(&config).message()),
             Contains("listen: \"off\" needs oidc"));
}

}  // namespace
}  // namespace berth::oidc
