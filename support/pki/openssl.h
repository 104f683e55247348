// Internal to pki: owners of OpenSSL's objects, and its errors.
#ifndef BERTH_SUPPORT_PKI_OPENSSL_H_
#define BERTH_SUPPORT_PKI_OPENSSL_H_

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace berth::pki {

template <auto kFree>
struct Freer {
  template <class Thing>
  void operator()(Thing* thing) const {
    kFree(thing);
  }
};
template <class Thing, auto kFree>
using Owned = std::unique_ptr<Thing, Freer<kFree>>;

using OwnedBio = Owned<BIO, BIO_free>;
using OwnedX509 = Owned<X509, X509_free>;
using OwnedRequest = Owned<X509_REQ, X509_REQ_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedExtension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using OwnedNumber = Owned<BIGNUM, BN_free>;
using OwnedObject = Owned<ASN1_OBJECT, ASN1_OBJECT_free>;
using OwnedString = Owned<ASN1_STRING, ASN1_STRING_free>;
using OwnedNames = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;
inline void FreeSequence(ASN1_SEQUENCE_ANY* sequence) {
  sk_ASN1_TYPE_pop_free(sequence, ASN1_TYPE_free);
}
using OwnedSequence = Owned<ASN1_SEQUENCE_ANY, FreeSequence>;

inline OwnedBio Reading(absl::string_view text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
inline std::string Written(BIO* bio) {
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<size_t>(size)};
}

// "WHAT: OpenSSL's reason", and empties OpenSSL's list of errors.
inline absl::Status OpenSslError(absl::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  absl::Status status = absl::InvalidArgumentError(
      reason == nullptr ? std::string(what) : absl::StrCat(what, ": ", reason));
  ERR_clear_error();
  return status;
}

// Keys without a password; otherwise OpenSSL would ask for it.
inline int NoPassword(char*, int, int, void*) { return 0; }

}  // namespace berth::pki

#endif  // BERTH_SUPPORT_PKI_OPENSSL_H_
