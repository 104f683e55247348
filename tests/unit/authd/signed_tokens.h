// Keys, tokens and an issuer for tests.
#ifndef BERTH_TESTS_UNIT_AUTHD_SIGNED_TOKENS_H_
#define BERTH_TESTS_UNIT_AUTHD_SIGNED_TOKENS_H_

extern "C" {
#include <cjose/cjose.h>
}

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "clients/authd/oidc/exchange.h"
#include "core/base/check.h"
#include "support/clock.h"

namespace berth::oidc {

class SigningKey {
 public:
  static SigningKey Rsa(const std::string& id, size_t bits = 2048) {
    cjose_err error{};
    const uint8_t exponent[] = {1, 0, 1};
    return {id, cjose_jwk_create_RSA_random(bits, exponent, sizeof(exponent), &error)};
  }
  static SigningKey Ec(const std::string& id, cjose_jwk_ec_curve curve = CJOSE_JWK_EC_P_256) {
    cjose_err error{};
    return {id, cjose_jwk_create_EC_random(curve, &error)};
  }
  static SigningKey Secret(const std::string& id, const std::string& secret) {
    cjose_err error{};
    return {id, cjose_jwk_create_oct_spec(reinterpret_cast<const uint8_t*>(secret.data()),
                                          secret.size(), &error)};
  }

  const std::string& id() const { return id_; }
  // For a JWKS, with these further members, such as ,"use":"sig".
  std::string Json(const std::string& more = "") const {
    cjose_err error{};
    char* text = cjose_jwk_to_json(jwk_.get(), false, &error);
    BERTH_CHECK(text != nullptr);
    std::string json(text);
    free(text);
    json.pop_back();
    return absl::StrCat(json, more, "}");
  }
  // With these further members of the header: texts, objects or lists.
  std::string Sign(const std::string& algorithm, const std::string& claims,
                   const std::vector<std::pair<std::string, std::string>>& more = {}) const {
    cjose_err error{};
    cjose_header_t* header = cjose_header_new(&error);
    BERTH_CHECK(cjose_header_set(header, "alg", algorithm.c_str(), &error));
    if (!id_.empty()) BERTH_CHECK(cjose_header_set(header, "kid", id_.c_str(), &error));
    for (const auto& [name, json] : more) {
      if (json.front() == '"') {
        const std::string text = json.substr(1, json.size() - 2);
        BERTH_CHECK(cjose_header_set(header, name.c_str(), text.c_str(), &error));
      } else {
        BERTH_CHECK(cjose_header_set_raw(header, name.c_str(), json.c_str(), &error));
      }
    }
    cjose_jws_t* jws = cjose_jws_sign(
        jwk_.get(), header, reinterpret_cast<const uint8_t*>(claims.data()), claims.size(), &error);
    BERTH_CHECK(jws != nullptr);
    const char* text = nullptr;
    BERTH_CHECK(cjose_jws_export(jws, &text, &error));
    std::string token(text);
    cjose_jws_release(jws);
    cjose_header_release(header);
    return token;
  }

 private:
  struct Freer {
    void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
  };
  SigningKey(std::string id, cjose_jwk_t* jwk) : id_(std::move(id)), jwk_(jwk) {
    BERTH_CHECK(jwk != nullptr);
    cjose_err error{};
    if (!id_.empty()) BERTH_CHECK(cjose_jwk_set_kid(jwk, id_.c_str(), id_.size(), &error));
  }

  std::string id_;
  std::unique_ptr<cjose_jwk_t, Freer> jwk_;
};

class TestClock : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(1'800'000'000) + passed; }
  absl::Duration Steady() override { return absl::Hours(1) + passed; }
  absl::Duration passed = absl::ZeroDuration();
};

// An issuer at https://sso.example, as its answers to GET.
struct FakeIssuer {
  std::string name = "https://sso.example";
  std::vector<std::string> keys;  // JSON
  std::string document;           // instead of the right one
  bool down = false;
  int fetches = 0;  // of the keys

  Fetch Fetcher() {
    return [this](const std::string& url, size_t most_bytes) -> absl::StatusOr<std::string> {
      if (down) return absl::UnavailableError("down");
      std::string text;
      if (url == "https://sso.example/.well-known/openid-configuration") {
        text = !document.empty()
                   ? document
                   : absl::StrCat(R"({"issuer":")", name,
                                  R"(","jwks_uri":"https://sso.example/keys","more":[1]})");
      } else if (url == "https://sso.example/keys") {
        ++fetches;
        text = absl::StrCat(R"({"keys":[)", absl::StrJoin(keys, ","), "]}");
      } else {
        return absl::UnavailableError(absl::StrCat("no such page: ", url));
      }
      if (text.size() > most_bytes) return absl::UnavailableError("too large");
      return text;
    };
  }
};

}  // namespace berth::oidc

#endif  // BERTH_TESTS_UNIT_AUTHD_SIGNED_TOKENS_H_
