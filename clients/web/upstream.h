// Upstream: berthd as one certificate sees it. Calls and streams as bytes, without a thread each.
//
// With several servers the first choice is the one that answered last. A call that a server did not
// take is tried at the others, with the same request id; a caller that gets UNAVAILABLE may try
// again later. Thread-safe.
#ifndef BERTH_CLIENTS_WEB_UPSTREAM_H_
#define BERTH_CLIENTS_WEB_UPSTREAM_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace berth::web {

// A certificate and its key for berthd, PEM; all empty: plain text.
struct UpstreamIdentity {
  std::string certificate;
  std::string key;
  std::string servers;  // the authority of berthd's own certificate
};

// A stream of answers. Each is given out when it was asked for.
class UpstreamStream {
 public:
  virtual ~UpstreamStream() = default;
  // Asks for the next message; once, until it has come.
  virtual void Next() = 0;
  // Ends it soon; on_end follows. Thread-safe.
  virtual void Cancel() = 0;
};

// A stream with several requests.
class UpstreamDialog : public UpstreamStream {
 public:
  // Requests go in order. False: it has ended, or more than kDialogBytes wait. Thread-safe.
  virtual bool Send(const std::string& request) = 0;
};

class Upstream : public std::enable_shared_from_this<Upstream> {
 public:
  // `servers`: addresses, at least one.
  Upstream(const std::vector<std::string>& servers, const UpstreamIdentity& identity);

  struct Call {
    std::string method;      // "/berth.v1.JobService/GetJob"
    std::string request;     // bytes
    std::string request_id;  // for writes
  };
  // `done`: once, on a thread of gRPC, after kCallTimeout at the latest.
  void Unary(Call call, std::function<void(absl::StatusOr<std::string> answer)> done);

  // The callbacks run on threads of gRPC, one at a time; `on_end` is the last one. Ask for the
  // first message with Next.
  std::shared_ptr<UpstreamStream> Open(const Call& call,
                                       std::function<void(const std::string& message)> on_message,
                                       std::function<void(absl::Status status)> on_end);
  // The same for a call that takes further requests.
  std::shared_ptr<UpstreamDialog> OpenDialog(
      const Call& call, std::function<void(const std::string& message)> on_message,
      std::function<void(absl::Status status)> on_end);

 private:
  struct Attempt;
  struct Server {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };

  void Try(std::shared_ptr<Attempt> attempt);
  void End(std::shared_ptr<Attempt> attempt, const grpc::Status& status);
  std::function<void(absl::Status, std::string)> EndOf(size_t server,
                                                       std::function<void(absl::Status)> on_end);
  size_t current() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `server` failed: another one is next, `leader` if that is the address of one.
  void Leave(size_t server, const std::string& leader) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Server> servers_;
  mutable absl::Mutex mutex_;
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_UPSTREAM_H_
