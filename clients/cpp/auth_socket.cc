#include "clients/cpp/auth_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "berth/auth/v1/auth.pb.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(20);  // it may wait for a directory server

absl::Status SystemError(absl::StatusCode code, absl::string_view what, const std::string& path) {
  return absl::Status(code, absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

absl::Status Unusable(absl::string_view what, const std::string& path) {
  return SystemError(absl::StatusCode::kFailedPrecondition, what, path);
}

absl::StatusOr<int> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket is too long: ", path));
  }
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError(absl::StatusCode::kUnavailable, "cannot use", path);
  const timeval patience = absl::ToTimeval(kPatience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  absl::Status status = SystemError(absl::StatusCode::kUnavailable, "berth-authd at", path);
  close(fd);
  return status;
}

absl::Status BrokenOff(const std::string& socket) {
  if (errno == EPIPE || errno == ECONNRESET) {  // it has too many calls, or stops
    return absl::UnavailableError(
        absl::StrCat("berth-authd at ", socket, " closed the connection; try again"));
  }
  return SystemError(absl::StatusCode::kUnavailable, "berth-authd at", socket);
}

absl::StatusOr<auth::v1::CertificateAnswer> Order(const std::string& socket,
                                                  const std::string& request) {
  const absl::StatusOr<int> connected = Connect(socket);
  if (!connected.ok()) return connected.status();
  const int fd = *connected;
  const absl::Cleanup close_it = [fd] { close(fd); };
  auth::v1::CertificateOrder order;
  order.set_request(request);
  const std::string packet = order.SerializeAsString();
  if (send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return BrokenOff(socket);
  std::vector<char> answered(kMaxAuthPacket);
  const ssize_t size = recv(fd, answered.data(), answered.size(), 0);
  if (size < 0) return BrokenOff(socket);
  auth::v1::CertificateAnswer answer;
  if (size == 0 || !answer.ParseFromArray(answered.data(), static_cast<int>(size))) {
    return absl::UnavailableError(absl::StrCat("berth-authd at ", socket, " gave no answer"));
  }
  if (answer.error().empty()) return answer;
  return absl::Status(
      answer.retry() ? absl::StatusCode::kUnavailable : absl::StatusCode::kPermissionDenied,
      absl::StrCat("berth-authd: ", answer.error()));
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Replaces the file as a whole: another process reads the old one or the new one.
absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string next = absl::StrCat(path, ".", getpid());
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Unusable("cannot write", next);
  const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
  if (written != static_cast<ssize_t>(text.size()) || rename(next.c_str(), path.c_str()) != 0) {
    absl::Status status = Unusable("cannot write", path);
    unlink(next.c_str());
    return status;
  }
  return absl::OkStatus();
}

// Keys are in it: nobody else may read or change what is there.
absl::Status PrepareDirectory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(fs::path(directory).parent_path(), error);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Unusable("cannot make", directory);
  }
  struct stat found {};
  if (lstat(directory.c_str(), &found) != 0) return Unusable("cannot use", directory);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " must be a directory that only you can use (chmod 700)"));
  }
  return absl::OkStatus();
}

struct Kept {
  TlsFiles files;
  absl::Time renew = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
};

// One directory serves several sockets.
TlsFiles FilesOf(const std::string& socket, const std::string& directory) {
  const std::string name = absl::StrReplaceAll(socket, {{"%", "%25"}, {"/", "%2f"}});
  const std::string identity = absl::StrCat(directory, "/", name, ".pem");
  // The key and its certificate are in one file, so that they are replaced together.
  return {.certificate = identity,
          .key = identity,
          .ca = absl::StrCat(directory, "/", name, ".servers.pem")};
}

Kept Look(const std::string& socket, const std::string& directory) {
  Kept kept{.files = FilesOf(socket, directory)};
  const absl::StatusOr<CertificateNames> names =
      ReadCertificateNames(ReadText(kept.files.certificate));
  std::error_code ignored;
  if (!names.ok() || !fs::exists(kept.files.ca, ignored)) return kept;
  kept.end = names->not_after;
  kept.renew = names->not_before + (names->not_after - names->not_before) * 2 / 3;
  return kept;
}

absl::Status Renew(const std::string& socket, const TlsFiles& files) {
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  const absl::StatusOr<auth::v1::CertificateAnswer> answer = Order(socket, made->request);
  if (!answer.ok()) return answer.status();
  absl::Status status = Replace(files.ca, answer->servers());
  if (!status.ok()) return status;
  return Replace(files.certificate, absl::StrCat(answer->certificate(), made->key));
}

}  // namespace

absl::StatusOr<std::string> CertificateDirectory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return absl::StrCat(runtime, "/berth");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return absl::StrCat(home, "/.cache/berth");
  return absl::FailedPreconditionError(
      "there is no place for a certificate: set HOME or XDG_RUNTIME_DIR");
}

absl::StatusOr<TlsFiles> CertificateFrom(const std::string& socket, const std::string& directory,
                                         absl::Time now) {
  if (absl::Status status = PrepareDirectory(directory); !status.ok()) return status;
  Kept kept = Look(socket, directory);
  if (now < kept.renew) return kept.files;
  const std::string lock_path = absl::StrCat(directory, "/lock");
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return Unusable("cannot write", lock_path);
  const absl::Cleanup unlock = [lock] { close(lock); };
  if (flock(lock, LOCK_EX) != 0) return Unusable("cannot lock", lock_path);
  kept = Look(socket, directory);  // another process may have renewed it meanwhile
  if (now < kept.renew) return kept.files;
  const absl::Status renewed = Renew(socket, kept.files);
  if (renewed.ok() || now < kept.end) return kept.files;
  return renewed;
}

}  // namespace berth
