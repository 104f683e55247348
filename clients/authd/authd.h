// AuthDaemon: gives users of a login node certificates for Berth, without a login of its own.
//
//   client (uid 1001) --CertificateOrder--> socket: SO_PEERCRED says 1001 -> NSS: ada, groups
//          <--certificate of spiffe://TRUST-DOMAIN/user/ada, for 12 hours--
//
// It keeps no state and knows no secrets but the authority's key.
#ifndef BERTH_CLIENTS_AUTHD_AUTHD_H_
#define BERTH_CLIENTS_AUTHD_AUTHD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd/issuing.h"

namespace berth {

class AuthDaemon {
 public:
  // Listens. `config` is completed (authd_config.h). UNAVAILABLE: the socket, naming it.
  static absl::StatusOr<std::unique_ptr<AuthDaemon>> Create(
      const auth::v1::Authd& config, std::shared_ptr<const CertificateIssuer> issuer);
  // After Run has returned true, or if it was never called. Removes the socket.
  ~AuthDaemon();

  // Serves until Stop, and until the answers under way are sent. False if that takes longer than 10
  // seconds: threads still wait for a directory server, and only the process can end them.
  bool Run();
  // Thread-safe.
  void Stop();

  // Few of these wait for a directory server at a time; beyond, clients are told to try again.
  static constexpr int kMaxCalls = 64;
  static constexpr int kMaxCallsOfUser = 4;

 private:
  AuthDaemon(const auth::v1::Authd& config, std::shared_ptr<const CertificateIssuer> issuer,
             int listener, int stop);

  // On a thread of its own.
  void Serve(int fd, uid_t uid, pid_t pid);
  auth::v1::CertificateAnswer Answer(int fd, uid_t uid, pid_t pid) const;
  absl::StatusOr<std::string> Certify(const std::string& request, uid_t uid, pid_t pid) const;
  // False, if the user or all users together have too many calls under way.
  bool Begin(uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);

  const auth::v1::Authd config_;
  const std::shared_ptr<const CertificateIssuer> issuer_;
  const uid_t overflow_uid_;
  const int listener_;
  const int stop_;  // an eventfd
  absl::Mutex mutex_;
  std::map<uid_t, int> calls_ ABSL_GUARDED_BY(mutex_);
  int all_calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_AUTHD_H_
