// CallerBook: who makes a call, found out once per certificate. Thread-safe.
#ifndef BERTH_SERVER_SERVICES_CALLER_H_
#define BERTH_SERVER_SERVICES_CALLER_H_

#include <grpcpp/server_context.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "berth/config/v1/config.pb.h"
#include "server/access/caller.h"

namespace berth {

class CallerBook {
 public:
  // `access` is completed.
  explicit CallerBook(config::v1::Access access);

  std::shared_ptr<const Caller> Identify(const grpc::ServerContextBase& call) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Who calls, for the log of changes.
  Actor ActorOf(const grpc::ServerContextBase& call) const;
  // For the log: `"alice" at 10.0.0.7:41234`. Safe to print.
  std::string Describe(const grpc::ServerContextBase& call) const;

  static constexpr size_t kMaxCertificates = 10'000;  // beyond, all are forgotten

 private:
  const config::v1::Access access_;
  const std::shared_ptr<const Caller> without_tls_;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<std::string, std::shared_ptr<const Caller>> by_certificate_
      ABSL_GUARDED_BY(mutex_);  // PEM
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CALLER_H_
