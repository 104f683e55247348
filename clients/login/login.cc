#include "clients/login/login.h"

#include <utility>

#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

constexpr absl::Duration kAgain = absl::Seconds(2);

}  // namespace

absl::StatusOr<NewLogin> ExchangeToken(const AuthdServer& server, const std::string& token,
                                       const TlsFiles& files, absl::Duration patience,
                                       const Ask& ask, const ClientEnvironment& environment) {
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  auth::v1::TokenOrder order;
  order.set_token(token);
  order.set_request(made->request);
  const absl::Duration end = environment.clock->Steady() + patience;
  bool again = false;
  const auto exchange = [&] {
    return OrderCertificate(server, kCertificatePath, order, "", ask, &again);
  };
  absl::StatusOr<auth::v1::CertificateAnswer> answer = exchange();
  while (again && environment.clock->Steady() + kAgain < end) {
    environment.sleeper->Sleep(kAgain);
    answer = exchange();
  }
  if (!answer.ok()) return answer.status();
  absl::StatusOr<CertificateNames> names = ReadCertificateNames(answer->certificate());
  if (!names.ok()) {
    return AuthdError(absl::StatusCode::kUnavailable, server, names.status().message());
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

}  // namespace berth
