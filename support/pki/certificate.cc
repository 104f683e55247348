#include "support/pki/certificate.h"

#include <openssl/pem.h>
#include <utf8.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/pki/openssl.h"
#include "support/utf8.h"

namespace berth {
namespace {

using pki::OpenSslError;

constexpr absl::string_view kScheme = "spiffe://";

absl::Status BadName(absl::string_view what, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("the certificate's ", what, " ", problem));
}

absl::Status CheckName(absl::string_view what, absl::string_view name,
                       size_t most_bytes = kMaxNameBytes) {
  if (name.size() > most_bytes) return BadName(what, "is too long");
  if (name.find('\0') != absl::string_view::npos) return BadName(what, "contains NUL");
  if (FirstBadUtf8(name) != absl::string_view::npos) return BadName(what, "is not UTF-8");
  return absl::OkStatus();
}

// The text in UTF-8, whatever the string's type.
absl::StatusOr<std::string> TextOf(absl::string_view what, const ASN1_STRING* string,
                                   size_t most_bytes) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, string);
  if (size < 0) return OpenSslError(absl::StrCat("the certificate's ", what));
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  if (absl::Status status = CheckName(what, text, most_bytes); !status.ok()) return status;
  return text;
}

absl::Status AddName(absl::string_view what, const ASN1_STRING* string, size_t most,
                     std::vector<std::string>* names, size_t most_bytes = kMaxNameBytes) {
  if (names->size() >= most) return BadName(what, absl::StrCat("has more than ", most, " values"));
  absl::StatusOr<std::string> text = TextOf(what, string, most_bytes);
  if (!text.ok()) return text.status();
  names->push_back(*std::move(text));
  return absl::OkStatus();
}

absl::Status ReadSubject(const X509* certificate, CertificateNames* names) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  std::vector<std::string> common_names;
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(entry);
    absl::Status status;
    if (kind == NID_commonName) status = AddName("common name", value, kMaxNames, &common_names);
    if (kind == NID_organizationalUnitName) {
      status = AddName("organizational unit", value, kMaxNames, &names->organizational_units);
    }
    if (!status.ok()) return status;
  }
  if (common_names.size() == 1) names->common_name = std::move(common_names[0]);
  return absl::OkStatus();
}

absl::Status ReadAlternativeNames(const X509* certificate, CertificateNames* names) {
  int critical = 0;
  const pki::OwnedNames found(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, &critical, nullptr)));
  if (found == nullptr) {
    if (critical == -1) return absl::OkStatus();  // there is none
    return OpenSslError("the certificate's subjectAltName");
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    int kind = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(found.get(), i), &kind);
    const auto* string = static_cast<const ASN1_STRING*>(value);
    absl::Status status;
    if (kind == GEN_URI) status = AddName("URI", string, kMaxNames, &names->uris, kMaxUriBytes);
    if (kind == GEN_EMAIL) status = AddName("e-mail address", string, kMaxNames, &names->emails);
    if (kind == GEN_DNS) status = AddName("host name", string, kMaxNames, &names->hosts);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadGroupList(const ASN1_OCTET_STRING* value, CertificateNames* names) {
  const unsigned char* at = ASN1_STRING_get0_data(value);
  const unsigned char* const end = at + ASN1_STRING_length(value);
  const pki::OwnedSequence groups(d2i_ASN1_SEQUENCE_ANY(nullptr, &at, end - at));
  if (groups == nullptr || at != end) return OpenSslError("the certificate's list of groups");
  for (int i = 0; i < sk_ASN1_TYPE_num(groups.get()); ++i) {
    const ASN1_TYPE* group = sk_ASN1_TYPE_value(groups.get(), i);
    if (ASN1_TYPE_get(group) != V_ASN1_UTF8STRING) {
      return BadName("list of groups", "contains something else");
    }
    absl::Status status =
        AddName("list of groups", group->value.utf8string, kMaxCertificateGroups, &names->groups);
    if (!status.ok()) return status;
    if (names->groups.back().empty()) return BadName("list of groups", "has an empty name");
  }
  return absl::OkStatus();
}

absl::Status ReadGroups(const X509* certificate, CertificateNames* names) {
  const pki::OwnedObject oid(OBJ_txt2obj(kGroupsOid, 1));
  const int at = X509_get_ext_by_OBJ(certificate, oid.get(), -1);
  if (at < 0) return absl::OkStatus();
  if (X509_get_ext_by_OBJ(certificate, oid.get(), at) >= 0) {
    return BadName("list of groups", "is there twice");
  }
  return ReadGroupList(X509_EXTENSION_get_data(X509_get_ext(certificate, at)), names);
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return OpenSslError("the certificate's validity");
  return absl::FromTM(utc, absl::UTCTimeZone());
}

absl::Status ReadRest(const X509* certificate, CertificateNames* names) {
  const pki::OwnedNumber serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (serial == nullptr) return OpenSslError("the certificate's serial number");
  char* digits = BN_bn2hex(serial.get());
  if (digits == nullptr) return OpenSslError("the certificate's serial number");
  names->serial = absl::AsciiStrToLower(digits);
  OPENSSL_free(digits);
  names->serial.erase(0, std::min(names->serial.find_first_not_of('0'), names->serial.size() - 1));
  const absl::StatusOr<absl::Time> begin = TimeOf(X509_get0_notBefore(certificate));
  if (!begin.ok()) return begin.status();
  const absl::StatusOr<absl::Time> end = TimeOf(X509_get0_notAfter(certificate));
  if (!end.ok()) return end.status();
  names->not_before = *begin;
  names->not_after = *end;
  return absl::OkStatus();
}

// RFC 3986, unreserved: what ToUri leaves as it is.
bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c);
}

std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      encoded.push_back(c);
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return encoded;
}

std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3 || !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      return std::nullopt;
    }
    decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
    i += 2;
  }
  return decoded;
}

bool IsTrustDomain(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) ||
                  absl::StrContains("-._", c);
         });
}

absl::string_view SegmentOf(SpiffeId::Kind kind) {
  return kind == SpiffeId::Kind::kUser ? "user" : "node";
}

}  // namespace

bool CanBeInCertificate(absl::string_view name) {
  return !name.empty() && CheckName("name", name).ok();
}

absl::StatusOr<CertificateNames> ReadCertificateNames(absl::string_view pem) {
  if (pem.size() > kMaxCertificateBytes) {
    return absl::InvalidArgumentError("the certificate is too large");
  }
  const pki::OwnedX509 certificate(
      PEM_read_bio_X509(pki::Reading(pem).get(), nullptr, pki::NoPassword, nullptr));
  if (certificate == nullptr) return OpenSslError("not a certificate");
  CertificateNames names;
  absl::Status status = ReadSubject(certificate.get(), &names);
  if (status.ok()) status = ReadAlternativeNames(certificate.get(), &names);
  if (status.ok()) status = ReadGroups(certificate.get(), &names);
  if (status.ok()) status = ReadRest(certificate.get(), &names);
  if (!status.ok()) return status;
  return names;
}

std::string ToUri(const SpiffeId& id) {
  return absl::StrCat(kScheme, id.trust_domain, "/", SegmentOf(id.kind), "/",
                      PercentEncoded(id.name));
}

absl::StatusOr<SpiffeId> ParseSpiffeId(absl::string_view uri) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError(
        "not an identity of the form spiffe://TRUST-DOMAIN/user/NAME or /node/NAME");
  };
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) return refuse();
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 3 || !IsTrustDomain(parts[0])) return refuse();
  SpiffeId id{.trust_domain = std::string(parts[0]), .kind = SpiffeId::Kind::kUser, .name = {}};
  if (parts[1] == SegmentOf(SpiffeId::Kind::kNode)) id.kind = SpiffeId::Kind::kNode;
  std::optional<std::string> name = PercentDecoded(parts[2]);
  if (!name.has_value() || name->empty() || !CheckName("name", *name).ok()) return refuse();
  id.name = *std::move(name);
  if (ToUri(id) != uri) return refuse();
  return id;
}

}  // namespace berth
