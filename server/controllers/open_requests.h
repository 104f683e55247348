// OpenRequests: requests to agents that have not ended, each with its client. An agent answers a
// request by messages with its number, until one of them is the last. LogRelay and ExecRelay use
// it: they know the messages.
//
// A request ends when it is removed, for which there are four reasons: its last message, its
// client, the end of the agent's session, or a session that ended before it got the request. They
// may race on several threads. Exactly one of them removes the request, and whoever removes it
// reports its end.
#ifndef BERTH_SERVER_CONTROLLERS_OPEN_REQUESTS_H_
#define BERTH_SERVER_CONTROLLERS_OPEN_REQUESTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/model/ids.h"
#include "server/controllers/agent_gateway.h"
#include "support/errors.h"

namespace berth {

using AgentRequestId = uint64_t;  // never reused; from 1

// Thread-safe. Calls the gateway, and destroys clients, without its lock.
template <class Client>
class OpenRequests {
 public:
  enum class Fate { kOpen, kEnded };

  // The gateway outlives it. `limit`: requests that are open at once; `too_many` is the message
  // above it.
  OpenRequests(AgentGateway* gateway, size_t limit, std::string too_many)
      : gateway_(gateway), limit_(limit), too_many_(std::move(too_many)) {}

  // Sends message(id) to the node's agent, whose answers may come before this returns. UNAVAILABLE
  // if the node has no session, RESOURCE_EXHAUSTED above the limit: then nothing else reports the
  // end.
  absl::StatusOr<AgentRequestId> Open(NodeId node, Client client,
                                      absl::FunctionRef<v1::ServerMessage(AgentRequestId)> message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // To the agent. Does nothing once the request has ended.
  void Send(AgentRequestId request, v1::ServerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);

  // The agent answered: calls look(client) under the lock, which returns whether the request ends,
  // and must not block. False without a call if this session has no such request: it has ended, or
  // another agent made the number up.
  template <class Look>
  bool Receive(SessionId session, AgentRequestId request, Look look) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls change(client) under the lock, unless the request has ended.
  template <class Change>
  void Update(AgentRequestId request, Change change) ABSL_LOCKS_EXCLUDED(mutex_);

  // The client ends the request. Returns its session, or 0 if it has ended.
  SessionId Remove(AgentRequestId request) ABSL_LOCKS_EXCLUDED(mutex_);

  // The session is gone: ends its requests, and calls report(client, status) for each in the order
  // of their numbers, without the lock.
  template <class Report>
  void EndSession(SessionId session, Report report) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return open_.size();
  }

 private:
  static constexpr absl::Duration kTooManyRetry = absl::Seconds(10);

  struct Request {
    SessionId session = 0;
    Client client;
  };
  using Requests = std::map<AgentRequestId, Request>;

  AgentGateway* const gateway_;
  const size_t limit_;
  const std::string too_many_;
  mutable absl::Mutex mutex_;
  AgentRequestId next_ ABSL_GUARDED_BY(mutex_) = 1;
  Requests open_ ABSL_GUARDED_BY(mutex_);
};

template <class Client>
absl::StatusOr<AgentRequestId> OpenRequests<Client>::Open(
    NodeId node, Client client, absl::FunctionRef<v1::ServerMessage(AgentRequestId)> message) {
  const SessionId session = gateway_->CurrentSession(node);
  if (session == 0) return absl::UnavailableError("the node is not connected");
  AgentRequestId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (open_.size() >= limit_) {
      return RetryLaterError(absl::StatusCode::kResourceExhausted, too_many_, kTooManyRetry);
    }
    id = next_++;
    open_.emplace(id, Request{.session = session, .client = std::move(client)});
  }
  if (gateway_->SendToSession(session, message(id))) return id;
  // The session ended in the meantime. If EndSession was first, the client has its end from there.
  if (Remove(id) == 0) return id;
  return absl::UnavailableError("the node is not connected");
}

template <class Client>
void OpenRequests<Client>::Send(AgentRequestId request, v1::ServerMessage message) {
  SessionId session = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(request);
    if (found == open_.end()) return;
    session = found->second.session;
  }
  gateway_->SendToSession(session, std::move(message));
}

template <class Client>
template <class Look>
bool OpenRequests<Client>::Receive(SessionId session, AgentRequestId request, Look look) {
  typename Requests::node_type ended;  // destroyed after the lock is released
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(request);
  if (found == open_.end() || found->second.session != session) return false;
  if (look(found->second.client) == Fate::kEnded) ended = open_.extract(found);
  return true;
}

template <class Client>
template <class Change>
void OpenRequests<Client>::Update(AgentRequestId request, Change change) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(request);
  if (found != open_.end()) change(found->second.client);
}

template <class Client>
SessionId OpenRequests<Client>::Remove(AgentRequestId request) {
  typename Requests::node_type ended;  // destroyed after the lock is released
  absl::MutexLock lock(&mutex_);
  ended = open_.extract(request);
  return ended.empty() ? 0 : ended.mapped().session;
}

template <class Client>
template <class Report>
void OpenRequests<Client>::EndSession(SessionId session, Report report) {
  std::vector<Client> clients;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = open_.begin(); it != open_.end();) {
      if (it->second.session != session) {
        ++it;
        continue;
      }
      clients.push_back(std::move(it->second.client));
      it = open_.erase(it);
    }
  }
  for (Client& client : clients) {
    report(client, absl::UnavailableError("the node has disconnected"));
  }
}

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_OPEN_REQUESTS_H_
