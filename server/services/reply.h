// Reply: the response to a unary call. Held by whatever will answer (a handler, a command, an
// effect). A Reply that is dropped unanswered, as when the server stops, answers UNAVAILABLE, so
// that no call hangs.
//
//   grpc::ServerUnaryReactor* GetQueue(context, request, response) override {
//     Reply<v1::Queue> reply(context, response);
//     grpc::ServerUnaryReactor* reactor = reply.reactor();
//     ... reply moves on, or reply.Finish(status) ...
//     return reactor;
//   }
//
// Moves between threads; one thread at a time. Request and response live until Finish.
#ifndef BERTH_SERVER_SERVICES_REPLY_H_
#define BERTH_SERVER_SERVICES_REPLY_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/loop/outbox.h"
#include "support/errors.h"
#include "support/unsynced.h"

namespace berth {

template <class Response>
class Reply {
 public:
  Reply(grpc::CallbackServerContext* context, Response* response)
      : context_(context), reactor_(context->DefaultReactor()), response_(response) {}
  Reply(Reply&& other) noexcept
      : context_(other.context_),
        reactor_(std::exchange(other.reactor_, nullptr)),
        response_(other.response_),
        on_finish_(std::move(other.on_finish_)) {}
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (reactor_ != nullptr) Finish(absl::UnavailableError("the server is stopping"));
  }

  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  Response& response() const { return *response_; }

  // How long the caller waits for the disk before it accepts unsynced data (support/unsynced.h).
  absl::Duration patience() const {
    return AcceptsUnsynced() ? kUnsyncedPatience : kDurablePatience;
  }
  // Whether to respond with the data and not with `durable`: everything that was read is durable,
  // or the caller accepts unsynced data, and the response is marked. Call once, before Finish.
  bool ShouldAnswer(const absl::Status& durable) {
    if (durable.ok()) return true;
    if (!AcceptsUnsynced()) return false;
    context_->AddTrailingMetadata(kUnsyncedMetadata, kUnsyncedSeen);
    return true;
  }

  // Runs with the status just before the call is answered.
  using OnFinish = absl::AnyInvocable<void(const absl::Status&) &&>;
  void SetOnFinish(OnFinish on_finish) { on_finish_ = std::move(on_finish); }
  bool has_on_finish() const { return on_finish_ != nullptr; }

  // Call once.
  void Finish(const absl::Status& status) {
    if (on_finish_ != nullptr) std::exchange(on_finish_, OnFinish())(status);
    std::exchange(reactor_, nullptr)->Finish(ToGrpcStatus(status));
  }

 private:
  bool AcceptsUnsynced() const {
    const auto found = context_->client_metadata().find(kUnsyncedMetadata);
    return found != context_->client_metadata().end() && found->second == kUnsyncedAllowed;
  }

  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;
  Response* response_;
  OnFinish on_finish_ = nullptr;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_REPLY_H_
