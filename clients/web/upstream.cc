#include "clients/web/upstream.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <deque>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "clients/web/bounds.h"
#include "support/errors.h"
#include "support/request_id.h"
#include "support/standby.h"

namespace berth::web {
namespace {

using grpc::ByteBuffer;

constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 1000;
constexpr int kKeepaliveMs = 10'000;  // berthd cuts off peers that ping more often than every 5 s
constexpr int kKeepaliveTimeoutMs = 5'000;

std::shared_ptr<grpc::Channel> OpenUpstream(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Connections of different certificates are never shared.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return ByteBuffer(&slice, 1);
}

std::string BytesOf(const ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// "" if the server does not say who leads.
std::string LeaderIn(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kLeaderMetadata);
  if (found == trailers.end()) return "";
  return std::string(found->second.data(), found->second.size());
}

bool IsStandby(const grpc::Status& status) {
  return absl::StartsWith(status.error_message(), kStandbyMessage);
}

enum class Requests { kOne, kSeveral };

class Stream final : public UpstreamDialog, public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  using OnMessage = std::function<void(const std::string&)>;
  using OnEnd = std::function<void(absl::Status, std::string leader)>;

  static std::shared_ptr<Stream> Begin(const std::shared_ptr<grpc::Channel>& channel,
                                       const Upstream::Call& call, Requests requests,
                                       OnMessage on_message, OnEnd on_end) {
    auto stream = std::make_shared<Stream>(channel, std::move(on_message), std::move(on_end));
    stream->self_ = stream;
    stream->request_ = BufferOf(call.request);
    grpc::WriteOptions options;
    if (requests == Requests::kOne) options.set_last_message();
    stream->stub_.PrepareBidiStreamingCall(&stream->context_, call.method, {}, stream.get());
    stream->StartWrite(&stream->request_, options);
    stream->AddHold();  // for Next and Send from other threads, until a read fails
    stream->StartCall();
    return stream;
  }

  Stream(const std::shared_ptr<grpc::Channel>& channel, OnMessage on_message, OnEnd on_end)
      : stub_(channel), on_message_(std::move(on_message)), on_end_(std::move(on_end)) {}

  void Next() override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (held_) StartRead(&answer_);
  }
  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    context_.TryCancel();
    Release();
  }
  bool Send(const std::string& request) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!held_ || broken_ || waiting_bytes_ + request.size() > kDialogBytes) return false;
    waiting_.push_back(request);
    waiting_bytes_ += request.size();
    WriteNext();
    return true;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Release();
    on_message_(BytesOf(answer_));
  }
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    broken_ |= !ok;
    WriteNext();
  }
  void OnDone(const grpc::Status& status) override {
    on_end_(FromGrpcStatus(status), LeaderIn(context_));
    on_message_ = nullptr;
    on_end_ = nullptr;
    std::exchange(self_, nullptr).reset();
  }

 private:
  void Release() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(held_, false)) RemoveHold();
  }
  // Only with the hold: the stream may be over otherwise.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || broken_ || !held_ || waiting_.empty()) return;
    request_ = BufferOf(waiting_.front());
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
    writing_ = true;
    StartWrite(&request_);
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  OnMessage on_message_;
  OnEnd on_end_;
  std::shared_ptr<Stream> self_;  // until OnDone
  ByteBuffer request_, answer_;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;  // the first request
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write failed
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

// One call, over all its attempts.
struct Upstream::Attempt {
  Call call;
  std::function<void(absl::StatusOr<std::string>)> done;
  std::chrono::system_clock::time_point deadline;
  size_t tries_left = 0;
  size_t server = 0;
  ByteBuffer request, answer;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericStub> stub;
};

Upstream::Upstream(const std::vector<std::string>& servers, const UpstreamIdentity& identity) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!identity.servers.empty()) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = identity.servers;
    options.pem_private_key = identity.key;
    options.pem_cert_chain = identity.certificate;
    credentials = grpc::SslCredentials(options);
  }
  for (const std::string& server : servers) {
    servers_.push_back({server, OpenUpstream(server, credentials)});
  }
}

void Upstream::Unary(Call call, std::function<void(absl::StatusOr<std::string>)> done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->call = std::move(call);
  attempt->done = std::move(done);
  attempt->deadline = std::chrono::system_clock::now() + absl::ToChronoNanoseconds(kCallTimeout);
  attempt->tries_left = servers_.size() > 1 ? 2 * servers_.size() : 1;
  attempt->request = BufferOf(attempt->call.request);
  Try(std::move(attempt));
}

void Upstream::Try(std::shared_ptr<Attempt> attempt) {
  attempt->server = current();
  --attempt->tries_left;
  attempt->context = std::make_unique<grpc::ClientContext>();
  attempt->context->set_deadline(attempt->deadline);
  if (!attempt->call.request_id.empty()) {
    attempt->context->AddMetadata(kRequestIdMetadata, attempt->call.request_id);
  }
  attempt->stub = std::make_unique<grpc::GenericStub>(servers_[attempt->server].channel);
  Attempt* const raw = attempt.get();
  raw->stub->UnaryCall(raw->context.get(), raw->call.method, {}, &raw->request, &raw->answer,
                       [self = shared_from_this(), attempt = std::move(attempt)](
                           const grpc::Status& status) { self->End(attempt, status); });
}

void Upstream::End(std::shared_ptr<Attempt> attempt, const grpc::Status& status) {
  if (status.ok()) return attempt->done(BytesOf(attempt->answer));
  const bool elsewhere = status.error_code() == grpc::StatusCode::UNAVAILABLE || IsStandby(status);
  if (elsewhere) Leave(attempt->server, LeaderIn(*attempt->context));
  // Without a request id, berthd may have done it.
  const bool safe = IsStandby(status) || !attempt->call.request_id.empty();
  if (elsewhere && safe && attempt->tries_left > 0) return Try(std::move(attempt));
  attempt->done(FromGrpcStatus(status));
}

std::shared_ptr<UpstreamStream> Upstream::Open(const Call& call,
                                               std::function<void(const std::string&)> on_message,
                                               std::function<void(absl::Status)> on_end) {
  const size_t server = current();
  return Stream::Begin(servers_[server].channel, call, Requests::kOne, std::move(on_message),
                       EndOf(server, std::move(on_end)));
}

std::shared_ptr<UpstreamDialog> Upstream::OpenDialog(
    const Call& call, std::function<void(const std::string&)> on_message,
    std::function<void(absl::Status)> on_end) {
  const size_t server = current();
  return Stream::Begin(servers_[server].channel, call, Requests::kSeveral, std::move(on_message),
                       EndOf(server, std::move(on_end)));
}

// A server that does not lead, or does not answer, is left.
std::function<void(absl::Status, std::string)> Upstream::EndOf(
    size_t server, std::function<void(absl::Status)> on_end) {
  return [self = shared_from_this(), server, on_end = std::move(on_end)](
             const absl::Status& status, const std::string& leader) {
    const bool elsewhere =
        absl::IsUnavailable(status) || absl::StartsWith(status.message(), kStandbyMessage);
    if (elsewhere) self->Leave(server, leader);
    on_end(status);
  };
}

size_t Upstream::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

void Upstream::Leave(size_t server, const std::string& leader) {
  absl::MutexLock lock(&mutex_);
  if (server != current_) return;
  current_ = (server + 1) % servers_.size();
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].address == leader && i != server) current_ = i;
  }
}

}  // namespace berth::web
