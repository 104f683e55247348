// What the doors of berth-authd over HTTPS have in common: answers in JSON, and a log of refusals.
#ifndef BERTH_CLIENTS_AUTHD_OIDC_JSON_REPLY_H_
#define BERTH_CLIENTS_AUTHD_OIDC_JSON_REPLY_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/authd/oidc/https_server.h"
#include "support/clock.h"

namespace berth::oidc {

std::string JsonOf(const google::protobuf::Message& message);

// A CertificateAnswer with the error: 503 for UNAVAILABLE, which asks the client to try again, 403
// for PERMISSION_DENIED, otherwise 400.
HttpsReply RefusalReply(const absl::Status& status);

inline constexpr int kLoggedRefusals = 100;  // a minute: strangers shall not fill a disk

// Thread-safe.
class RefusalLog {
 public:
  explicit RefusalLog(Clock& clock) : clock_(clock) {}
  void Add(const absl::Status& status, const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  absl::Duration minute_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // began at
  int count_ ABSL_GUARDED_BY(mutex_) = 0;                                      // in this minute
};

}  // namespace berth::oidc

#endif  // BERTH_CLIENTS_AUTHD_OIDC_JSON_REPLY_H_
