// The C++ client of Berth: typed calls with timeouts, retries and decoded errors.
//
//   auto client = Client::Connect({.server = "127.0.0.1:7070"});
//
// or, of a cluster with several servers, {.server = "a.example:7070,b.example:7070"}. The client
// finds the one that leads, and finds it again when another leads: calls are repeated there, and
// watches and logs go on where they were.
//
//   auto job = (*client)->Call(&v1::JobService::StubInterface::GetJob, request);
//
// Every call is safe to repeat: submits and creates carry a request_id (generated here if the
// caller sets none), and a delete that was tried before treats NOT_FOUND as success. Errors are
// absl::Status, decoded by support/errors.h: ViolationsOf(status) lists the violations in the
// request.
//
// Thread-compatible: one thread at a time. The channel may be shared by several clients.
#ifndef BERTH_CLIENTS_CPP_CLIENT_H_
#define BERTH_CLIENTS_CPP_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/access.grpc.pb.h"
#include "berth/v1/audit.grpc.pb.h"
#include "berth/v1/cluster.grpc.pb.h"
#include "berth/v1/explain.grpc.pb.h"
#include "berth/v1/history.grpc.pb.h"
#include "berth/v1/hypernode.grpc.pb.h"
#include "berth/v1/job.grpc.pb.h"
#include "berth/v1/node.grpc.pb.h"
#include "berth/v1/priority_class.grpc.pb.h"
#include "berth/v1/queue.grpc.pb.h"
#include "berth/v1/watch.grpc.pb.h"
#include "clients/cpp/retry.h"
#include "clients/cpp/server_choice.h"
#include "support/errors.h"
#include "support/request_id.h"
#include "support/tls.h"

namespace berth {

inline constexpr int kMaxAnswerBytes = 64 << 20;

struct ClientOptions {
  // "host:port" or "unix:PATH", or several with commas (support/server_list.h).
  std::string server = "127.0.0.1:7070";
  TlsFiles tls;                                // empty: plain text
  absl::Duration timeout = absl::Seconds(30);  // of a call, including its retries
  RetryPolicy retry;
  // If the connection is broken or refused, a call waits this long for a new one before it fails.
  // With several servers: so long for each connection, before the next server is tried.
  absl::Duration connect_timeout = absl::Seconds(1);
  bool unsynced = false;  // reads may return state that is not durable yet (support/unsynced.h)
  // Reads may be answered by a standby from its own state (support/standby.h).
  bool stale = false;
  // Called with every response before the caller gets it, including those of lists and watches, but
  // not with task output. May be null.
  std::function<void(google::protobuf::Message*)> on_answer = nullptr;
};

// Opens a channel to the only server; nothing is sent before the first call. INVALID_ARGUMENT for
// bad TLS files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ClientOptions& options);

// A standby answered from its own state.
struct StaleAnswer {
  std::string revision;  // that it shows
  std::string server;
};

// Ends a stream from another thread, even while it is idle. Thread-safe.
class StreamStop {
 public:
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Client;
  // Called around each connection; false once stopped.
  bool Enter(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

class Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const ClientOptions& options, const ClientEnvironment& environment = SystemEnvironment());
  // The stub of a service at the server whose turn it is, for streams: stub<v1::JobService>().
  template <class Service>
  typename Service::StubInterface& stub() {
    return StubOf<typename Service::StubInterface>();
  }
  // Makes a call with stub() that must not be repeated once a server has taken it: `call` returns
  // its status. It is only repeated if a standby refused it, or, with several servers, if there was
  // no connection.
  absl::Status CallOnce(absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call);

  // Makes one unary call with retries, all with the same request id: what it changes is changed
  // once (support/request_id.h).
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    Response response;
    const std::string id = NewRequestId();
    const absl::Status status = Repeat([&](absl::Duration left) {
      grpc::ClientContext context;
      AwaitConnection(left);
      SetDeadline(&context, left);
      AllowWeaker(&context);
      context.AddMetadata(kRequestIdMetadata, id);
      const grpc::Status answer = (StubOf<Stub>().*method)(&context, request, &response);
      NoteUnsynced(context);
      return End(context, answer);
    });
    if (!status.ok()) return status;
    if (options_.on_answer != nullptr) options_.on_answer(&response);
    return response;
  }

  // Submits jobs; generates a request_id if the request has none.
  absl::StatusOr<v1::SubmitJobsResponse> Submit(v1::SubmitJobsRequest request);
  absl::StatusOr<v1::Queue> CreateQueue(v1::CreateQueueRequest request);
  absl::StatusOr<v1::PriorityClass> CreatePriorityClass(v1::CreatePriorityClassRequest request);
  absl::StatusOr<v1::HyperNode> CreateHyperNode(v1::CreateHyperNodeRequest request);
  absl::StatusOr<v1::ApplyHyperNodesResponse> ApplyHyperNodes(v1::ApplyHyperNodesRequest request);
  // Also OK if an earlier attempt may have deleted it.
  absl::Status DeleteJob(const std::string& name);
  absl::Status DeleteQueue(const std::string& name, const std::string& etag = "");
  absl::Status DeletePriorityClass(const std::string& name);
  absl::Status DeleteNode(const std::string& name);
  absl::Status DeleteHyperNode(const std::string& name);

  // Calls `page` with each page of a list, until the list ends or `page` returns false.
  template <class Stub, class Request, class Response>
  absl::Status List(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    Request request, absl::FunctionRef<bool(const Response&)> page) {
    if (request.page_size() == 0) request.set_page_size(kPageSize);
    for (;;) {
      const absl::StatusOr<Response> response = Call(method, request);
      if (!response.ok()) return response.status();
      if (!page(*response) || response->next_page_token().empty()) return absl::OkStatus();
      request.set_page_token(response->next_page_token());
    }
  }

  // Follows changes across broken connections: reopens the watch after the last revision seen, and
  // waits between failures as Retry does (without limit while the server is down). `see` gets every
  // response, including the empty one that confirms the watch, and returns false to end it.
  // OUT_OF_RANGE: list again and open a new watch. DEADLINE_EXCEEDED after `timeout`.
  absl::Status Watch(v1::WatchRequest request,
                     absl::FunctionRef<bool(const v1::WatchResponse&)> see,
                     absl::Duration timeout = absl::InfiniteDuration());

  // Reads a task's log across broken connections: reopens it at the position reached, with the
  // waits of Retry. `see` gets every response (the first has no data) and returns false to end it.
  // Fails if no response arrives within ClientOptions::timeout; when following, only the first
  // response has this limit. `stop`, if given, ends the call with OK.
  absl::Status ReadLogs(v1::ReadLogsRequest request,
                        absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                        StreamStop* stop = nullptr);

  // Some response may be lost if the server crashes: ClientOptions::unsynced.
  bool saw_unsynced() const { return saw_unsynced_; }
  // The oldest answer of a standby, if there was one.
  const std::optional<StaleAnswer>& stale() const { return stale_; }
  // The server whose turn it is: that of the last answer, as long as it is there and leads.
  const std::string& server() const { return servers_[choice_.current()].address; }

  // 128 random bits in hex.
  std::string NewRequestId();

 private:
  static constexpr int kPageSize = 1000;
  using Stubs = std::tuple<std::unique_ptr<v1::JobService::StubInterface>,
                           std::unique_ptr<v1::QueueService::StubInterface>,
                           std::unique_ptr<v1::NodeService::StubInterface>,
                           std::unique_ptr<v1::ClusterService::StubInterface>,
                           std::unique_ptr<v1::WatchService::StubInterface>,
                           std::unique_ptr<v1::ExplainService::StubInterface>,
                           std::unique_ptr<v1::HyperNodeService::StubInterface>,
                           std::unique_ptr<v1::AccessService::StubInterface>,
                           std::unique_ptr<v1::AuditService::StubInterface>,
                           std::unique_ptr<v1::PriorityClassService::StubInterface>,
                           std::unique_ptr<v1::HistoryService::StubInterface>>;
  struct Server {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;  // null: not tried yet, or lost
    Stubs stubs;
  };

  Client(const ClientOptions& options, const ClientEnvironment& environment,
         std::shared_ptr<grpc::ChannelCredentials> credentials);
  // With a channel.
  Server& Current();
  template <class Stub>
  Stub& StubOf() {
    return *std::get<std::unique_ptr<Stub>>(Current().stubs);
  }
  bool several() const { return servers_.size() > 1; }
  bool Connected() { return Current().channel->GetState(false) == GRPC_CHANNEL_READY; }
  // Retry, also with the other servers.
  absl::Status Repeat(absl::FunctionRef<absl::Status(absl::Duration left)> attempt);
  // After each attempt: chooses the server of the next one.
  absl::Status End(const grpc::ClientContext& context, const grpc::Status& answer);
  std::optional<size_t> LeaderIn(const grpc::ClientContext& context) const;
  void NoteStale(const grpc::ClientContext& context);
  // Whether a server may have done what the attempt asked for.
  bool PerhapsDone(bool connected, const absl::Status& status) const;

  static void SetDeadline(grpc::ClientContext* context, absl::Duration left);
  void AllowWeaker(grpc::ClientContext* context) const;
  void NoteUnsynced(const grpc::ClientContext& context);
  void AwaitConnection(absl::Duration left);
  // One connection of a watch: advances `request`; sets `ended` when `see` returns false.
  absl::Status WatchOnce(v1::WatchRequest* request, absl::Duration left, Backoff* backoff,
                         absl::FunctionRef<bool(const v1::WatchResponse&)> see, bool* ended);
  absl::Status ReadLogsOnce(const v1::ReadLogsRequest& request,
                            absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                            StreamStop* stop);
  template <class Stub, class Request, class Response>
  absl::Status Delete(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                      const Request& request);

  ClientOptions options_;
  ClientEnvironment environment_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::vector<Server> servers_;
  ServerChoice choice_;
  bool at_once_ = false;  // the next attempt, after the last one
  bool saw_unsynced_ = false;
  std::optional<StaleAnswer> stale_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_CLIENT_H_
