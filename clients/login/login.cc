#include "clients/login/login.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/cpp/auth_socket.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

constexpr absl::Duration kAgain = absl::Seconds(2);
constexpr absl::Duration kPatienceOfCall = absl::Seconds(20);  // it may wait for an issuer
constexpr size_t kMaxOfferBytes = size_t{4} << 20;  // 64 issuers, each with its authority

absl::Status LoginError(absl::StatusCode code, const LoginServer& server, absl::string_view what) {
  return absl::Status(code, absl::StrCat(kAuthdErrors, " at ", server.url, ": ", what));
}

absl::StatusOr<HttpsAnswer> Send(const LoginServer& server, const char* path,
                                 const std::string& body, const Ask& ask) {
  HttpsRequest request;
  request.url = absl::StrCat(absl::StripSuffix(server.url, "/"), path);
  if (!IsHttpsUrl(request.url)) {
    return LoginError(absl::StatusCode::kInvalidArgument, server,
                      "not a URL such as https://login.example:7080");
  }
  request.body = body;
  request.content_type = kJsonType;
  request.most_bytes = kMaxOfferBytes;
  request.patience = kPatienceOfCall;
  absl::StatusOr<HttpsAnswer> answer = ask(request, {.file = server.ca_file, .pem = ""});
  if (answer.ok()) return answer;
  return LoginError(answer.status().code(), server, answer.status().message());
}

// One attempt. `again`: berth-authd asks for another one.
absl::StatusOr<auth::v1::CertificateAnswer> Exchange(const LoginServer& server,
                                                     const std::string& body, const Ask& ask,
                                                     bool* again) {
  *again = false;
  const absl::StatusOr<HttpsAnswer> received = Send(server, kCertificatePath, body, ask);
  if (!received.ok()) return received.status();
  auth::v1::CertificateAnswer answer;
  if (!ParseJson(received->body, &answer) ||
      (received->code == 200 && answer.certificate().empty())) {
    return LoginError(absl::StatusCode::kUnavailable, server,
                      absl::StrCat("an answer that is not its own (code ", received->code, ")"));
  }
  if (received->code == 200) return answer;
  *again = answer.retry();
  return LoginError(*again ? absl::StatusCode::kUnavailable : absl::StatusCode::kPermissionDenied,
                    server, answer.error());
}

}  // namespace

absl::StatusOr<auth::v1::LoginOffer> GetLoginOffer(const LoginServer& server, const Ask& ask) {
  const absl::StatusOr<HttpsAnswer> answer = Send(server, kLoginPath, "", ask);
  if (!answer.ok()) return answer.status();
  auth::v1::LoginOffer offer;
  if (answer->code == 200 && ParseJson(answer->body, &offer)) return offer;
  return LoginError(absl::StatusCode::kUnavailable, server,
                    absl::StrCat("an answer that is not its own (code ", answer->code, ")"));
}

absl::StatusOr<NewLogin> ExchangeToken(const LoginServer& server, const std::string& token,
                                       const TlsFiles& files, absl::Duration patience,
                                       const Ask& ask, const ClientEnvironment& environment) {
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  auth::v1::TokenOrder order;
  order.set_token(token);
  order.set_request(made->request);
  std::string body;
  if (!google::protobuf::util::MessageToJsonString(order, &body).ok()) {
    return absl::InvalidArgumentError("the token is not text");
  }
  const absl::Duration end = environment.clock->Steady() + patience;
  bool again = false;
  absl::StatusOr<auth::v1::CertificateAnswer> answer = Exchange(server, body, ask, &again);
  while (again && environment.clock->Steady() + kAgain < end) {
    environment.sleeper->Sleep(kAgain);
    answer = Exchange(server, body, ask, &again);
  }
  if (!answer.ok()) return answer.status();
  absl::StatusOr<CertificateNames> names = ReadCertificateNames(answer->certificate());
  if (!names.ok()) {
    return LoginError(absl::StatusCode::kUnavailable, server, names.status().message());
  }
  if (absl::Status kept =
          KeepCertificate(files, answer->certificate(), made->key, answer->servers());
      !kept.ok()) {
    return kept;
  }
  return NewLogin{.user = std::move(names->common_name),
                  .groups = std::move(names->groups),
                  .end = names->not_after};
}

TlsFiles LoginFiles(const std::string& directory) { return CertificateFiles(directory, "login"); }

}  // namespace berth
