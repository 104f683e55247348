#include "support/pki/issuer.h"

#include <openssl/pem.h>

#include <utility>
#include <vector>

#include "support/pki/openssl.h"

namespace berth {
namespace {

using pki::OpenSslError;
using pki::Owned;
using pki::OwnedBio;
using pki::OwnedX509;

using Certificates = std::vector<OwnedX509>;
using OwnedStore = Owned<X509_STORE, X509_STORE_free>;
using OwnedPath = Owned<X509_STORE_CTX, X509_STORE_CTX_free>;
inline void FreeStack(STACK_OF(X509) * stack) { sk_X509_free(stack); }
using OwnedStack = Owned<STACK_OF(X509), FreeStack>;

absl::StatusOr<Certificates> ReadAll(absl::string_view pem) {
  Certificates certificates;
  const OwnedBio bio = pki::Reading(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, pki::NoPassword, nullptr)) {
    certificates.emplace_back(next);
  }
  // The end of the text is an error of its own.
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!at_end) return OpenSslError("a certificate");
  ERR_clear_error();
  return certificates;
}

bool HasKeyOf(X509* certificate, const Certificates& others) {
  EVP_PKEY* key = X509_get0_pubkey(certificate);
  for (const OwnedX509& other : others) {
    if (key != nullptr && EVP_PKEY_eq(key, X509_get0_pubkey(other.get())) == 1) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> IsIssuedThrough(absl::string_view certificate, absl::string_view presented,
                                     absl::string_view authorities, absl::string_view through) {
  const absl::StatusOr<Certificates> leaf = ReadAll(certificate);
  const absl::StatusOr<Certificates> sent = ReadAll(presented);
  const absl::StatusOr<Certificates> roots = ReadAll(authorities);
  const absl::StatusOr<Certificates> keys = ReadAll(through);
  for (const auto* list : {&leaf, &sent, &roots, &keys}) {
    if (!list->ok()) return list->status();
  }
  if (leaf->empty()) return absl::InvalidArgumentError("there is no certificate");
  const OwnedStore store(X509_STORE_new());
  for (const OwnedX509& root : *roots) X509_STORE_add_cert(store.get(), root.get());
  const OwnedStack untrusted(sk_X509_new_null());
  for (const OwnedX509& one : *sent) sk_X509_push(untrusted.get(), one.get());
  const OwnedPath path(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(path.get(), store.get(), leaf->front().get(), untrusted.get()) != 1) {
    return OpenSslError("the certificate's path");
  }
  X509_STORE_CTX_set_flags(path.get(), X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(path.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(path.get());
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate's path: ", X509_verify_cert_error_string(error)));
  }
  const STACK_OF(X509)* found = X509_STORE_CTX_get0_chain(path.get());
  for (int i = 1; i < sk_X509_num(found); ++i) {
    if (HasKeyOf(sk_X509_value(found, i), *keys)) return true;
  }
  return false;
}

absl::Status CheckIssuedTo(absl::string_view certificate, absl::string_view authority,
                           absl::Time now) {
  const absl::StatusOr<Certificates> sent = ReadAll(certificate);
  const absl::StatusOr<Certificates> roots = ReadAll(authority);
  for (const auto* list : {&sent, &roots}) {
    if (!list->ok()) return list->status();
  }
  if (sent->empty() || roots->empty()) {
    return absl::InvalidArgumentError("there is no certificate");
  }
  const OwnedStore store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), roots->front().get());
  const OwnedStack untrusted(sk_X509_new_null());
  for (const OwnedX509& one : *sent) sk_X509_push(untrusted.get(), one.get());
  const OwnedPath path(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(path.get(), store.get(), sent->front().get(), untrusted.get()) != 1 ||
      X509_STORE_CTX_set_purpose(path.get(), X509_PURPOSE_SSL_CLIENT) != 1) {
    return OpenSslError("the certificate's path");
  }
  X509_STORE_CTX_set_flags(path.get(), X509_V_FLAG_PARTIAL_CHAIN);  // it need not be a root
  X509_STORE_CTX_set_time(path.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(path.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(path.get());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat("the certificate: ", X509_verify_cert_error_string(error)));
}

}  // namespace berth
