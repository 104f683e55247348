#include "clients/cpp/auth_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "berth/auth/v1/auth.pb.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/authority.h"

namespace berth {
namespace {

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

// One directory serves several sockets.
TlsFiles FilesOf(const std::string& socket, const std::string& directory) {
  return CertificateFiles(directory, absl::StrReplaceAll(socket, {{"%", "%25"}, {"/", "%2f"}}));
}

absl::Status Renew(const std::string& socket, const TlsFiles& files) {
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  if (!made.ok()) return made.status();
  const absl::StatusOr<auth::v1::CertificateAnswer> answer = Order(socket, made->request);
  if (!answer.ok()) return answer.status();
  return KeepCertificate(files, answer->certificate(), made->key, answer->servers());
}

}  // namespace

absl::StatusOr<TlsFiles> CertificateFrom(const std::string& socket, const std::string& directory,
                                         absl::Time now) {
  if (absl::Status status = PrepareCertificateDirectory(directory); !status.ok()) return status;
  const TlsFiles files = FilesOf(socket, directory);
  if (now < LookAtCertificate(files).renew) return files;
  const std::string lock_path = absl::StrCat(directory, "/lock");
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return Unusable("cannot write", lock_path);
  const absl::Cleanup unlock = [lock] { close(lock); };
  if (flock(lock, LOCK_EX) != 0) return Unusable("cannot lock", lock_path);
  const KeptCertificate kept = LookAtCertificate(files);  // another process may have renewed it
  if (now < kept.renew) return files;
  const absl::Status renewed = Renew(socket, files);
  if (renewed.ok() || now < kept.end) return files;
  return renewed;
}

}  // namespace berth
