#include "clients/login/device_flow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "berth/auth/v1/issuer.pb.h"

namespace berth {
namespace {

using auth::v1::DeviceAuthorization;
using auth::v1::DeviceToken;
using auth::v1::IssuerDocument;

constexpr char kGrant[] = "urn:ietf:params:oauth:grant-type:device_code";
constexpr absl::Duration kInterval = absl::Seconds(5);  // RFC 8628, 3.2 and 3.5
constexpr absl::Duration kShortestInterval = absl::Seconds(1);
constexpr absl::Duration kLongestInterval = absl::Minutes(1);
constexpr size_t kMaxCodeBytes = 64;
constexpr size_t kMaxAnswerBytes = size_t{256} << 10;

class DeviceFlow {
 public:
  DeviceFlow(const auth::v1::LoginOffer::Issuer& issuer, const Ask& ask,
             const ClientEnvironment& environment)
      : issuer_(issuer),
        ask_(ask),
        environment_(environment),
        trust_{.file = "", .pem = issuer.authority()} {}

  absl::Status Begin() {
    const std::string url =
        absl::StrCat(absl::StripSuffix(issuer_.issuer(), "/"), "/.well-known/openid-configuration");
    const absl::StatusOr<HttpsAnswer> answer = Send(url, "");
    if (!answer.ok()) return answer.status();
    if (answer->code != 200 || !ParseJson(answer->body, &document_) ||
        document_.issuer() != issuer_.issuer()) {
      return Error(absl::StatusCode::kUnavailable,
                   absl::StrCat("its document is not at ", url, " (code ", answer->code, ")"));
    }
    if (document_.device_authorization_endpoint().empty()) {
      return Error(absl::StatusCode::kFailedPrecondition,
                   "it does not offer the device flow (RFC 8628); use --token-file");
    }
    return Authorize();
  }

  DevicePrompt Prompt() const {
    return {.page = device_.verification_uri(),
            .code = device_.user_code(),
            .complete_page = device_.verification_uri_complete(),
            .end = environment_.clock->Now() + valid_};
  }

  absl::StatusOr<std::string> Await() {
    const absl::Duration end = environment_.clock->Steady() + valid_;
    while (environment_.clock->Steady() < end) {
      environment_.sleeper->Sleep(interval_);
      absl::StatusOr<std::string> token = Poll();
      if (!token.ok() || !token->empty()) return token;
    }
    return Expired();
  }

 private:
  absl::Status Error(absl::StatusCode code, absl::string_view what) const {
    return absl::Status(code, absl::StrCat("the issuer ", issuer_.issuer(), ": ", what));
  }
  absl::Status Expired() const {
    return Error(absl::StatusCode::kDeadlineExceeded,
                 "the code was not confirmed in time; run berth login again");
  }

  // With a form: POST.
  absl::StatusOr<HttpsAnswer> Send(const std::string& url, const std::string& form) const {
    HttpsRequest request;
    request.url = url;
    request.body = form;
    request.content_type = kFormType;
    request.most_bytes = kMaxAnswerBytes;
    absl::StatusOr<HttpsAnswer> answer = ask_(request, trust_);
    if (answer.ok()) return answer;
    return Error(absl::StatusCode::kUnavailable, answer.status().message());
  }

  absl::Status Authorize() {
    const absl::StatusOr<HttpsAnswer> answer =
        Send(document_.device_authorization_endpoint(),
             FormOf({{"client_id", issuer_.client_id()},
                     {"scope", absl::StrJoin(issuer_.scopes(), " ")}}));
    if (!answer.ok()) return answer.status();
    if (answer->code != 200) return Refusal(*answer, "it refuses to begin a login");
    const bool parsed = ParseJson(answer->body, &device_);
    const bool code_ok =
        !device_.user_code().empty() && device_.user_code().size() <= kMaxCodeBytes;
    if (!parsed || device_.device_code().empty() || !code_ok ||
        !IsHttpsUrl(device_.verification_uri())) {
      return Error(absl::StatusCode::kUnavailable,
                   "its answer has no code or no https page for it");
    }
    if (!IsHttpsUrl(device_.verification_uri_complete())) device_.clear_verification_uri_complete();
    // Larger numbers than any limit would overflow.
    const auto seconds = [](int64_t number) {
      return absl::Seconds(std::clamp<int64_t>(number, 0, 1'000'000));
    };
    valid_ = std::min(seconds(device_.expires_in()), kLongestCode);
    interval_ = device_.interval() == 0 ? kInterval : seconds(device_.interval());
    interval_ = std::clamp(interval_, kShortestInterval, kLongestInterval);
    return absl::OkStatus();
  }

  absl::Status Refusal(const HttpsAnswer& answer, absl::string_view what) const {
    DeviceToken refusal;
    if (!ParseJson(answer.body, &refusal) || refusal.error().empty()) {
      return Error(absl::StatusCode::kUnavailable, absl::StrCat(what, " (code ", answer.code, ")"));
    }
    return Error(
        absl::StatusCode::kPermissionDenied,
        absl::StrCat(what, ": ", refusal.error(), refusal.error_description().empty() ? "" : ": ",
                     refusal.error_description()));
  }

  // "": not yet.
  absl::StatusOr<std::string> Poll() {
    const absl::StatusOr<HttpsAnswer> answer =
        Send(document_.token_endpoint(), FormOf({{"grant_type", kGrant},
                                                 {"device_code", device_.device_code()},
                                                 {"client_id", issuer_.client_id()}}));
    if (!answer.ok()) {  // RFC 8628, 3.5: after a failed connection less often
      interval_ = std::min(2 * interval_, kLongestInterval);
      return "";
    }
    DeviceToken token;
    const bool parsed = ParseJson(answer->body, &token);
    if (parsed && answer->code == 200) return Received(token);
    if (token.error() == "authorization_pending") return "";
    if (token.error() == "slow_down") {
      interval_ = std::min(interval_ + kInterval, kLongestInterval);
      return "";
    }
    if (token.error() == "expired_token") return Expired();
    if (token.error() == "access_denied") {
      return Error(absl::StatusCode::kPermissionDenied, "the login was refused there");
    }
    return Refusal(*answer, "it gives no token");
  }

  absl::StatusOr<std::string> Received(const DeviceToken& token) const {
    if (!token.id_token().empty()) return token.id_token();
    return Error(absl::StatusCode::kFailedPrecondition,
                 "its answer has no ID token; the scopes must contain openid");
  }

  const auth::v1::LoginOffer::Issuer& issuer_;
  const Ask& ask_;
  const ClientEnvironment& environment_;
  const HttpsTrust trust_;
  IssuerDocument document_;
  DeviceAuthorization device_;
  absl::Duration valid_;
  absl::Duration interval_;
};

}  // namespace

absl::StatusOr<std::string> TokenByDeviceFlow(
    const auth::v1::LoginOffer::Issuer& issuer, const Ask& ask,
    const ClientEnvironment& environment, const std::function<void(const DevicePrompt&)>& show) {
  DeviceFlow flow(issuer, ask, environment);
  if (absl::Status status = flow.Begin(); !status.ok()) return status;
  show(flow.Prompt());
  return flow.Await();
}

}  // namespace berth
