// The stream to the server over gRPC.
//
// Events come from gRPC's threads, never from inside a call of this class, and carry the number of
// their connection: an event of the old connection may arrive after a Disconnect, so a receiver
// first compares it with connection().
#ifndef BERTH_CLIENTS_AGENT_GRPC_LINK_H_
#define BERTH_CLIENTS_AGENT_GRPC_LINK_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "berth/v1/agent.grpc.pb.h"
#include "clients/agent/interfaces.h"
#include "clients/cpp/server_choice.h"

namespace berth {

class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // In the order received. May block the stream, which then stops reading.
  virtual void OnMessage(uint64_t connection, v1::ServerMessage message) = 0;
  // The last event of a connection, unless Disconnect ended it.
  virtual void OnDisconnected(uint64_t connection, const std::string& reason) = 0;
};

// A server, and the channel to it.
struct AgentServer {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  // Makes another channel after one without a connection: a channel that has failed to connect
  // fails the next call too, before it tries again. Null: the channel is kept.
  std::function<std::shared_ptr<grpc::Channel>()> renew = nullptr;
};

// All calls, including the destructor, come from one thread at a time.
class GrpcLink final : public ServerLink {
 public:
  // `events` must outlive the link. At least one server.
  GrpcLink(const std::vector<AgentServer>& servers, LinkEvents& events);
  // Ends the connection and waits until gRPC has released it. The caller must not hold a lock that
  // the event handlers take.
  ~GrpcLink() override;

  // To the same servers, for the connections after the current one.
  void SetChannels(const std::vector<AgentServer>& servers);

  void Connect() override;
  void Send(const v1::AgentMessage& message) override;
  void Disconnect() override;
  size_t QueuedBytes() const override;
  size_t servers() const override { return servers_.size(); }
  std::string server() const override { return servers_.size() > 1 ? address() : ""; }
  void Stay() override { choice_.Stay(); }
  bool Leave() override;

  // Of the server whose turn it is: its place among those given, and its address.
  size_t current() const { return choice_.current(); }
  const std::string& address() const { return servers_[choice_.current()].at.address; }

  // The number of the current connection; 0 = none.
  uint64_t connection() const { return connection_; }
  // The receiver has handled OnDisconnected: there is no connection now.
  void Ended() { Disconnect(); }

 private:
  class Stream;
  struct Streams {
    absl::Mutex mutex;
    int count ABSL_GUARDED_BY(mutex) = 0;  // streams still held by gRPC
    // The last one that ended with a name of the leader.
    uint64_t named_by ABSL_GUARDED_BY(mutex) = 0;
    std::string leader ABSL_GUARDED_BY(mutex);
  };

  struct Server {
    AgentServer at;
    std::unique_ptr<v1::AgentService::Stub> stub;
  };
  std::optional<size_t> Leader() const;

  std::vector<Server> servers_;
  std::vector<Server> before_;  // a stream of theirs may still be open
  ServerChoice choice_;
  LinkEvents& events_;
  const std::shared_ptr<Streams> streams_;
  std::shared_ptr<Stream> stream_;
  uint64_t connections_ = 0;
  uint64_t connection_ = 0;
};

// Channels with keepalive whose connections are not shared with other channels, to each server of
// the list (support/server_list.h). If there are several, a dead one shows soon, and each has
// `renew`.
std::vector<AgentServer> MakeAgentChannels(
    const std::string& servers, const std::shared_ptr<grpc::ChannelCredentials>& credentials);
// The same for calls of tasks, without connections while there are none.
std::vector<std::shared_ptr<grpc::Channel>> MakeTaskChannels(
    const std::string& servers, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GRPC_LINK_H_
