// CallerBook: who makes a call, found out once per certificate and kTlsReload. Thread-safe.
#ifndef BERTH_SERVER_SERVICES_CALLER_H_
#define BERTH_SERVER_SERVICES_CALLER_H_

#include <grpcpp/server_context.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "server/access/call.h"
#include "server/access/caller.h"
#include "server/access/task_caller.h"
#include "support/clock.h"

namespace berth {

class CallerBook {
 public:
  // `access` is completed. `authorities`: the PEM file of tls.ca; empty without TLS.
  explicit CallerBook(config::v1::Access access, std::string authorities = {},
                      Clock* clock = &SystemClock());

  std::shared_ptr<const Caller> Identify(const grpc::ServerContextBase& call) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Also takes the task for which an agent calls from the metadata (support/task_call.h).
  Call CallOf(Rpc rpc, const grpc::ServerContextBase& call) const;

  const config::v1::Access& access() const { return access_; }
  // Ends the connection of this address and port. Called when an agent calls, for itself or for a
  // task, with a certificate that has expired: it connects again with the one that it has by now.
  // Set it before the first call.
  void SetEnd(std::function<void(const std::string& address)> end) { end_ = std::move(end); }
  // For Welcome.
  const TaskKeys& task_keys() const { return task_keys_; }
  // Without TLS: clients are users of this machine.
  bool IsLocal() const { return authorities_.empty(); }

  static constexpr size_t kMaxCertificates = 10'000;  // beyond, all are forgotten

 private:
  struct Known {
    std::shared_ptr<const Caller> caller;
    absl::Duration found;  // steady time
  };

  Caller FindOut(const std::string& certificate, const std::string& chain) const;
  // Whether an authority in the file has signed the certificate; false without a file. A
  // certificate whose path cannot be followed counts as one of each authority, and is nobody's.
  bool IsOf(const std::string& file, const std::string& certificate,
            const std::string& chain) const;

  const config::v1::Access access_;
  const std::string authorities_;
  Clock* const clock_;
  const std::shared_ptr<const Caller> without_tls_;
  const TaskKeys task_keys_;
  std::function<void(const std::string& address)> end_ = [](const std::string&) {};
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<std::string, Known> by_certificate_ ABSL_GUARDED_BY(mutex_);  // PEM
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CALLER_H_
