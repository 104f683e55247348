// One agent's stream as the controllers see it, without gRPC. Implemented by
// server/services/agent_service, and by simulations and tests.
#ifndef BERTH_SERVER_CONTROLLERS_AGENT_LINK_H_
#define BERTH_SERVER_CONTROLLERS_AGENT_LINK_H_

#include "absl/status/status.h"
#include "berth/v1/agent.pb.h"

namespace berth {

// Messages that one agent may leave unread before its stream is cut. It then registers again and
// gets its orders again.
inline constexpr size_t kMaxQueuedMessages = 16384;
inline constexpr size_t kMaxQueuedBytes = size_t{32} << 20;

class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // Queues; never blocks and never calls back into the gateway. Dropped when the link is closed.
  // Exceeding the limit closes the link. Thread-safe.
  virtual void Send(v1::ServerMessage message) = 0;
  // Ends the stream once the queue is written. Idempotent, thread-safe, never calls back into the
  // gateway before it returns; AgentGateway::OnClosed follows.
  virtual void Close(absl::Status status) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_AGENT_LINK_H_
