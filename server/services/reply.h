// Reply: the one answer to a unary call. Held by whoever will answer (a handler, a command, an
// effect); a Reply that is dropped unanswered, as when the server stops, answers UNAVAILABLE by
// itself, so that no call hangs.
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

#include "absl/status/status.h"
#include "support/errors.h"

namespace berth {

template <class Response>
class Reply {
 public:
  Reply(grpc::CallbackServerContext* context, Response* response)
      : reactor_(context->DefaultReactor()), response_(response) {}
  Reply(Reply&& other) noexcept
      : reactor_(std::exchange(other.reactor_, nullptr)), response_(other.response_) {}
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (reactor_ != nullptr) Finish(absl::UnavailableError("the server is stopping"));
  }

  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  Response& response() const { return *response_; }

  // Once.
  void Finish(const absl::Status& status) {
    std::exchange(reactor_, nullptr)->Finish(ToGrpcStatus(status));
  }

 private:
  grpc::ServerUnaryReactor* reactor_;
  Response* response_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_REPLY_H_
