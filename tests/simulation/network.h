// The network between agents and berthd: streams as gRPC provides them over TCP. Messages of one
// end arrive at the other in order or not at all. Streams are independent, so an old one may still
// deliver long after a new one has begun.
//
//   agent: Connect, Send, Disconnect -> lane up   -> AgentGateway::OnConnect, OnMessage, OnClosed
//   agent: OnMessage, OnDisconnected <- lane down <- AgentLink::Send, Close
//
// The faults are in Weather, which the fault plan changes over time.
#ifndef BERTH_TESTS_SIMULATION_NETWORK_H_
#define BERTH_TESTS_SIMULATION_NETWORK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "berth/v1/agent.pb.h"
#include "clients/agent/grpc_link.h"
#include "server/controllers/agent_gateway.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/trace.h"

namespace berth::simulation {

struct Weather {
  double loss = 0;    // per message; half of these are resent, the others break the stream
  double replay = 0;  // per message: it is repeated on the current stream of the node
  absl::Duration latency = absl::Microseconds(200);  // mean
  // No message is delivered to or from a node before these times, by node number.
  std::vector<absl::Duration> up_clogged, down_clogged;
};

// The server as the network needs it.
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  // The gateway of the current process, or null. Each process has another number.
  virtual AgentGateway* gateway() = 0;
  virtual uint64_t process() const = 0;
  virtual const ActorPtr& actor() const = 0;
};

class Network {
 public:
  Network(Scheduler* scheduler, Trace* trace, uint64_t seed, size_t nodes);
  void SetServer(ServerPort* server) { server_ = server; }

  Weather weather;

  // The end of one agent process.
  class Link final : public ServerLink {
   public:
    Link(Network* network, size_t node, ActorPtr agent, LinkEvents* events)
        : network_(network), node_(node), agent_(std::move(agent)), events_(events) {}
    // The process ended; its machine notifies the other end, unless it lost its power.
    void Die(bool powered);

    void Connect() override;
    void Send(const v1::AgentMessage& message) override;
    void Disconnect() override;
    size_t QueuedBytes() const override { return 0; }
    uint64_t connection() const;
    void Ended() { stream_ = nullptr; }

   private:
    friend class Network;
    Network* const network_;
    const size_t node_;
    const ActorPtr agent_;
    LinkEvents* const events_;
    std::shared_ptr<struct Stream> stream_;
  };

  // Delivers a forged message on the current stream of the node, if there is one.
  void Forge(size_t node, v1::AgentMessage message);
  // The server process ended; its machine notifies all agents, unless it lost its power.
  void ServerDied(bool powered);

  uint64_t delivered = 0, lost = 0, replayed = 0;

 private:
  using StreamPtr = std::shared_ptr<struct Stream>;
  class ServerEnd;
  enum class Direction : uint8_t { kUp, kDown };
  struct Open {};
  struct Close {
    std::string why;
  };
  using Packet = std::variant<Open, v1::AgentMessage, v1::ServerMessage, Close>;
  friend struct Stream;

  void Push(const StreamPtr& stream, Direction direction, Packet packet);
  void Break(const StreamPtr& stream);
  void Arm(const StreamPtr& stream, Direction direction);
  void Arrive(const StreamPtr& stream, Direction direction);
  void DeliverUp(const StreamPtr& stream, Packet packet);
  void DeliverDown(const StreamPtr& stream, Packet packet);
  void ToServer(const StreamPtr& stream, v1::AgentMessage message);
  void ToAgent(const StreamPtr& stream, const v1::ServerMessage& message);
  void CloseAtServer(const StreamPtr& stream);
  void ReplayUp(size_t node, const v1::AgentMessage& message);
  void ReplayDown(const StreamPtr& stream, const v1::ServerMessage& message);
  absl::Duration Latency();

  Scheduler* const scheduler_;
  Trace* const trace_;
  Dice dice_;
  const ActorPtr wire_ = std::make_shared<Actor>();
  ServerPort* server_ = nullptr;
  uint64_t streams_ = 0;
  std::vector<StreamPtr> present_;               // by node: the latest known to the server
  std::deque<std::weak_ptr<Stream>> at_server_;  // streams that the process may have
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_NETWORK_H_
