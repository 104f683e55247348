// Certificates in DER, and identities: the first byte chooses which.
#include "support/pki/certificate.h"

#include <string>

#include "core/base/check.h"
#include "support/utf8.h"
#include "tests/fuzz/pem.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

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

}  // namespace

void FuzzOne(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view rest = input.substr(1);
  if (input[0] == 'c') return CheckCertificate(rest);
  CheckIdentity(rest);
}

}  // namespace berth::fuzz
