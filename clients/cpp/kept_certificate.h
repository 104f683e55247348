// Where the certificates of a user are kept, for the user alone.
#ifndef BERTH_CLIENTS_CPP_KEPT_CERTIFICATE_H_
#define BERTH_CLIENTS_CPP_KEPT_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "support/tls.h"

namespace berth {

// $XDG_RUNTIME_DIR/berth, else ~/.cache/berth. FAILED_PRECONDITION without either.
absl::StatusOr<std::string> CertificateDirectory();

// Makes it if it is missing. FAILED_PRECONDITION: somebody else can read or change what is there.
absl::Status PrepareCertificateDirectory(const std::string& directory);

// The key and its certificate are in one file, so that they are replaced together.
TlsFiles CertificateFiles(const std::string& directory, absl::string_view name);
// Of berth login: one at a time.
TlsFiles LoginFiles(const std::string& directory);

// `end` is in the past if there is none. It should be renewed from two thirds of its life on.
struct KeptCertificate {
  absl::Time renew = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
};
KeptCertificate LookAtCertificate(const TlsFiles& files);

// Each file is replaced as a whole: another process, and this one after a crash of the machine,
// reads the old one or the new one. All PEM.
absl::Status KeepCertificate(const TlsFiles& files, const std::string& certificate,
                             const std::string& key, const std::string& servers);

// One such file, for the user alone.
absl::Status KeepSecret(const std::string& path, const std::string& text);

// False: there was none. FAILED_PRECONDITION: the file cannot be removed.
absl::StatusOr<bool> ForgetCertificate(const TlsFiles& files);

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_KEPT_CERTIFICATE_H_
