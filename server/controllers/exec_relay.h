// ExecRelay: connects a client with a command that its node's agent runs inside a task
// (JobService.Exec).
#ifndef BERTH_SERVER_CONTROLLERS_EXEC_RELAY_H_
#define BERTH_SERVER_CONTROLLERS_EXEC_RELAY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/open_requests.h"

namespace berth {

// The client's end. Calls come one at a time, on the threads of the agent's stream, without a lock
// of the relay; they must not block.
class ExecPeer {
 public:
  virtual ~ExecPeer() = default;
  // The agent's messages, in order. One with `end` is the last call.
  virtual void OnOutput(v1::ExecOutput output) = 0;
  // The node's session is gone. The last call.
  virtual void OnGone(absl::Status status) = 0;
};

class ExecRelay final : public ExecSink {
 public:
  using RequestId = AgentRequestId;

  // The gateway outlives the relay. `limit`: concurrent sessions (config limits.execs).
  ExecRelay(AgentGateway* gateway, size_t limit);

  // UNAVAILABLE if the node has no session, RESOURCE_EXHAUSTED above the limit; the peer is then
  // never called. The peer may be called before this returns. `open` gets its request number.
  absl::StatusOr<RequestId> Open(NodeId node, v1::OpenExec open, std::shared_ptr<ExecPeer> peer);
  // To the agent. Does nothing once the session is over.
  void Send(RequestId request, v1::ExecInput input);
  // The client is gone: the command is killed, and the peer is not called again. Idempotent.
  void Cancel(RequestId request);

  size_t open() const { return requests_.size(); }
  // Tasks get three quarters of the places, so that people can still look into them.
  bool HasPlaceForTask() const { return 4 * (open() + 1) <= 3 * limit_; }

  void OnExecOutput(SessionId session, v1::ExecOutput output) override;
  void OnExecSessionGone(SessionId session) override;

 private:
  using Requests = OpenRequests<std::shared_ptr<ExecPeer>>;
  Requests requests_;
  const size_t limit_;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_EXEC_RELAY_H_
