// SharedReads: pages of one session that ask the same at the same time share an answer.
//
// After a change, all pages read again at once. An answer is shared only by those who asked before
// its call began, so nobody gets an answer that is older than the question:
//
//   a asks ──► call 1        b, c ask meanwhile: they wait        call 1 ends ──► call 2 for both
#ifndef BERTH_CLIENTS_WEB_SHARED_READS_H_
#define BERTH_CLIENTS_WEB_SHARED_READS_H_

#include <google/protobuf/descriptor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "clients/web/upstream.h"

namespace berth::web {

// Thread-safe.
class SharedReads : public std::enable_shared_from_this<SharedReads> {
 public:
  // The answer as JSON.
  using Done = std::function<void(const absl::StatusOr<std::string>& json)>;

  explicit SharedReads(std::shared_ptr<Upstream> upstream) : upstream_(std::move(upstream)) {}

  // `call`: of a method that changes nothing. `done`: once, perhaps on a thread of gRPC.
  void Ask(const google::protobuf::MethodDescriptor& method, Upstream::Call call, Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Read {
    std::vector<Done> now;   // of the call that is under way
    std::vector<Done> next;  // asked since it began
  };

  void Begin(const google::protobuf::MethodDescriptor& method, const Upstream::Call& call);
  void End(const google::protobuf::MethodDescriptor& method, const Upstream::Call& call,
           const absl::StatusOr<std::string>& answer) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Upstream> upstream_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Read> reads_ ABSL_GUARDED_BY(mutex_);  // by method and request
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_SHARED_READS_H_
