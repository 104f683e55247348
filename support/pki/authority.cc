#include "support/pki/authority.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/types/span.h"
#include "support/pki/openssl.h"

namespace berth {
namespace {

using pki::OpenSslError;
using pki::OwnedBio;
using pki::OwnedExtension;
using pki::OwnedKey;
using pki::OwnedRequest;
using pki::OwnedX509;

constexpr int kMinRsaBits = 2048;
constexpr size_t kMostSerialBytes = 20;
constexpr size_t kSerialBytes = 16;
constexpr size_t kMaxCommonName = 64;  // RFC 5280, ub-common-name

absl::Status CheckKey(EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
      if (EVP_PKEY_get_bits(key) >= kMinRsaBits) return absl::OkStatus();
      return absl::InvalidArgumentError("an RSA key needs at least 2048 bits");
    case EVP_PKEY_ED25519:
      return absl::OkStatus();
    case EVP_PKEY_EC: {
      std::array<char, 64> curve{};
      size_t size = 0;
      EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &size);
      const int nid = OBJ_txt2nid(curve.data());
      // Nobody verifies a certificate whose key spells its curve out, even if it is one of these.
      int spelled_out = 0;
      EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &spelled_out);
      const bool known = nid == NID_X9_62_prime256v1 || nid == NID_secp384r1;
      if (known && spelled_out == 0) return absl::OkStatus();
      return absl::InvalidArgumentError("a key on a curve needs P-256, P-384 or Ed25519, by name");
    }
    default:
      return absl::InvalidArgumentError("a key is RSA, EC or Ed25519");
  }
}

// The public key of the request, which proves that the sender has the private one.
absl::StatusOr<OwnedKey> KeyOf(absl::string_view request_pem) {
  if (request_pem.size() > kMaxRequestBytes) {
    return absl::InvalidArgumentError("the request for a certificate is too large");
  }
  const OwnedRequest request(
      PEM_read_bio_X509_REQ(pki::Reading(request_pem).get(), nullptr, pki::NoPassword, nullptr));
  if (request == nullptr) return OpenSslError("not a request for a certificate");
  OwnedKey key(X509_REQ_get_pubkey(request.get()));
  if (key == nullptr) return OpenSslError("the request's key");
  if (absl::Status status = CheckKey(key.get()); !status.ok()) return status;
  if (X509_REQ_verify(request.get(), key.get()) != 1) {
    return OpenSslError("the request is not signed with its own key");
  }
  return key;
}

absl::Status Add(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const OwnedExtension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslError(absl::StrCat("extension ", value));
  }
  return absl::OkStatus();
}

// Not through OpenSSL's configuration language, in which a name could contain more than a name.
absl::Status AddUri(X509* certificate, const std::string& uri) {
  // RFC 5280: critical if the subject is empty.
  const bool critical = X509_NAME_entry_count(X509_get_subject_name(certificate)) == 0;
  const pki::OwnedNames names(sk_GENERAL_NAME_new_null());
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_IA5STRING* text = ASN1_IA5STRING_new();
  ASN1_STRING_set(text, uri.data(), static_cast<int>(uri.size()));
  GENERAL_NAME_set0_value(name, GEN_URI, text);
  sk_GENERAL_NAME_push(names.get(), name);
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), critical ? 1 : 0, 0) == 1) {
    return absl::OkStatus();
  }
  return OpenSslError("subjectAltName");
}

absl::Status AddGroups(X509* certificate, const std::vector<std::string>& groups) {
  if (groups.empty()) return absl::OkStatus();
  const pki::OwnedSequence sequence(sk_ASN1_TYPE_new_null());
  for (const std::string& group : groups) {
    ASN1_TYPE* entry = ASN1_TYPE_new();
    ASN1_UTF8STRING* text = ASN1_UTF8STRING_new();
    ASN1_STRING_set(text, group.data(), static_cast<int>(group.size()));
    ASN1_TYPE_set(entry, V_ASN1_UTF8STRING, text);
    sk_ASN1_TYPE_push(sequence.get(), entry);
  }
  unsigned char* der = nullptr;
  const int size = i2d_ASN1_SEQUENCE_ANY(sequence.get(), &der);
  if (size < 0) return OpenSslError("groups");
  const pki::OwnedString value(ASN1_OCTET_STRING_new());
  ASN1_STRING_set0(value.get(), der, size);
  const pki::OwnedObject oid(OBJ_txt2obj(kGroupsOid, 1));
  const OwnedExtension extension(X509_EXTENSION_create_by_OBJ(nullptr, oid.get(), 0, value.get()));
  if (extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1) {
    return absl::OkStatus();
  }
  return OpenSslError("groups");
}

absl::Status SetSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return OpenSslError("random serial number");
  }
  random[0] = static_cast<unsigned char>((random[0] & 0x7f) | 0x40);  // positive, of one length
  const pki::OwnedNumber number(BN_bin2bn(random.data(), static_cast<int>(random.size()), nullptr));
  if (number == nullptr ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return OpenSslError("serial number");
  }
  return absl::OkStatus();
}

// A longer name does not fit into the subject; then the subject stays empty.
absl::Status SetNames(X509* certificate, const X509* issuer, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  const bool fits = name.size() <= kMaxCommonName;
  if (fits && X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, bytes,
                                         static_cast<int>(name.size()), -1, 0) != 1) {
    return OpenSslError("common name");
  }
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1) {
    return absl::OkStatus();
  }
  return OpenSslError("issuer");
}

absl::Status SetTimes(X509* certificate, absl::Time begin, absl::Time end) {
  if (ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(begin)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(end)) != nullptr) {
    return absl::OkStatus();
  }
  return OpenSslError("validity");
}

absl::StatusOr<absl::Time> EndOf(const X509* certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return OpenSslError("validity");
  return absl::FromTM(end, absl::UTCTimeZone());
}

using Extensions = absl::Span<const std::pair<int, const char*>>;

absl::Status AddAll(Extensions extensions, X509* certificate, X509* issuer) {
  for (const auto& [nid, value] : extensions) {
    if (absl::Status status = Add(certificate, issuer, nid, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// RFC 5280 has serial numbers of 20 octets at most.
absl::Status SetGivenSerial(X509* certificate, const std::string& serial) {
  BIGNUM* parsed = nullptr;
  const int digits = serial.size() > 2 * kMostSerialBytes ? 0 : BN_hex2bn(&parsed, serial.c_str());
  const pki::OwnedNumber number(parsed);
  const bool positive = digits > 0 && !BN_is_zero(number.get()) && !BN_is_negative(number.get());
  if (!positive || digits != static_cast<int>(serial.size())) {
    return absl::InvalidArgumentError("not a serial number in hexadecimal digits");
  }
  if (BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return OpenSslError("serial number");
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedX509> NewCertificate(EVP_PKEY* key) {
  OwnedX509 certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), 2) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return OpenSslError("certificate");
  }
  if (absl::Status status = SetSerial(certificate.get()); !status.ok()) return status;
  return certificate;
}

absl::Status SetExtensions(X509* certificate, X509* issuer, const SpiffeId& id,
                           const std::vector<std::string>& groups) {
  const std::pair<int, const char*> fixed[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                               {NID_key_usage, "critical,digitalSignature"},
                                               {NID_ext_key_usage, "clientAuth"},
                                               {NID_subject_key_identifier, "hash"}};
  absl::Status status = AddAll(fixed, certificate, issuer);
  if (status.ok() && X509_get0_subject_key_id(issuer) != nullptr) {
    status = Add(certificate, issuer, NID_authority_key_identifier, "keyid");
  }
  if (status.ok()) status = AddUri(certificate, ToUri(id));
  return status.ok() ? AddGroups(certificate, groups) : status;
}

// What ReadCertificateNames would refuse is not issued.
absl::Status CheckNames(const SpiffeId& id, const std::vector<std::string>& groups) {
  const absl::StatusOr<SpiffeId> again = ParseSpiffeId(ToUri(id));
  if (!again.ok() || !(*again == id) || ToUri(id).size() > kMaxUriBytes) {
    return absl::InvalidArgumentError("a certificate cannot carry this name");
  }
  if (groups.size() <= kMaxCertificateGroups) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a certificate carries at most ", kMaxCertificateGroups, " groups"));
}

const EVP_MD* DigestFor(const EVP_PKEY* key) {
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
}

absl::StatusOr<std::string> PemOf(X509* certificate) {
  const OwnedBio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) return OpenSslError("certificate");
  return pki::Written(out.get());
}

absl::StatusOr<std::string> PemOf(EVP_PKEY* key) {
  const OwnedBio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("private key");
  }
  return pki::Written(out.get());
}

absl::StatusOr<std::string> Signed(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, DigestFor(key)) <= 0) return OpenSslError("signature");
  return PemOf(certificate);
}

}  // namespace

absl::StatusOr<CertificateRequest> MakeCertificateRequest() {
  const OwnedKey key(EVP_EC_gen("P-256"));
  const OwnedRequest request(X509_REQ_new());
  if (key == nullptr || request == nullptr || X509_REQ_set_version(request.get(), 0) != 1 ||
      X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0) {
    return OpenSslError("request for a certificate");
  }
  absl::StatusOr<std::string> key_text = PemOf(key.get());
  if (!key_text.ok()) return key_text.status();
  const OwnedBio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) {
    return OpenSslError("request for a certificate");
  }
  return CertificateRequest{.key = *std::move(key_text), .request = pki::Written(out.get())};
}

absl::StatusOr<NewAuthority> MakeAuthority(const std::string& name, absl::Duration lifetime,
                                           absl::Time now) {
  if (name.empty() || name.size() > kMaxCommonName) {
    return absl::InvalidArgumentError("the name of an authority has 1 to 64 bytes");
  }
  const OwnedKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("private key");
  const absl::StatusOr<OwnedX509> made = NewCertificate(key.get());
  if (!made.ok()) return made.status();
  X509* const certificate = made->get();
  const std::pair<int, const char*> extensions[] = {
      {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
      {NID_key_usage, "critical,keyCertSign,cRLSign"},
      {NID_subject_key_identifier, "hash"}};
  absl::Status status = SetNames(certificate, certificate, name);
  if (status.ok()) status = SetTimes(certificate, now - kClockSkew, now + lifetime);
  if (status.ok()) status = AddAll(extensions, certificate, certificate);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> text = Signed(certificate, key.get());
  if (!text.ok()) return text.status();
  absl::StatusOr<std::string> key_text = PemOf(key.get());
  if (!key_text.ok()) return key_text.status();
  return NewAuthority{.certificate = *std::move(text), .key = *std::move(key_text)};
}

struct Authority::Parts {
  OwnedX509 certificate;
  OwnedKey key;
};

Authority::Authority(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

absl::StatusOr<Authority> Authority::Open(absl::string_view certificate, absl::string_view key,
                                          absl::Time now) {
  auto parts = std::make_unique<Parts>();
  parts->certificate.reset(
      PEM_read_bio_X509(pki::Reading(certificate).get(), nullptr, pki::NoPassword, nullptr));
  if (parts->certificate == nullptr) return OpenSslError("the authority: not a certificate");
  parts->key.reset(
      PEM_read_bio_PrivateKey(pki::Reading(key).get(), nullptr, pki::NoPassword, nullptr));
  if (parts->key == nullptr) {
    return OpenSslError("the authority: not a private key, or one with a password");
  }
  if (X509_check_private_key(parts->certificate.get(), parts->key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the authority: not the key of this certificate");
  }
  if (X509_check_ca(parts->certificate.get()) != 1) {
    return absl::InvalidArgumentError("the authority's certificate may not sign others");
  }
  std::time_t when = absl::ToTimeT(now);
  if (X509_cmp_time(X509_get0_notAfter(parts->certificate.get()), &when) <= 0) {
    return absl::InvalidArgumentError("the authority's certificate has expired");
  }
  return Authority(std::move(parts));
}

absl::StatusOr<std::string> Authority::Issue(absl::string_view request, const SpiffeId& id,
                                             const std::vector<std::string>& groups,
                                             absl::Duration lifetime, absl::Time now,
                                             const std::string& serial) const {
  if (absl::Status status = CheckNames(id, groups); !status.ok()) return status;
  const absl::StatusOr<OwnedKey> key = KeyOf(request);
  if (!key.ok()) return key.status();
  X509* const issuer = parts_->certificate.get();
  const absl::StatusOr<absl::Time> last = EndOf(issuer);
  if (!last.ok()) return last.status();
  if (*last <= now) {
    return absl::FailedPreconditionError("the authority's certificate has expired");
  }
  const absl::StatusOr<OwnedX509> made = NewCertificate(key->get());
  if (!made.ok()) return made.status();
  X509* const certificate = made->get();
  absl::Status status = serial.empty() ? absl::OkStatus() : SetGivenSerial(certificate, serial);
  if (status.ok()) status = SetNames(certificate, issuer, id.name);
  if (status.ok()) {
    status = SetTimes(certificate, now - kClockSkew, std::min(now + lifetime, *last));
  }
  if (status.ok()) status = SetExtensions(certificate, issuer, id, groups);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> pem = Signed(certificate, parts_->key.get());
  if (!pem.ok()) return pem;
  if (pem->size() > kMaxCertificateBytes) {
    return absl::InvalidArgumentError("these groups do not fit into a certificate: too many bytes");
  }
  // What could not be read again would be refused at every connection.
  const absl::StatusOr<CertificateNames> names = ReadCertificateNames(*pem);
  if (!names.ok()) return names.status();
  return pem;
}

}  // namespace berth
