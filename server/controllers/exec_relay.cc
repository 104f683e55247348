#include "server/controllers/exec_relay.h"

#include <utility>

namespace berth {

ExecRelay::ExecRelay(AgentGateway* gateway, size_t limit)
    : requests_(gateway, limit, "too many commands run inside tasks (limits.execs)"),
      limit_(limit) {}

absl::StatusOr<ExecRelay::RequestId> ExecRelay::Open(NodeId node, v1::OpenExec open,
                                                     std::shared_ptr<ExecPeer> peer) {
  return requests_.Open(node, std::move(peer), [&open](RequestId id) {
    v1::ServerMessage message;
    *message.mutable_open_exec() = std::move(open);
    message.mutable_open_exec()->set_request(id);
    return message;
  });
}

void ExecRelay::Send(RequestId request, v1::ExecInput input) {
  v1::ServerMessage message;
  *message.mutable_exec_input() = std::move(input);
  message.mutable_exec_input()->set_request(request);
  requests_.Send(request, std::move(message));
}

// The agent hears of it before the request's place is free: agents count their commands, too.
void ExecRelay::Cancel(RequestId request) {
  v1::ExecInput input;
  input.set_cancel(true);
  Send(request, std::move(input));
  requests_.Remove(request);
}

// Output of a session that is gone, or of another agent stream, was in flight when the session was
// cancelled: it is dropped.
void ExecRelay::OnExecOutput(SessionId session, v1::ExecOutput output) {
  std::shared_ptr<ExecPeer> peer;
  const auto look = [&](const std::shared_ptr<ExecPeer>& client) {
    peer = client;
    return output.end() ? Requests::Fate::kEnded : Requests::Fate::kOpen;
  };
  if (requests_.Receive(session, output.request(), look)) peer->OnOutput(std::move(output));
}

void ExecRelay::OnExecSessionGone(SessionId session) {
  requests_.EndSession(session, [](const std::shared_ptr<ExecPeer>& peer, absl::Status gone) {
    peer->OnGone(std::move(gone));
  });
}

}  // namespace berth
