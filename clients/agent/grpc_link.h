// The stream to the server over gRPC.
//
// Events come from gRPC's threads, never from inside a call of this class, and carry the number of
// their connection: an event of the old connection may arrive after a Disconnect, so a receiver
// first compares it with connection().
#ifndef BERTH_CLIENTS_AGENT_GRPC_LINK_H_
#define BERTH_CLIENTS_AGENT_GRPC_LINK_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "berth/v1/agent.grpc.pb.h"
#include "clients/agent/interfaces.h"

namespace berth {

class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // In the order received. May block the stream, which then stops reading.
  virtual void OnMessage(uint64_t connection, v1::ServerMessage message) = 0;
  // The last event of a connection, unless Disconnect ended it.
  virtual void OnDisconnected(uint64_t connection, const std::string& reason) = 0;
};

// All calls, including the destructor, come from one thread at a time.
class GrpcLink final : public ServerLink {
 public:
  // `events` must outlive the link.
  GrpcLink(const std::shared_ptr<grpc::Channel>& channel, LinkEvents& events);
  // Ends the connection and waits until gRPC has released it. The caller must not hold a lock that
  // the event handlers take.
  ~GrpcLink() override;

  // For the connections after the current one.
  void SetChannel(std::shared_ptr<grpc::Channel> channel);

  void Connect() override;
  void Send(const v1::AgentMessage& message) override;
  void Disconnect() override;
  size_t QueuedBytes() const override;

  // The number of the current connection; 0 = none.
  uint64_t connection() const { return connection_; }
  // The receiver has handled OnDisconnected: there is no connection now.
  void Ended() { Disconnect(); }

 private:
  class Stream;
  struct Streams {
    absl::Mutex mutex;
    int count ABSL_GUARDED_BY(mutex) = 0;  // streams still held by gRPC
  };

  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<grpc::Channel> before_;  // whose stream may still be open
  LinkEvents& events_;
  const std::shared_ptr<Streams> streams_;
  std::shared_ptr<Stream> stream_;
  uint64_t connections_ = 0;
  uint64_t connection_ = 0;
};

// A channel with keepalive whose connection is not shared with other channels.
std::shared_ptr<grpc::Channel> MakeAgentChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials);
// The same for calls of tasks, without a connection while there are none.
std::shared_ptr<grpc::Channel> MakeTaskChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GRPC_LINK_H_
