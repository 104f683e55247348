// Between libmicrohttpd, GnuTLS and certificates: what servers of HTTPS here have in common.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_TLS_CERTIFICATES_H_
#define BERTH_CLIENTS_AUTHD_OIDC_TLS_CERTIFICATES_H_

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <string>

#include "clients/authd/oidc/server_certificate.h"

struct MHD_Connection;

namespace berth::oidc {

inline constexpr char kTlsVersions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// For GnuTLS, which frees both after the handshake. Negative on failure.
int ImportForTls(CertificatePem pem, gnutls_pcert_st** chain, unsigned* length,
                 gnutls_privkey_t* key);

gnutls_session_t TlsSessionOf(MHD_Connection* connection);

// PEM, with its chain; "" without one. The handshake has checked that the client holds its key.
std::string ClientCertificateOf(MHD_Connection* connection);

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_TLS_CERTIFICATES_H_
