#include "clients/agent/join/node_certificate.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd_client/exchange.h"
#include "clients/cpp/kept_certificate.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"
#include "support/pki/join_token.h"
#include "support/text_file.h"

namespace berth {
namespace {

constexpr char kRequestBegin[] = "-----BEGIN CERTIFICATE REQUEST-----";

std::string RequestFile(const JoinSettings& settings) {
  return settings.directory + "/request.pem";
}

// Of a join that was cut off, or a new one.
absl::StatusOr<CertificateRequest> FirstRequest(const JoinSettings& settings) {
  const std::string kept = ReadTextFile(RequestFile(settings)).value_or("");
  const size_t at = kept.find(kRequestBegin);
  if (at != std::string::npos && at > 0) {
    return CertificateRequest{.key = kept.substr(0, at), .request = kept.substr(at)};
  }
  absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made;
  absl::Status status = KeepSecret(RequestFile(settings), absl::StrCat(made->key, made->request));
  if (!status.ok()) return status;
  return made;
}

AuthdServer ServerOf(const JoinSettings& settings) {
  return {.url = settings.url, .ca_file = settings.ca_file};
}

// "": the certificate is this node's.
std::string WhyNotOf(const CertificateNames& names, const std::string& node) {
  if (names.uris.size() != 1) return "is none of a node";
  const absl::StatusOr<SpiffeId> id = ParseSpiffeId(names.uris[0]);
  if (!id.ok() || id->kind != SpiffeId::Kind::kNode) return "is none of a node";
  return id->name == node ? "" : absl::StrCat("is that of node ", id->name, ", not of ", node);
}

absl::Status Keep(const JoinSettings& settings, const auth::v1::CertificateAnswer& answer,
                  const std::string& key) {
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(answer.certificate());
  const std::string wrong = names.ok() ? WhyNotOf(*names, settings.node) : "cannot be read";
  if (!wrong.empty()) {
    return AuthdError(absl::StatusCode::kUnavailable, ServerOf(settings),
                      absl::StrCat("the certificate that it gave ", wrong));
  }
  absl::Status status = KeepCertificate(NodeCertificateFiles(settings.directory),
                                        answer.certificate(), key, answer.servers());
  if (!status.ok()) return status;
  LogInfo("certificate",
          {{"node", settings.node},
           {"serial", names->serial},
           {"until", absl::FormatTime(absl::RFC3339_sec, names->not_after, absl::UTCTimeZone())}});
  return absl::OkStatus();
}

}  // namespace

TlsFiles NodeCertificateFiles(const std::string& directory) {
  return CertificateFiles(directory, "node");
}

absl::StatusOr<HeldCertificate> HeldNodeCertificate(const JoinSettings& settings, absl::Time now) {
  const TlsFiles files = NodeCertificateFiles(settings.directory);
  const auto none = [&](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate in ", files.certificate, " ", why));
  };
  if (access(files.certificate.c_str(), F_OK) != 0 || access(files.ca.c_str(), F_OK) != 0) {
    return absl::FailedPreconditionError("there is no certificate yet");
  }
  const absl::StatusOr<CertificateNames> names =
      ReadCertificateNames(ReadTextFile(files.certificate).value_or(""));
  if (!names.ok()) return none("cannot be read");
  const std::string wrong = WhyNotOf(*names, settings.node);
  if (!wrong.empty()) return none(wrong);
  if (names->not_after <= now) {
    return none(absl::StrCat(
        "expired at ", absl::FormatTime(absl::RFC3339_sec, names->not_after, absl::UTCTimeZone())));
  }
  return HeldCertificate{
      .issued = names->not_before + kClockSkew, .end = names->not_after, .serial = names->serial};
}

absl::Time RenewalTime(const HeldCertificate& held, double jitter) {
  constexpr double kEarliest = 0.6, kLatest = 2.0 / 3;
  return held.issued + (held.end - held.issued) * (kEarliest + (kLatest - kEarliest) * jitter);
}

absl::Status JoinWithToken(const JoinSettings& settings, const std::string& token, const Ask& ask) {
  absl::Status status = PrepareCertificateDirectory(settings.directory);
  if (!status.ok()) return status;
  const absl::StatusOr<CertificateRequest> request = FirstRequest(settings);
  if (!request.ok()) return request.status();
  auth::v1::NodeOrder order;
  order.set_node(settings.node);
  order.set_token(token);
  order.set_request(request->request);
  const absl::StatusOr<auth::v1::CertificateAnswer> answer =
      OrderCertificate(ServerOf(settings), kNodeCertificatePath, order, "", ask);
  if (answer.ok()) status = Keep(settings, *answer, request->key);
  if (!answer.ok()) status = answer.status();
  // A key for which there is a certificate, or will be none, is not asked for again.
  if (!absl::IsUnavailable(status)) unlink(RequestFile(settings).c_str());
  return status;
}

absl::Status RenewNodeCertificate(const JoinSettings& settings, const Ask& ask) {
  const absl::StatusOr<CertificateRequest> request = MakeCertificateRequest();
  if (!request.ok()) return request.status();
  auth::v1::NodeOrder order;
  order.set_node(settings.node);
  order.set_request(request->request);
  const absl::StatusOr<auth::v1::CertificateAnswer> answer =
      OrderCertificate(ServerOf(settings), kNodeCertificatePath, order,
                       NodeCertificateFiles(settings.directory).certificate, ask);
  return answer.ok() ? Keep(settings, *answer, request->key) : answer.status();
}

absl::StatusOr<std::string> ReadJoinTokenFile(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read the join token in ", path, ": ", std::strerror(errno)));
    }
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text(kMaxJoinTokenBytes + 2, '\0');  // and a line end
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const std::string token(absl::StripAsciiWhitespace(text));
  if (absl::Status status = ReadJoinToken(token).status(); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path == "-" ? "standard input" : path, ": ", status.message()));
  }
  return token;
}

}  // namespace berth
