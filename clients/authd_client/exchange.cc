#include "clients/authd_client/exchange.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/pki/auth_protocol.h"

namespace berth {
namespace {

constexpr absl::Duration kPatienceOfCall = absl::Seconds(20);  // it may wait for an issuer
constexpr size_t kMaxOfferBytes = size_t{4} << 20;  // 64 issuers, each with its authority

// A GET without a body.
absl::StatusOr<HttpsAnswer> Send(const AuthdServer& server, const char* path, HttpsRequest request,
                                 const Ask& ask) {
  request.url = absl::StrCat(absl::StripSuffix(server.url, "/"), path);
  if (!IsHttpsUrl(request.url)) {
    return AuthdError(absl::StatusCode::kInvalidArgument, server,
                      "not a URL such as https://login.example:7080");
  }
  request.content_type = kJsonType;
  request.most_bytes = kMaxOfferBytes;
  request.patience = kPatienceOfCall;
  absl::StatusOr<HttpsAnswer> answer = ask(request, {.file = server.ca_file, .pem = ""});
  if (answer.ok()) return answer;
  return AuthdError(answer.status().code(), server, answer.status().message());
}

absl::Status NotItsOwn(const AuthdServer& server, const HttpsAnswer& answer) {
  return AuthdError(absl::StatusCode::kUnavailable, server,
                    absl::StrCat("an answer that is not its own (code ", answer.code, ")"));
}

}  // namespace

absl::Status AuthdError(absl::StatusCode code, const AuthdServer& server, absl::string_view what) {
  return absl::Status(code, absl::StrCat("berth-authd at ", server.url, ": ", what));
}

absl::StatusOr<auth::v1::LoginOffer> GetLoginOffer(const AuthdServer& server, const Ask& ask) {
  const absl::StatusOr<HttpsAnswer> answer = Send(server, kLoginPath, {}, ask);
  if (!answer.ok()) return answer.status();
  auth::v1::LoginOffer offer;
  if (answer->code == 200 && ParseJson(answer->body, &offer)) return offer;
  return NotItsOwn(server, *answer);
}

absl::StatusOr<auth::v1::CertificateAnswer> OrderCertificate(const AuthdServer& server,
                                                             const char* path,
                                                             const google::protobuf::Message& order,
                                                             const std::string& client_file,
                                                             const Ask& ask, bool* again) {
  if (again != nullptr) *again = false;
  HttpsRequest request;
  request.client_file = client_file;
  if (!google::protobuf::util::MessageToJsonString(order, &request.body).ok()) {
    return absl::InvalidArgumentError("the request for a certificate is not text");
  }
  const absl::StatusOr<HttpsAnswer> received = Send(server, path, std::move(request), ask);
  if (!received.ok()) return received.status();
  auth::v1::CertificateAnswer answer;
  if (!ParseJson(received->body, &answer)) return NotItsOwn(server, *received);
  if (received->code == 200) {
    const bool complete = !answer.certificate().empty() && !answer.servers().empty();
    if (complete) return answer;
    return NotItsOwn(server, *received);
  }
  if (answer.error().empty()) return NotItsOwn(server, *received);
  if (again != nullptr) *again = answer.retry();
  return AuthdError(
      answer.retry() ? absl::StatusCode::kUnavailable : absl::StatusCode::kPermissionDenied, server,
      answer.error());
}

}  // namespace berth
