#include "server/controllers/exec_relay.h"

#include <utility>
#include <vector>

#include "support/errors.h"

namespace berth {
namespace {

constexpr absl::Duration kTooManyRetry = absl::Seconds(10);

}  // namespace

absl::StatusOr<ExecRelay::RequestId> ExecRelay::Open(NodeId node, v1::OpenExec open,
                                                     std::shared_ptr<ExecPeer> peer) {
  const SessionId session = gateway_->CurrentSession(node);
  if (session == 0) return absl::UnavailableError("the node is not connected");
  RequestId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (requests_.size() >= limit_)
      return RetryLaterError(absl::StatusCode::kResourceExhausted,
                             "too many commands run inside tasks (limits.execs)", kTooManyRetry);
    id = next_++;
    requests_[id] = {.session = session, .peer = std::move(peer)};
  }
  v1::ServerMessage message;
  *message.mutable_open_exec() = std::move(open);
  message.mutable_open_exec()->set_request(id);
  if (gateway_->SendToSession(session, std::move(message))) return id;
  // It ended in the meantime. Whoever removes the request reports its end: if OnExecSessionGone was
  // first, the peer has been notified.
  absl::MutexLock lock(&mutex_);
  if (requests_.erase(id) == 0) return id;
  return absl::UnavailableError("the node is not connected");
}

void ExecRelay::Send(RequestId request, v1::ExecInput input) {
  SessionId session = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = requests_.find(request);
    if (found == requests_.end()) return;
    session = found->second.session;
  }
  v1::ServerMessage message;
  *message.mutable_exec_input() = std::move(input);
  message.mutable_exec_input()->set_request(request);
  gateway_->SendToSession(session, std::move(message));
}

void ExecRelay::Cancel(RequestId request) {
  v1::ExecInput input;
  input.set_cancel(true);
  Send(request, std::move(input));
  absl::MutexLock lock(&mutex_);
  requests_.erase(request);
}

size_t ExecRelay::open() const {
  absl::MutexLock lock(&mutex_);
  return requests_.size();
}

// Output of a session that is gone, or of another agent stream, was in flight when the session was
// cancelled: it is dropped.
void ExecRelay::OnExecOutput(SessionId session, v1::ExecOutput output) {
  std::shared_ptr<ExecPeer> peer;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = requests_.find(output.request());
    if (found == requests_.end() || found->second.session != session) return;
    peer = found->second.peer;
    if (output.end()) requests_.erase(found);
  }
  peer->OnOutput(std::move(output));
}

void ExecRelay::OnExecSessionGone(SessionId session) {
  std::vector<std::shared_ptr<ExecPeer>> peers;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = requests_.begin(); it != requests_.end();) {
      if (it->second.session != session) {
        ++it;
        continue;
      }
      peers.push_back(std::move(it->second.peer));
      it = requests_.erase(it);
    }
  }
  for (const auto& peer : peers) peer->OnGone(absl::UnavailableError("the node has disconnected"));
}

}  // namespace berth
