#include "clients/cpp/kept_certificate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "support/pki/certificate.h"
#include "support/text_file.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

absl::Status NoUse(absl::string_view what, const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status KeepSecret(const std::string& path, const std::string& text) {
  const std::string next = absl::StrCat(path, ".", getpid());
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return NoUse("cannot write", next);
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  close(fd);
  if (!written || rename(next.c_str(), path.c_str()) != 0) {
    absl::Status status = NoUse("cannot write", path);
    unlink(next.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CertificateDirectory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return absl::StrCat(runtime, "/berth");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return absl::StrCat(home, "/.cache/berth");
  return absl::FailedPreconditionError(
      "there is no place for a certificate: set HOME or XDG_RUNTIME_DIR");
}

absl::Status PrepareCertificateDirectory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return NoUse("cannot make", directory);
  }
  struct stat found {};
  if (lstat(directory.c_str(), &found) != 0) return NoUse("cannot use", directory);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " must be a directory that only you can use (chmod 700)"));
  }
  return absl::OkStatus();
}

TlsFiles CertificateFiles(const std::string& directory, absl::string_view name) {
  const std::string identity = absl::StrCat(directory, "/", name, ".pem");
  return {.certificate = identity,
          .key = identity,
          .ca = absl::StrCat(directory, "/", name, ".servers.pem")};
}

TlsFiles LoginFiles(const std::string& directory) { return CertificateFiles(directory, "login"); }

KeptCertificate LookAtCertificate(const TlsFiles& files) {
  const absl::StatusOr<CertificateNames> names =
      ReadCertificateNames(ReadTextFile(files.certificate).value_or(""));
  std::error_code ignored;
  if (!names.ok() || !fs::exists(files.ca, ignored)) return {};
  return {.renew = names->not_before + (names->not_after - names->not_before) * 2 / 3,
          .end = names->not_after};
}

absl::Status KeepCertificate(const TlsFiles& files, const std::string& certificate,
                             const std::string& key, const std::string& servers) {
  absl::Status status = KeepSecret(files.ca, servers);
  if (!status.ok()) return status;
  return KeepSecret(files.certificate, absl::StrCat(certificate, key));
}

absl::StatusOr<bool> ForgetCertificate(const TlsFiles& files) {
  const bool existed = unlink(files.certificate.c_str()) == 0;
  if (!existed && errno != ENOENT) return NoUse("cannot remove", files.certificate);
  if (unlink(files.ca.c_str()) != 0 && errno != ENOENT) return NoUse("cannot remove", files.ca);
  return existed;
}

}  // namespace berth
