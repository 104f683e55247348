// The certificate of an HTTPS server, read again when its files change.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_SERVER_CERTIFICATE_H_
#define BERTH_CLIENTS_AUTHD_OIDC_SERVER_CERTIFICATE_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace berth::oidc {

struct CertificatePem {
  std::string chain;
  std::string key;
};

inline constexpr absl::Duration kCertificateReload = absl::Seconds(5);

// Thread-safe.
class ServerCertificate {
 public:
  // Paths of PEM files. INVALID_ARGUMENT, naming them: they cannot be read or parsed, or the key is
  // another one's.
  static absl::StatusOr<ServerCertificate> Open(const std::string& chain, const std::string& key);
  ServerCertificate(ServerCertificate&& other) noexcept;

  // Looks at the files if that was long enough ago (`steady` time). Files that do not work are
  // logged, and the ones before stay in use.
  CertificatePem Current(absl::Duration steady) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ServerCertificate(std::string chain, std::string key, CertificatePem pem);

  const std::string chain_, key_;
  absl::Mutex mutex_;
  CertificatePem pem_ ABSL_GUARDED_BY(mutex_);
  absl::Duration looked_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_SERVER_CERTIFICATE_H_
