// Keeps an agent's certificate valid: the first one before the agent connects, then renewals while
// it runs.
#ifndef BERTH_CLIENTS_AGENT_JOIN_MEMBERSHIP_H_
#define BERTH_CLIENTS_AGENT_JOIN_MEMBERSHIP_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clients/agent/join/node_certificate.h"
#include "support/clock.h"
#include "support/random.h"

namespace berth {

// Waits; false: the agent is to end.
using JoinPause = std::function<bool(absl::Duration)>;

// Returns once there is a valid certificate. Without one it reads the token, once, and tries until
// berth-authd answers. `token_file` may be "". CANCELLED: `pause` returned false. Other errors say
// that the node cannot join, and what to do.
// The waits are jittered: a cluster that is switched on does not ask in step.
absl::Status EnsureNodeCertificate(const JoinSettings& settings, const std::string& token_file,
                                   const Ask& ask, Clock& clock, Random random,
                                   const JoinPause& pause);

// Renews on a thread of its own, until it is destroyed. What fails is logged and tried again, also
// after the certificate has expired: then with the token of `token_file`, if that is a file.
class CertificateRenewer {
 public:
  // `clock` must outlive this. `renewed` is called on the thread after each renewal.
  CertificateRenewer(
      JoinSettings settings, std::string token_file, Ask ask, Clock& clock, uint64_t seed,
      std::function<void()> renewed = [] {});
  ~CertificateRenewer();
  CertificateRenewer(const CertificateRenewer&) = delete;
  CertificateRenewer& operator=(const CertificateRenewer&) = delete;

 private:
  void Run();
  absl::Status Renew(absl::Time now);
  // False: to end.
  bool Pause(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  const JoinSettings settings_;
  const std::string token_file_;
  const Ask ask_;
  const std::function<void()> renewed_;
  Clock& clock_;
  Random random_;  // of the thread
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_JOIN_MEMBERSHIP_H_
