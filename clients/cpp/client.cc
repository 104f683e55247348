#include "clients/cpp/client.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ClientOptions& options) {
  const auto credentials = MakeChannelCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // Retry does that; it knows which calls are safe
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(options.server, *credentials, arguments);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options,
                                                        const ClientEnvironment& environment) {
  auto channel = OpenChannel(options);
  if (!channel.ok()) return channel.status();
  return std::make_unique<Client>(options, environment, *std::move(channel));
}

Client::Client(const ClientOptions& options, const ClientEnvironment& environment,
               std::shared_ptr<grpc::Channel> channel)
    : options_(options),
      environment_(environment),
      channel_(channel),
      stubs_(v1::JobService::NewStub(channel), v1::QueueService::NewStub(channel),
             v1::NodeService::NewStub(channel), v1::ClusterService::NewStub(channel),
             v1::WatchService::NewStub(channel), v1::ExplainService::NewStub(channel),
             v1::HyperNodeService::NewStub(channel), v1::AccessService::NewStub(channel),
             v1::AuditService::NewStub(channel)) {}

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

void Client::AllowUnsynced(grpc::ClientContext* context) const {
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
  if (channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_TRANSIENT_FAILURE) return;
  const absl::Duration patience = std::min(left, options_.connect_timeout);
  channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + patience));
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
  int attempts = 0;
  return Retry(options_.retry, environment_, options_.timeout, [&](absl::Duration left) {
    grpc::ClientContext context;
    AwaitConnection(left);
    SetDeadline(&context, left);
    Response response;
    Stub& stub = *std::get<std::unique_ptr<Stub>>(stubs_);
    const absl::Status status = FromGrpcStatus((stub.*method)(&context, request, &response));
    return ++attempts > 1 && absl::IsNotFound(status) ? absl::OkStatus() : status;
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
    request->set_from_revision(response.revision());
    request->set_incarnation(response.incarnation());
    if (options_.on_answer != nullptr) options_.on_answer(&response);
    if (see(response)) continue;
    *ended = true;
    context.TryCancel();
    break;
  }
  return FromGrpcStatus(stream->Finish());
}

absl::Status Client::ReadLogsOnce(const v1::ReadLogsRequest& request,
                                  absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                                  StreamStop* stop) {
  grpc::ClientContext context;
  AwaitConnection(options_.timeout);
  auto stream = stub<v1::JobService>().ReadLogs(&context, request);
  if (stop != nullptr && !stop->Enter(&context)) context.TryCancel();
  v1::ReadLogsResponse response;
  while (stream->Read(&response)) {
    if (see(response)) continue;
    context.TryCancel();
    break;
  }
  if (stop != nullptr) stop->Leave();
  return FromGrpcStatus(stream->Finish());
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
    const absl::Duration wait = backoff.Next(RetryDelayOf(status));
    if (environment_.clock->Steady() + wait >= end) return status;
    environment_.sleeper->Sleep(wait);
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
    const absl::Duration wait = backoff.Next(RetryDelayOf(status));
    if (environment_.clock->Steady() + wait >= end)
      return absl::DeadlineExceededError("the watch timed out");
    environment_.sleeper->Sleep(wait);
  }
}

}  // namespace berth
