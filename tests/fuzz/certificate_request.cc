// Requests for certificates (PKCS #10), as issuing gets them. The first byte chooses:
//   d  DER
//   p  PEM
//   s  DER that is signed again with a key of ours, so that a changed request is still one
//   n  what an agent sends to join: a NodeOrder in JSON
#include <google/protobuf/util/json_util.h>
#include <openssl/pem.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/authd/issuing.h"
#include "clients/authd/node_door.h"
#include "core/base/check.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"
#include "support/pki/issuer.h"
#include "support/pki/openssl.h"
#include "tests/fuzz/pem.h"
#include "tests/fuzz/target.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::fuzz {
namespace {

constexpr char kRequestType[] = "CERTIFICATE REQUEST";

const NewAuthority& Ours() {
  static const NewAuthority made = MakeAuthority("fuzz", absl::Hours(240), absl::Now()).value();
  return made;
}

pki::OwnedX509 Parsed(const std::string& pem) {
  return pki::OwnedX509(PEM_read_bio_X509(pki::Reading(pem).get(), nullptr, nullptr, nullptr));
}

// What a certificate says is what the issuer was told, whatever was in the request.
void CheckCertificate(const std::string& pem, const SpiffeId& id,
                      const std::vector<std::string>& groups) {
  BERTH_CHECK(CheckIssuedTo(pem, Ours().certificate, absl::Now()).ok());
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(pem);
  BERTH_CHECK(names.ok());
  BERTH_CHECK(names->common_name == id.name || id.name.size() > 64);
  BERTH_CHECK(names->uris.size() == 1 && names->uris[0] == ToUri(id));
  BERTH_CHECK(names->groups == groups);
  BERTH_CHECK(names->hosts.empty() && names->emails.empty());
  BERTH_CHECK(names->organizational_units.empty());
  const pki::OwnedX509 certificate = Parsed(pem);
  // Constraints, two usages, two key identifiers, the identity; groups.
  BERTH_CHECK(X509_get_ext_count(certificate.get()) == (groups.empty() ? 6 : 7));
  BERTH_CHECK(X509_NAME_entry_count(X509_get_subject_name(certificate.get())) <= 1);
  const EVP_PKEY* key = X509_get0_pubkey(certificate.get());
  BERTH_CHECK(key != nullptr);
  const int type = EVP_PKEY_get_base_id(key);
  BERTH_CHECK(type == EVP_PKEY_EC || type == EVP_PKEY_ED25519 ||
              (type == EVP_PKEY_RSA && EVP_PKEY_get_bits(key) >= 2048));
}

absl::StatusOr<std::string> Issue(absl::string_view request) {
  static const Authority authority =
      Authority::Open(Ours().certificate, Ours().key, absl::Now()).value();
  static const SpiffeId id{"prod", SpiffeId::Kind::kUser, "ada"};
  static const std::vector<std::string> groups = {"ml"};
  absl::StatusOr<std::string> pem =
      authority.Issue(request, id, groups, kCertificateLifetime, absl::Now());
  if (pem.ok()) CheckCertificate(*pem, id, groups);
  return pem;
}

// Names, attributes and the version of the input; our key, and our signature.
void CheckSigned(absl::string_view der) {
  static const pki::OwnedKey key(EVP_EC_gen("P-256"));
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const pki::OwnedRequest request(
      d2i_X509_REQ(nullptr, &bytes, static_cast<long>(der.size())));  // NOLINT(google-runtime-int)
  ERR_clear_error();
  if (request == nullptr || X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0) {
    return ERR_clear_error();
  }
  const pki::OwnedBio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) return ERR_clear_error();
  const std::string text = pki::Written(out.get());
  const absl::StatusOr<std::string> pem = Issue(text);
  if (text.size() > kMaxRequestBytes) return BERTH_CHECK(!pem.ok());
  BERTH_CHECK(pem.ok());
  BERTH_CHECK(EVP_PKEY_eq(X509_get0_pubkey(Parsed(*pem).get()), key.get()) == 1);
}

std::shared_ptr<const CertificateIssuer> NodesIssuer() {
  const TempDirectory directory;
  std::ofstream(directory / "ca.pem") << Ours().certificate;
  std::ofstream(directory / "ca.key") << Ours().key;
  auth::v1::Authd config;
  config.set_servers(directory / "ca.pem");
  config.set_trust_domain("prod");
  config.mutable_nodes()->set_authority(directory / "ca.pem");
  config.mutable_nodes()->set_authority_key(directory / "ca.key");
  return CertificateIssuer::OpenForNodes(config).value();
}

struct Door {
  explicit Door(absl::Status verdict)
      : certifier(
            absl::Hours(24), NodesIssuer(),
            [this, verdict](const v1::AdmitNodeRequest& request) {
              asked = request.node();
              return verdict;
            },
            SystemClock()) {}

  auth::v1::CertificateAnswer Answer(const std::string& body) {
    asked.clear();
    const oidc::HttpsReply reply = certifier.Answer({body, "peer", ""});
    auth::v1::CertificateAnswer answer;
    BERTH_CHECK(google::protobuf::util::JsonStringToMessage(reply.body, &answer).ok());
    BERTH_CHECK((reply.code == 200) == !answer.certificate().empty());
    BERTH_CHECK((reply.code == 200) == answer.error().empty());
    return answer;
  }

  std::string asked;  // the node
  NodeCertifier certifier;
};

void CheckOrder(const std::string& body) {
  static const bool silent = StartLog("error", "").ok();
  static auto* const open = new Door(absl::OkStatus());
  static auto* const closed = new Door(absl::PermissionDeniedError("no"));
  BERTH_CHECK(silent);
  BERTH_CHECK(closed->Answer(body).certificate().empty());
  const auth::v1::CertificateAnswer answer = open->Answer(body);
  if (answer.certificate().empty()) return;
  BERTH_CHECK(!open->asked.empty());
  CheckCertificate(answer.certificate(), {"prod", SpiffeId::Kind::kNode, open->asked}, {});
}

}  // namespace

void FuzzOne(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'd':
      return static_cast<void>(Issue(Pem(kRequestType, rest)));
    case 'p':
      return static_cast<void>(Issue(rest));
    case 's':
      return CheckSigned(rest);
    default:
      return CheckOrder(std::string(rest));
  }
}

}  // namespace berth::fuzz
