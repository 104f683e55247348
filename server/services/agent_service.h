// AgentService over gRPC: each stream becomes an AgentLink of the gateway.
#ifndef BERTH_SERVER_SERVICES_AGENT_SERVICE_H_
#define BERTH_SERVER_SERVICES_AGENT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/time/time.h"
#include "berth/v1/agent.grpc.pb.h"
#include "server/audit/refused_calls.h"
#include "server/controllers/agent_gateway.h"
#include "server/services/caller.h"
#include "server/services/open_streams.h"
#include "support/clock.h"

namespace berth {

// Who may come in, and stay. All outlive the service and its streams.
struct AgentDoor {
  const CallerBook* callers = nullptr;
  Loop* loop = nullptr;
  OpenStreams* streams = nullptr;
  RefusedCalls* refused = nullptr;         // may be null
  Clock* clock = &SystemClock();           // certificates expire
  const Leadership* leadership = nullptr;  // null: this server is alone
};

class AgentService final : public v1::AgentService::CallbackService {
 public:
  // The gateway outlives the service and its streams. Before the gRPC server is shut down, end the
  // streams with AgentGateway::DisconnectAll.
  AgentService(AgentGateway* gateway, const AgentDoor& door) : gateway_(gateway), door_(door) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  AgentGateway* const gateway_;
  const AgentDoor door_;
};

// Lets gRPC find streams whose peer hangs without closing: it pings after `lease` of silence, and
// gives up half a lease later. The peers, agents and clients, may ping every 5 s, or every quarter
// of a shorter lease.
void AddAgentKeepalive(absl::Duration lease, grpc::ServerBuilder& builder);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_AGENT_SERVICE_H_
