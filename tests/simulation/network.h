// The network between agents and berthd: streams as gRPC gives them over TCP. What one end sends
// arrives at the other in order or not at all; streams know nothing of each other, so an old one
// may still deliver when a new one has long begun.
//
//   agent: Connect, Send, Disconnect -> lane up   -> AgentGateway::OnConnect, OnMessage, OnClosed
//   agent: OnMessage, OnDisconnected <- lane down <- AgentLink::Send, Close
//
// What can go wrong is Weather, which the fault plan changes as time goes by.
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
  double loss = 0;    // of each message; half of these are sent again, the others break the stream
  double replay = 0;  // of each message: it comes once more, on the node's present stream
  absl::Duration latency = absl::Microseconds(200);  // mean
  // Nothing is delivered to, or from, a node before these, by its number.
  std::vector<absl::Duration> up_clogged, down_clogged;
};

// The server's end as the network needs it.
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  // The process that runs now, null: none. Another number, another process.
  virtual AgentGateway* gateway() = 0;
  virtual uint64_t process() const = 0;
  virtual const ActorPtr& actor() const = 0;
};

class Network {
 public:
  Network(Scheduler* scheduler, Trace* trace, uint64_t seed, size_t nodes);
  void SetServer(ServerPort* server) { server_ = server; }

  Weather weather;

  // One agent process's end.
  class Link final : public ServerLink {
   public:
    Link(Network* network, size_t node, ActorPtr agent, LinkEvents* events)
        : network_(network), node_(node), agent_(std::move(agent)), events_(events) {}
    // The process ended; its machine still tells the other end. Without power it would not.
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

  // A message that nobody sent, on the node's present stream, if there is one.
  void Forge(size_t node, v1::AgentMessage message);
  // The process at the server's end is gone; its machine tells all agents, unless it has no power.
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
  std::vector<StreamPtr> present_;               // by node: the latest that the server has
  std::deque<std::weak_ptr<Stream>> at_server_;  // those that the process may have
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_NETWORK_H_
