#include "clients/cpp/client.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "support/server_list.h"
#include "support/standby.h"
#include "support/unsynced.h"

namespace berth {
namespace {

// Longer deadlines count as none: gRPC's clock arithmetic overflows earlier than absl's.
constexpr absl::Duration kLongestDeadline = absl::Hours(24 * 365);
// How often a refused connection is retried while a call waits for it. gRPC's default of 1 s,
// growing to 2 minutes, would exceed ClientOptions::connect_timeout.
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 400;
// Detects a dead server on an idle stream.
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

// With several servers: sooner, because another may lead. berthd cuts off peers that ping more
// often than every 5 s.
constexpr int kKeepaliveOfSeveralMs = 6'000;
constexpr int kKeepaliveTimeoutOfSeveralMs = 3'000;
constexpr absl::Duration kMaxBackoffOfSeveral = absl::Seconds(1);

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    bool several, absl::Duration connect_timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // Retry does that; it knows which calls are safe
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, several ? kKeepaliveOfSeveralMs : kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   several ? kKeepaliveTimeoutOfSeveralMs : kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (several) {
    // A new channel connects at once, and no longer than this.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                     static_cast<int>(absl::ToInt64Milliseconds(connect_timeout)));
  }
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ClientOptions& options) {
  const auto credentials = MakeChannelCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  return MakeChannel(options.server, *credentials, false, options.connect_timeout);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options,
                                                        const ClientEnvironment& environment) {
  auto credentials = MakeChannelCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  const size_t servers = ServersOf(options.server).size();
  if (absl::Status status = servers > 1 ? CheckServerList(options.server) : absl::OkStatus();
      !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the list of servers: ", status.message()));
  }
  return std::unique_ptr<Client>(new Client(options, environment, *std::move(credentials)));
}

Client::Client(const ClientOptions& options, const ClientEnvironment& environment,
               std::shared_ptr<grpc::ChannelCredentials> credentials)
    : options_(options),
      environment_(environment),
      credentials_(std::move(credentials)),
      choice_(ServersOf(options.server).size()) {
  for (std::string& address : ServersOf(options.server))
    servers_.push_back({std::move(address), nullptr, {}});
  if (several())
    options_.retry.max_backoff = std::min(options_.retry.max_backoff, kMaxBackoffOfSeveral);
}

Client::Server& Client::Current() {
  Server& server = servers_[choice_.current()];
  if (server.channel != nullptr) return server;
  server.channel = MakeChannel(server.address, credentials_, several(), options_.connect_timeout);
  server.stubs = {v1::JobService::NewStub(server.channel),
                  v1::QueueService::NewStub(server.channel),
                  v1::NodeService::NewStub(server.channel),
                  v1::ClusterService::NewStub(server.channel),
                  v1::WatchService::NewStub(server.channel),
                  v1::ExplainService::NewStub(server.channel),
                  v1::HyperNodeService::NewStub(server.channel),
                  v1::AccessService::NewStub(server.channel),
                  v1::AuditService::NewStub(server.channel),
                  v1::PriorityClassService::NewStub(server.channel),
                  v1::HistoryService::NewStub(server.channel)};
  return server;
}

absl::Status Client::Repeat(absl::FunctionRef<absl::Status(absl::Duration left)> attempt) {
  return Retry(options_.retry, environment_, options_.timeout, attempt,
               [this] { return at_once_; });
}

// The trailer is only a hint: it can name no address that is not configured.
std::optional<size_t> Client::LeaderIn(const grpc::ClientContext& context) const {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kLeaderMetadata);
  if (found == trailers.end()) return std::nullopt;
  const absl::string_view leader(found->second.data(), found->second.size());
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].address == leader) return i;
  }
  return std::nullopt;
}

absl::Status Client::End(const grpc::ClientContext& context, const grpc::Status& answer) {
  absl::Status status = FromGrpcStatus(answer);
  if (status.ok() && options_.stale) NoteStale(context);
  at_once_ = false;
  // A server that has too much to do leads nevertheless.
  if (!IsRetryable(status) || absl::IsResourceExhausted(status)) {
    choice_.Stay();
    return status;
  }
  if (!several()) return status;
  const bool connected = Connected();
  if (!connected) Current().channel = nullptr;
  at_once_ =
      choice_.Leave(connected, LeaderIn(context)) && RetryDelayOf(status) <= absl::ZeroDuration();
  return status;
}

void Client::NoteStale(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto& first = context.GetServerInitialMetadata();
  auto found = trailers.find(kStaleRevisionMetadata);
  if (found == trailers.end()) found = first.find(kStaleRevisionMetadata);
  if (found == trailers.end() || found == first.end()) return;
  const std::string revision(found->second.data(), found->second.size());
  uint64_t now = 0, before = 0;
  if (!absl::SimpleAtoi(revision, &now)) return;
  if (stale_.has_value() && absl::SimpleAtoi(stale_->revision, &before) && before <= now) return;
  stale_ = {.revision = revision, .server = server()};
}

bool Client::PerhapsDone(bool connected, const absl::Status& status) const {
  return (connected || !several()) && !absl::StartsWith(status.message(), kStandbyMessage);
}

absl::Status Client::CallOnce(absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call) {
  absl::Status taken;
  const absl::Status status = Repeat([&](absl::Duration left) {
    grpc::ClientContext context;
    AwaitConnection(left);
    const bool connected = Connected();
    const absl::Status attempt = End(context, call(&context));
    if (!PerhapsDone(connected, attempt)) return attempt;
    taken = attempt;
    return absl::OkStatus();
  });
  return status.ok() ? taken : status;
}

void StreamStop::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

bool StreamStop::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool StreamStop::Enter(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  context_ = context;
  return !stopped_;
}

void StreamStop::Leave() {
  absl::MutexLock lock(&mutex_);
  context_ = nullptr;
}

void Client::AllowWeaker(grpc::ClientContext* context) const {
  if (options_.stale) context->AddMetadata(kStaleMetadata, kStaleAllowed);
  if (options_.unsynced) context->AddMetadata(kUnsyncedMetadata, kUnsyncedAllowed);
}

void Client::NoteUnsynced(const grpc::ClientContext& context) {
  if (!options_.unsynced) return;
  saw_unsynced_ |= context.GetServerTrailingMetadata().contains(kUnsyncedMetadata);
}

// gRPC measures deadlines on the system clock.
void Client::SetDeadline(grpc::ClientContext* context, absl::Duration left) {
  if (left > kLongestDeadline) return;
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(left));
}

// gRPC drives a connection only while a thread waits on its channel, and otherwise checks it every
// 5 s: it would notice a server that came back during Retry's sleep much too late.
void Client::AwaitConnection(absl::Duration left) {
  grpc::Channel& channel = *Current().channel;
  const auto deadline = absl::ToChronoTime(absl::Now() + std::min(left, options_.connect_timeout));
  if (several()) {
    // Until it is connected or refused; then the next server is tried.
    for (;;) {
      const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
      if (state != GRPC_CHANNEL_IDLE && state != GRPC_CHANNEL_CONNECTING) return;
      if (!channel.WaitForStateChange(state, deadline)) return;
    }
  }
  if (channel.GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_TRANSIENT_FAILURE) return;
  channel.WaitForConnected(deadline);
}

std::string Client::NewRequestId() {
  return absl::StrFormat("%016x%016x", environment_.random->Next(), environment_.random->Next());
}

absl::StatusOr<v1::SubmitJobsResponse> Client::Submit(v1::SubmitJobsRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Call(&v1::JobService::StubInterface::SubmitJobs, request);
}

absl::StatusOr<v1::Queue> Client::CreateQueue(v1::CreateQueueRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Call(&v1::QueueService::StubInterface::CreateQueue, request);
}

absl::StatusOr<v1::PriorityClass> Client::CreatePriorityClass(
    v1::CreatePriorityClassRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Call(&v1::PriorityClassService::StubInterface::CreatePriorityClass, request);
}

absl::StatusOr<v1::HyperNode> Client::CreateHyperNode(v1::CreateHyperNodeRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Call(&v1::HyperNodeService::StubInterface::CreateHyperNode, request);
}

absl::StatusOr<v1::ApplyHyperNodesResponse> Client::ApplyHyperNodes(
    v1::ApplyHyperNodesRequest request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return Call(&v1::HyperNodeService::StubInterface::ApplyHyperNodes, request);
}

template <class Stub, class Request, class Response>
absl::Status Client::Delete(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                         Response*),
                            const Request& request) {
  bool perhaps_done = false;
  const std::string id = NewRequestId();
  return Repeat([&](absl::Duration left) {
    grpc::ClientContext context;
    AwaitConnection(left);
    SetDeadline(&context, left);
    context.AddMetadata(kRequestIdMetadata, id);
    Response response;
    const bool connected = Connected();
    const absl::Status status =
        End(context, (StubOf<Stub>().*method)(&context, request, &response));
    if (perhaps_done && absl::IsNotFound(status)) return absl::OkStatus();
    perhaps_done |= PerhapsDone(connected, status);
    return status;
  });
}

absl::Status Client::DeleteJob(const std::string& name) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  return Delete(&v1::JobService::StubInterface::DeleteJob, request);
}

absl::Status Client::DeleteQueue(const std::string& name, const std::string& etag) {
  v1::DeleteQueueRequest request;
  request.set_name(name);
  request.set_etag(etag);
  return Delete(&v1::QueueService::StubInterface::DeleteQueue, request);
}

absl::Status Client::DeletePriorityClass(const std::string& name) {
  v1::DeletePriorityClassRequest request;
  request.set_name(name);
  return Delete(&v1::PriorityClassService::StubInterface::DeletePriorityClass, request);
}

absl::Status Client::DeleteNode(const std::string& name) {
  v1::DeleteNodeRequest request;
  request.set_name(name);
  return Delete(&v1::NodeService::StubInterface::DeleteNode, request);
}

absl::Status Client::DeleteHyperNode(const std::string& name) {
  v1::DeleteHyperNodeRequest request;
  request.set_name(name);
  return Delete(&v1::HyperNodeService::StubInterface::DeleteHyperNode, request);
}

absl::Status Client::WatchOnce(v1::WatchRequest* request, absl::Duration left, Backoff* backoff,
                               absl::FunctionRef<bool(const v1::WatchResponse&)> see, bool* ended) {
  grpc::ClientContext context;
  AwaitConnection(left);
  SetDeadline(&context, left);
  auto stream = stub<v1::WatchService>().Watch(&context, *request);
  v1::WatchResponse response;
  while (stream->Read(&response)) {
    backoff->Reset();
    choice_.Stay();
    request->set_from_revision(response.revision());
    request->set_incarnation(response.incarnation());
    if (options_.on_answer != nullptr) options_.on_answer(&response);
    if (see(response)) continue;
    *ended = true;
    context.TryCancel();
    stream->Finish();
    return absl::OkStatus();
  }
  return End(context, stream->Finish());
}

absl::Status Client::ReadLogsOnce(const v1::ReadLogsRequest& request,
                                  absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                                  StreamStop* stop) {
  grpc::ClientContext context;
  AwaitConnection(options_.timeout);
  auto stream = stub<v1::JobService>().ReadLogs(&context, request);
  if (stop != nullptr && !stop->Enter(&context)) context.TryCancel();
  v1::ReadLogsResponse response;
  bool enough = false;
  while (!enough && stream->Read(&response)) {
    choice_.Stay();
    enough = !see(response);
    if (enough) context.TryCancel();
  }
  if (stop != nullptr) stop->Leave();
  const grpc::Status status = stream->Finish();
  return enough ? absl::OkStatus() : End(context, status);
}

absl::Status Client::ReadLogs(v1::ReadLogsRequest request,
                              absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                              StreamStop* stop) {
  Backoff backoff(options_.retry, environment_.random);
  absl::Duration end = environment_.clock->Steady() + options_.timeout;
  bool enough = false;
  bool may_go_on = true;
  const auto note = [&](const v1::ReadLogsResponse& response) {
    backoff.Reset();
    end = request.follow() ? absl::InfiniteDuration()
                           : environment_.clock->Steady() + options_.timeout;
    may_go_on = response.has_next();
    request.set_attempt(response.attempt());
    *request.mutable_from() = response.next();
    request.clear_tail_lines();
    enough = !see(response);
    return !enough;
  };
  for (;;) {
    const absl::Status status = ReadLogsOnce(request, note, stop);
    if (enough || (stop != nullptr && stop->stopped())) return absl::OkStatus();
    if (status.ok() || !may_go_on || !IsRetryable(status)) return status;
    const absl::Duration wait =
        at_once_ ? absl::ZeroDuration() : backoff.Next(RetryDelayOf(status));
    if (environment_.clock->Steady() + wait >= end) return status;
    if (!at_once_) environment_.sleeper->Sleep(wait);
  }
}

absl::Status Client::Watch(v1::WatchRequest request,
                           absl::FunctionRef<bool(const v1::WatchResponse&)> see,
                           absl::Duration timeout) {
  Backoff backoff(options_.retry, environment_.random);
  const absl::Duration end = environment_.clock->Steady() + timeout;
  for (;;) {
    bool ended = false;
    const absl::Status status =
        WatchOnce(&request, end - environment_.clock->Steady(), &backoff, see, &ended);
    if (ended) return absl::OkStatus();
    // A server that ends the stream cleanly is shutting down: the call is retried.
    if (!status.ok() && !IsRetryable(status)) return status;
    const absl::Duration wait =
        at_once_ ? absl::ZeroDuration() : backoff.Next(RetryDelayOf(status));
    if (environment_.clock->Steady() + wait >= end)
      return absl::DeadlineExceededError("the watch timed out");
    if (!at_once_) environment_.sleeper->Sleep(wait);
  }
}

}  // namespace berth
