#include "clients/authd/oidc/tls_certificates.h"

#include <microhttpd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"

namespace berth::oidc {
namespace {

constexpr unsigned kMaxChain = 16;  // certificates of a server or client

gnutls_datum_t DatumOf(std::string& text) {
  return {reinterpret_cast<unsigned char*>(text.data()), static_cast<unsigned>(text.size())};
}

}  // namespace

int ImportForTls(CertificatePem pem, gnutls_pcert_st** chain, unsigned* length,
                 gnutls_privkey_t* key) {
  const gnutls_datum_t chain_datum = DatumOf(pem.chain), key_datum = DatumOf(pem.key);
  auto* list = static_cast<gnutls_pcert_st*>(gnutls_calloc(kMaxChain, sizeof(gnutls_pcert_st)));
  if (list == nullptr) return -1;
  absl::Cleanup free_list = [list] { gnutls_free(list); };
  unsigned count = kMaxChain;
  if (gnutls_pcert_list_import_x509_raw(list, &count, &chain_datum, GNUTLS_X509_FMT_PEM, 0) < 0) {
    return -1;
  }
  absl::Cleanup free_chain = [&] {
    for (unsigned i = 0; i < count; ++i) gnutls_pcert_deinit(&list[i]);
  };
  gnutls_privkey_t imported = nullptr;
  if (gnutls_privkey_init(&imported) < 0) return -1;
  if (gnutls_privkey_import_x509_raw(imported, &key_datum, GNUTLS_X509_FMT_PEM, nullptr, 0) < 0) {
    gnutls_privkey_deinit(imported);
    return -1;
  }
  std::move(free_chain).Cancel();
  std::move(free_list).Cancel();
  *chain = list;
  *length = count;
  *key = imported;
  return 0;
}

gnutls_session_t TlsSessionOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return static_cast<gnutls_session_t>(info->tls_session);
}

std::string ClientCertificateOf(MHD_Connection* connection) {
  unsigned count = 0;
  const gnutls_datum_t* chain = gnutls_certificate_get_peers(TlsSessionOf(connection), &count);
  std::string pem;
  for (unsigned i = 0; chain != nullptr && i < count && i < kMaxChain; ++i) {
    gnutls_datum_t text{};
    if (gnutls_pem_base64_encode2("CERTIFICATE", &chain[i], &text) < 0) return "";
    pem.append(reinterpret_cast<const char*>(text.data), text.size);
    gnutls_free(text.data);
  }
  return pem;
}

}  // namespace berth::oidc
