#include "clients/authd/authd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/authd/account.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);  // for a client that says nothing
constexpr int kBacklog = 128;
constexpr absl::Duration kNoDescriptorWait = absl::Milliseconds(50);

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

// A socket without anybody behind it is left over from a crash.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return absl::UnavailableError(absl::StrCat(path, " exists and is no socket"));
  }
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(fd);
  if (result == 0 || error != ECONNREFUSED) {
    return absl::UnavailableError(absl::StrCat(path, " is in use"));
  }
  if (unlink(path.c_str()) != 0) return SystemError("cannot remove", path);
  return absl::OkStatus();
}

absl::StatusOr<int> ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket has at most ",
                                                   sizeof(address.sun_path) - 1, " bytes: ", path));
  }
  path.copy(address.sun_path, path.size());
  if (absl::Status status = RemoveStale(path, address); !status.ok()) return status;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return SystemError("cannot listen on", path);
  absl::Cleanup close_it = [fd] { close(fd); };
  // Every user of the machine may connect; the kernel says who did.
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), 0666) != 0 || listen(fd, kBacklog) != 0) {
    return SystemError("cannot listen on", path);
  }
  std::move(close_it).Cancel();
  return fd;
}

void SetPatience(int fd) {
  const timeval patience = absl::ToTimeval(kPatience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

void Send(int fd, const auth::v1::CertificateAnswer& answer) {
  const std::string packet = answer.SerializeAsString();
  // A client that has left needs no answer.
  [[maybe_unused]] const ssize_t sent = send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
}

auth::v1::CertificateAnswer Refusal(const absl::Status& status) {
  auth::v1::CertificateAnswer answer;
  answer.set_error(std::string(status.message()));
  answer.set_retry(absl::IsUnavailable(status));
  return answer;
}

absl::StatusOr<std::string> ReceiveRequest(int fd) {
  std::vector<char> packet(kMaxAuthPacket);
  const ssize_t size = recv(fd, packet.data(), packet.size(), MSG_TRUNC);
  if (size < 0) return absl::DeadlineExceededError("no request came");
  if (static_cast<size_t>(size) > packet.size()) {
    return absl::InvalidArgumentError("the request is too large");
  }
  auth::v1::CertificateOrder order;
  if (!order.ParseFromArray(packet.data(), static_cast<int>(size))) {
    return absl::InvalidArgumentError("this is not a CertificateOrder");
  }
  return order.request();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuthDaemon>> AuthDaemon::Create(
    const auth::v1::Authd& config, std::shared_ptr<const CertificateIssuer> issuer) {
  const absl::StatusOr<int> listener = ListenAt(config.listen());
  if (!listener.ok()) return listener.status();
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    close(*listener);
    return SystemError("cannot make an", "eventfd");
  }
  return std::unique_ptr<AuthDaemon>(new AuthDaemon(config, std::move(issuer), *listener, stop));
}

AuthDaemon::AuthDaemon(const auth::v1::Authd& config,
                       std::shared_ptr<const CertificateIssuer> issuer, int listener, int stop)
    : config_(config),
      issuer_(std::move(issuer)),
      overflow_uid_(OverflowUid()),
      listener_(listener),
      stop_(stop) {}

AuthDaemon::~AuthDaemon() {
  unlink(config_.listen().c_str());
  close(listener_);
  close(stop_);
}

bool AuthDaemon::Run() {
  std::array<pollfd, 2> wanted = {{{listener_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (wanted[1].revents == 0) {
    if (poll(wanted.data(), wanted.size(), -1) < 0 || wanted[0].revents == 0) continue;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {  // no descriptor is free: calls under way will end
      absl::SleepFor(kNoDescriptorWait);
      continue;
    }
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      close(fd);
      continue;
    }
    SetPatience(fd);
    if (Begin(peer.uid)) {
      std::thread([this, fd, peer] { Serve(fd, peer.uid, peer.pid); }).detach();
    } else {
      Send(fd, Refusal(absl::UnavailableError("berth-authd is busy; try again")));
      close(fd);
    }
  }
  absl::MutexLock lock(&mutex_);
  const absl::Condition none(
      +[](int* calls) { return *calls == 0; }, &all_calls_);
  return mutex_.AwaitWithTimeout(none, 2 * kPatience);
}

void AuthDaemon::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof(one));
}

bool AuthDaemon::Begin(uid_t uid) {
  absl::MutexLock lock(&mutex_);
  int& own = calls_[uid];
  if (own >= kMaxCallsOfUser || all_calls_ >= kMaxCalls) {
    if (own == 0) calls_.erase(uid);
    return false;
  }
  ++own;
  ++all_calls_;
  return true;
}

void AuthDaemon::End(uid_t uid) {
  absl::MutexLock lock(&mutex_);
  --all_calls_;
  if (const auto own = calls_.find(uid); --own->second == 0) calls_.erase(own);
}

void AuthDaemon::Serve(int fd, uid_t uid, pid_t pid) {
  Send(fd, Answer(fd, uid, pid));
  close(fd);
  End(uid);
}

auth::v1::CertificateAnswer AuthDaemon::Answer(int fd, uid_t uid, pid_t pid) const {
  const absl::StatusOr<std::string> request = ReceiveRequest(fd);
  absl::StatusOr<std::string> certificate = request.ok() ? Certify(*request, uid, pid) : request;
  if (!certificate.ok()) {
    LogWarn("no certificate", {{"uid", uid}, {"pid", pid}, {"error", certificate.status()}});
    return Refusal(certificate.status());
  }
  auth::v1::CertificateAnswer answer;
  answer.set_certificate(*std::move(certificate));
  answer.set_servers(issuer_->servers());
  return answer;
}

absl::StatusOr<std::string> AuthDaemon::Certify(const std::string& request, uid_t uid,
                                                pid_t pid) const {
  if (uid == overflow_uid_) {
    return absl::PermissionDeniedError("users of other user namespaces get no certificate");
  }
  if (uid == 0 && !config_.allow_root()) {
    return absl::PermissionDeniedError(
        "root gets no certificate (allowRoot); use your own account");
  }
  if (uid != 0 && uid < config_.first_uid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("uid ", uid, " is a system user and gets no certificate (firstUid)"));
  }
  const absl::StatusOr<Account> account = AccountOf(uid);
  if (!account.ok()) return account.status();
  absl::StatusOr<IssuedCertificate> issued =
      issuer_->Issue(request, account->name, account->groups, DurationFrom(config_.lifetime()));
  if (!issued.ok()) return issued.status();
  LogInfo("certificate",
          {{"user", account->name},
           {"uid", uid},
           {"pid", pid},
           {"groups", account->groups.size()},
           {"serial", issued->serial},
           {"until", absl::FormatTime(absl::RFC3339_sec, issued->end, absl::UTCTimeZone())}});
  return std::move(issued->pem);
}

}  // namespace berth
