#include "clients/agent/grpc_link.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "support/server_list.h"
#include "support/standby.h"

namespace berth {
namespace {

constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// With several servers: a machine that is gone shows soon. berthd cuts off peers that ping more
// often than every 5 s.
constexpr int kKeepaliveOfSeveralMs = 6'000;
constexpr int kKeepaliveTimeoutOfSeveralMs = 3'000;
constexpr int kConnectOfSeveralMs = 2'000;
constexpr int kMaxConnectBackoffMs = 2'000;  // the agent's logic handles the backoff
constexpr int kTaskIdleMs = 60'000;
constexpr int kMaxMessageBytes = 64 << 20;  // a Start for a 10,000-node gang, with margin

}  // namespace

// One connection. gRPC's reactor keeps itself alive through self_ until OnDone.
class GrpcLink::Stream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ServerMessage> {
 public:
  static std::shared_ptr<Stream> Begin(v1::AgentService::Stub& stub, LinkEvents& events,
                                       std::shared_ptr<Streams> streams, uint64_t connection) {
    auto stream = std::make_shared<Stream>(events, std::move(streams), connection);
    stream->self_ = stream;
    stub.async()->Connect(&stream->context_, stream.get());
    stream->StartRead(&stream->incoming_);
    stream->AddHold();  // until EndHold: writes come from outside the callbacks
    stream->StartCall();
    return stream;
  }

  Stream(LinkEvents& events, std::shared_ptr<Streams> streams, uint64_t connection)
      : events_(events), streams_(std::move(streams)), connection_(connection) {
    absl::MutexLock lock(&streams_->mutex);
    ++streams_->count;
  }

  void Write(const v1::AgentMessage& message) {
    absl::MutexLock lock(&mutex_);
    if (!open_) return;
    queued_bytes_ += message.ByteSizeLong();
    queue_.push_back(message);
    if (!writing_) WriteNext();
  }

  void Cancel() {
    {
      absl::MutexLock lock(&mutex_);
      silent_ = true;
      EndHold();
    }
    context_.TryCancel();
  }

  size_t queued_bytes() const {
    absl::MutexLock lock(&mutex_);
    return queued_bytes_;
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      return EndHold();  // OnDone reports the reason
    }
    if (!silent()) events_.OnMessage(connection_, std::move(incoming_));
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    if (!ok) return EndHold();
    if (open_ && !queue_.empty()) WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    const auto& trailers = context_.GetServerTrailingMetadata();
    if (const auto leader = trailers.find(kLeaderMetadata); leader != trailers.end()) {
      absl::MutexLock lock(&streams_->mutex);
      if (streams_->named_by < connection_) {
        streams_->named_by = connection_;
        streams_->leader = std::string(leader->second.data(), leader->second.size());
      }
    }
    if (!silent()) {
      events_.OnDisconnected(connection_,
                             status.ok() ? "the server ended the stream" : status.error_message());
    }
    const std::shared_ptr<Streams> streams = streams_;
    self_.reset();  // may delete this
    absl::MutexLock lock(&streams->mutex);
    --streams->count;
  }

 private:
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    writing_ = true;
    grpc::WriteOptions options;
    if (queue_.size() > 1) options.set_buffer_hint();  // more follows: one packet for many
    StartWrite(&queue_.front(), options);
  }
  void EndHold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!open_) return;
    open_ = false;
    RemoveHold();
  }
  bool silent() const {
    absl::MutexLock lock(&mutex_);
    return silent_;
  }

  LinkEvents& events_;
  const std::shared_ptr<Streams> streams_;
  const uint64_t connection_;
  std::shared_ptr<Stream> self_;
  grpc::ClientContext context_;
  v1::ServerMessage incoming_;  // owned by the read in flight
  mutable absl::Mutex mutex_;
  std::deque<v1::AgentMessage> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;     // writes may be started
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;  // no more events are delivered
};

GrpcLink::GrpcLink(const std::vector<AgentServer>& servers, LinkEvents& events)
    : choice_(servers.size()), events_(events), streams_(std::make_shared<Streams>()) {
  SetChannels(servers);
}

// The channels before are kept until a new one has a call. Otherwise the end of a stream, on one of
// gRPC's threads, could release the last channel of the process, and gRPC's threads with it.
void GrpcLink::SetChannels(const std::vector<AgentServer>& servers) {
  for (Server& server : servers_) before_.push_back(std::move(server));
  servers_.clear();
  for (const AgentServer& server : servers)
    servers_.push_back({server, v1::AgentService::NewStub(server.channel)});
}

GrpcLink::~GrpcLink() {
  Disconnect();
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(streams_->mutex) {
    return streams_->count == 0;
  };
  absl::MutexLock lock(&streams_->mutex, absl::Condition(&none));
}

void GrpcLink::Connect() {
  Disconnect();
  // The logic decides when to try: while the channel backs off by itself, a connect would fail
  // without an attempt.
  const Server& server = servers_[choice_.current()];
  grpc::experimental::ChannelResetConnectionBackoff(server.at.channel.get());
  connection_ = ++connections_;
  stream_ = Stream::Begin(*server.stub, events_, streams_, connection_);
  before_.clear();
}

// What a server says is only a hint: it can name no address that is not configured.
std::optional<size_t> GrpcLink::Leader() const {
  std::string leader;
  {
    absl::MutexLock lock(&streams_->mutex);
    if (streams_->named_by != connections_) return std::nullopt;
    leader = streams_->leader;
  }
  const auto found = std::find_if(servers_.begin(), servers_.end(), [&](const Server& server) {
    return server.at.address == leader;
  });
  if (found == servers_.end()) return std::nullopt;
  return static_cast<size_t>(found - servers_.begin());
}

bool GrpcLink::Leave() {
  Server& left = servers_[choice_.current()];
  const bool answered = left.at.channel->GetState(false) == GRPC_CHANNEL_READY;
  if (!answered && left.at.renew != nullptr) {
    const AgentServer renewed = {left.at.address, left.at.renew(), left.at.renew};
    before_.push_back(std::exchange(left, {renewed, v1::AgentService::NewStub(renewed.channel)}));
  }
  return choice_.Leave(answered, Leader());
}

void GrpcLink::Send(const v1::AgentMessage& message) {
  if (stream_ != nullptr) stream_->Write(message);
}

void GrpcLink::Disconnect() {
  if (stream_ == nullptr) return;
  stream_->Cancel();
  stream_.reset();
  connection_ = 0;
}

size_t GrpcLink::QueuedBytes() const { return stream_ == nullptr ? 0 : stream_->queued_bytes(); }

namespace {

grpc::ChannelArguments LinkArguments(bool several) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, several ? kKeepaliveOfSeveralMs : kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   several ? kKeepaliveTimeoutOfSeveralMs : kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxConnectBackoffMs);
  if (several) {
    // Also limits how long a connection may take.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectOfSeveralMs);
  }
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return arguments;
}

}  // namespace

std::vector<AgentServer> MakeAgentChannels(
    const std::string& servers, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const std::vector<std::string> addresses = ServersOf(servers);
  const grpc::ChannelArguments arguments = LinkArguments(addresses.size() > 1);
  std::vector<AgentServer> made;
  for (const std::string& address : addresses) {
    const auto make = [address, credentials, arguments] {
      return grpc::CreateCustomChannel(address, credentials, arguments);
    };
    made.push_back({address, make(), nullptr});
    if (addresses.size() > 1) made.back().renew = make;
  }
  return made;
}

std::vector<std::shared_ptr<grpc::Channel>> MakeTaskChannels(
    const std::string& servers, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const std::vector<std::string> addresses = ServersOf(servers);
  grpc::ChannelArguments arguments = LinkArguments(addresses.size() > 1);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, kTaskIdleMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 2);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& address : addresses)
    channels.push_back(grpc::CreateCustomChannel(address, credentials, arguments));
  return channels;
}

}  // namespace berth
