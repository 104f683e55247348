// Puts requests and responses of a unary call on one arena: a batch of a thousand jobs is about
// twenty thousand small objects with the same lifetime.
#ifndef BERTH_SERVER_SERVICES_ARENA_MESSAGES_H_
#define BERTH_SERVER_SERVICES_ARENA_MESSAGES_H_

#include <google/protobuf/arena.h>
#include <grpcpp/support/message_allocator.h>

namespace berth {

// Pass to SetMessageAllocatorFor_METHOD; outlives the service. Thread-safe.
template <class Request, class Response>
class ArenaMessages final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Holder; }

 private:
  class Holder final : public grpc::MessageHolder<Request, Response> {
   public:
    Holder() : arena_(Options()) {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena_));
      this->set_response(google::protobuf::Arena::CreateMessage<Response>(&arena_));
    }
    void Release() override { delete this; }

   private:
    // Small calls take one block, large ones few.
    static google::protobuf::ArenaOptions Options() {
      google::protobuf::ArenaOptions options;
      options.start_block_size = 4 << 10;
      options.max_block_size = 256 << 10;
      return options;
    }
    google::protobuf::Arena arena_;
  };
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_ARENA_MESSAGES_H_
