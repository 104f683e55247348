#include "server/services/agent_service.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/access/permit.h"
#include "server/services/standby.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {
namespace {

using AgentReactor = grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>;

// The outgoing half of a stream. The gateway may hold it longer than gRPC keeps the stream: after
// Detach it drops messages.
class StreamLink final : public AgentLink {
 public:
  StreamLink(grpc::CallbackServerContext* context, AgentReactor* reactor)
      : context_(context), reactor_(reactor) {}

  void Send(v1::ServerMessage message) override ABSL_LOCKS_EXCLUDED(mutex_) {
    const size_t bytes = message.ByteSizeLong();
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    if (queue_.size() >= kMaxQueuedMessages || queued_bytes_ + bytes > kMaxQueuedBytes) {
      return Cut(absl::ResourceExhaustedError("the agent does not read its messages"));
    }
    queue_.push_back({std::move(message), bytes});
    queued_bytes_ += bytes;
    Advance();
  }

  void Close(absl::Status status) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    closing_ = true;
    status_ = std::move(status);
    Advance();
  }

  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    queued_bytes_ -= queue_.front().bytes;
    queue_.pop_front();
    if (!ok) DropQueue();
    Advance();
  }

  // The agent is gone: no more writes are possible.
  void OnCancelled() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    DropQueue();
    Advance();
  }

  bool open() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return !closing_;
  }

  // gRPC has finished with the stream.
  void Detach() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    finished_ = true;
    queue_.clear();
  }

 private:
  struct Queued {
    v1::ServerMessage message;
    size_t bytes;
  };

  // Writes the next message, or finishes when none is left and no more will come.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!queue_.empty()) {
      writing_ = true;
      reactor_->StartWrite(&queue_.front().message);
    } else if (closing_) {
      finished_ = true;
      reactor_->Finish(ToGrpcStatus(status_));
    }
  }

  // An agent that does not read would not read a final status either.
  void Cut(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closing_ = true;
    status_ = std::move(status);
    DropQueue();
    context_->TryCancel();
    Advance();
  }

  // Everything but the message being written.
  void DropQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closing_ = true;
    while (queue_.size() > (writing_ ? 1u : 0u)) {
      queued_bytes_ -= queue_.back().bytes;
      queue_.pop_back();
    }
  }

  grpc::CallbackServerContext* const context_;
  AgentReactor* const reactor_;
  absl::Mutex mutex_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);  // the front one is being written
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;   // accepts no more messages
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called, or gRPC has finished
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// One stream. Owned by gRPC; deletes itself when gRPC has finished with it.
class AgentStream final : public AgentReactor {
 public:
  AgentStream(grpc::CallbackServerContext* context, AgentGateway* gateway, const AgentDoor& door)
      : gateway_(gateway),
        door_(door),
        call_(door.callers->CallOf(Rpc::kAgentServiceConnect, *context)),
        link_(std::make_shared<StreamLink>(context, this)),
        session_(gateway->OnConnect(link_)) {
    if (door.leadership != nullptr && !door.loop->leads()) {
      Call call = call_;
      MarkStandby(*door.leadership, 0, *context, &call);
      link_->Close(CheckOnStandby(*door.leadership, call));
    }
    if (link_->open()) StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return link_->Close(absl::OkStatus());
    if (!link_->open()) return;  // cut off
    if (message_.has_hello()) {
      absl::Status status = Enter(message_.hello().node());
      if (!status.ok()) {
        LogWarn("an agent is refused", {{"node", message_.hello().node()}, {"error", status}});
        if (door_.refused != nullptr) {
          door_.refused->Note(ActorOf(call_), absl::StrCat("node/", message_.hello().node()),
                              status);
        }
        return link_->Close(std::move(status));
      }
    }
    gateway_->OnMessage(session_, std::move(message_));
    message_.Clear();
    if (link_->open()) StartRead(&message_);
  }
  void OnWriteDone(bool ok) override { link_->OnWritten(ok); }
  void OnCancel() override { link_->OnCancelled(); }
  void OnDone() override {
    link_->Detach();
    gateway_->OnClosed(session_);
    delete this;
  }

 private:
  // Whether the agent may speak for the node; it is cut off once it may not any more.
  absl::Status Enter(const std::string& node) {
    if (!call_.caller->refused.ok()) return call_.caller->refused;
    if (call_.caller->task.has_value()) {
      return absl::PermissionDeniedError(absl::StrCat(TextOf(*call_.caller), " is no agent"));
    }
    absl::Status status =
        MayBeAgentOf(*call_.caller, node, door_.callers->access().node_identities());
    if (!status.ok()) return status;
    const auto may = [caller = call_.caller, clock = door_.clock, node](const ClusterState& state) {
      absl::Status status = CheckNotExpired(*caller, clock->Now());
      return status.ok() ? CheckNotRevoked(state, *caller, node) : status;
    };
    entry_ = door_.streams->Add(may, [link = link_](const absl::Status& why) { link->Close(why); });
    return door_.loop->Read([&](const ClusterState& state, uint64_t) { return may(state); });
  }

  AgentGateway* const gateway_;
  const AgentDoor door_;
  const Call call_;
  const std::shared_ptr<StreamLink> link_;
  const SessionId session_;
  std::unique_ptr<OpenStreams::Entry> entry_;
  v1::AgentMessage message_;
};

}  // namespace

AgentReactor* AgentService::Connect(grpc::CallbackServerContext* context) {
  return new AgentStream(context, gateway_, door_);
}

// Peers that ping more often are cut off. Agents ping every 20 s and clients every 30 s, however
// long the lease is.
constexpr int kMinPingIntervalMs = 5'000;

void AddAgentKeepalive(absl::Duration lease, grpc::ServerBuilder& builder) {
  const auto lease_ms = static_cast<int>(absl::ToInt64Milliseconds(lease));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, lease_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, lease_ms / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             std::min(lease_ms / 4, kMinPingIntervalMs));
}

}  // namespace berth
