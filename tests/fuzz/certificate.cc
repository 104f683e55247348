// Certificates and requests for them, in DER, and identities: the first byte chooses which.
#include "support/pki/certificate.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "support/pki/authority.h"
#include "support/utf8.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

std::string Pem(absl::string_view type, absl::string_view der) {
  std::string text = absl::StrCat("-----BEGIN ", type, "-----\n");
  const std::string base64 = absl::Base64Escape(der);
  for (size_t at = 0; at < base64.size(); at += 64) {
    absl::StrAppend(&text, base64.substr(at, 64), "\n");
  }
  return absl::StrCat(text, "-----END ", type, "-----\n");
}

void CheckName(const std::string& name, size_t most_bytes = kMaxNameBytes) {
  BERTH_CHECK(name.size() <= most_bytes);
  BERTH_CHECK(name.find('\0') == std::string::npos);
  BERTH_CHECK(FirstBadUtf8(name) == absl::string_view::npos);
}

void CheckCertificate(absl::string_view der) {
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(Pem("CERTIFICATE", der));
  if (!names.ok()) return;
  CheckName(names->common_name);
  for (const auto* list : {&names->organizational_units, &names->uris, &names->emails,
                           &names->hosts, &names->groups}) {
    BERTH_CHECK(list->size() <= (list == &names->groups ? kMaxCertificateGroups : kMaxNames));
    for (const std::string& name : *list) {
      CheckName(name, list == &names->uris ? kMaxUriBytes : kMaxNameBytes);
    }
  }
  for (const std::string& group : names->groups) BERTH_CHECK(!group.empty());
  BERTH_CHECK(!names->serial.empty());
}

void CheckIdentity(absl::string_view text) {
  const absl::StatusOr<SpiffeId> id = ParseSpiffeId(text);
  if (!id.ok()) return;
  CheckName(id->name);
  BERTH_CHECK(!id->name.empty() && !id->trust_domain.empty());
  BERTH_CHECK(ToUri(*id) == text);
}

// Made once; the requests that it gets are the input.
const Authority& TestAuthority() {
  static const Authority authority = [] {
    const NewAuthority made = MakeAuthority("fuzz", absl::Hours(240), absl::Now()).value();
    return Authority::Open(made.certificate, made.key, absl::Now()).value();
  }();
  return authority;
}

void CheckRequest(absl::string_view der) {
  const SpiffeId id{"prod", SpiffeId::Kind::kUser, "ada"};
  const absl::StatusOr<std::string> pem = TestAuthority().Issue(
      Pem("CERTIFICATE REQUEST", der), id, {"ml"}, kCertificateLifetime, absl::Now());
  if (!pem.ok()) return;
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(*pem);
  BERTH_CHECK(names.ok());
  BERTH_CHECK(names->common_name == "ada" && names->uris.size() == 1 &&
              names->uris[0] == ToUri(id));
  BERTH_CHECK(names->groups.size() == 1 && names->hosts.empty() && names->emails.empty());
}

}  // namespace

void FuzzOne(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'c':
      return CheckCertificate(rest);
    case 'r':
      return CheckRequest(rest);
    default:
      return CheckIdentity(rest);
  }
}

}  // namespace berth::fuzz
