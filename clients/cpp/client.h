// The C++ client of Berth: typed calls with time-outs, retries and decoded errors.
//
//   auto client = Client::Connect({.server = "127.0.0.1:7070"});
//   auto job = (*client)->Call(&v1::JobService::StubInterface::GetJob, request);
//
// Every call may be repeated safely: submits and creates carry a request_id (made here when the
// caller gave none), and a delete that was tried before takes NOT_FOUND for success. Errors are
// absl::Status as support/errors.h decodes them: ViolationsOf(status) lists what is wrong with the
// request.
//
// Thread-compatible: one thread at a time. The channel may be shared by several clients.
#ifndef BERTH_CLIENTS_CPP_CLIENT_H_
#define BERTH_CLIENTS_CPP_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/cluster.grpc.pb.h"
#include "berth/v1/explain.grpc.pb.h"
#include "berth/v1/hypernode.grpc.pb.h"
#include "berth/v1/job.grpc.pb.h"
#include "berth/v1/node.grpc.pb.h"
#include "berth/v1/queue.grpc.pb.h"
#include "berth/v1/watch.grpc.pb.h"
#include "clients/cpp/retry.h"
#include "support/errors.h"
#include "support/tls.h"

namespace berth {

inline constexpr int kMaxAnswerBytes = 64 << 20;

struct ClientOptions {
  std::string server = "127.0.0.1:7070";       // "host:port" or "unix:PATH"
  TlsFiles tls;                                // none: plain text
  absl::Duration timeout = absl::Seconds(30);  // of a call with all its retries
  RetryPolicy retry;
  // A call that finds the last connection broken or refused waits so long for another before it
  // counts as failed.
  absl::Duration connect_patience = absl::Seconds(1);
  bool unsynced = false;  // reads take what is not on the server's disk yet (support/unsynced.h)
  // Gets every answer before the caller does, those of lists and watches too; output of tasks is
  // not among them. May be null.
  std::function<void(google::protobuf::Message*)> on_answer = nullptr;
};

// An open channel; nothing is sent before the first call. INVALID_ARGUMENT for the TLS files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const ClientOptions& options);

// Ends a stream from another thread, also while nothing comes. Thread-safe.
class StreamStop {
 public:
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Client;
  // Around each connection; false once stopped.
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
  Client(const ClientOptions& options, const ClientEnvironment& environment,
         std::shared_ptr<grpc::Channel> channel);

  // The stub of a service, for streams: stub<v1::JobService>().
  template <class Service>
  typename Service::StubInterface& stub() {
    return *std::get<std::unique_ptr<typename Service::StubInterface>>(stubs_);
  }

  // One unary call with retries.
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    Response response;
    const absl::Status status =
        Retry(options_.retry, environment_, options_.timeout, [&](absl::Duration left) {
          grpc::ClientContext context;
          AwaitConnection(left);
          SetDeadline(&context, left);
          AllowUnsynced(&context);
          Stub& stub = *std::get<std::unique_ptr<Stub>>(stubs_);
          const grpc::Status answer = (stub.*method)(&context, request, &response);
          NoteUnsynced(context);
          return FromGrpcStatus(answer);
        });
    if (!status.ok()) return status;
    if (options_.on_answer != nullptr) options_.on_answer(&response);
    return response;
  }

  // Submits, with a request_id of its own if the request has none.
  absl::StatusOr<v1::SubmitJobsResponse> Submit(v1::SubmitJobsRequest request);
  absl::StatusOr<v1::Queue> CreateQueue(v1::CreateQueueRequest request);
  absl::StatusOr<v1::HyperNode> CreateHyperNode(v1::CreateHyperNodeRequest request);
  absl::StatusOr<v1::ApplyHyperNodesResponse> ApplyHyperNodes(v1::ApplyHyperNodesRequest request);
  // OK, too, when an earlier try had deleted it.
  absl::Status DeleteJob(const std::string& name);
  absl::Status DeleteQueue(const std::string& name, const std::string& etag = "");
  absl::Status DeleteNode(const std::string& name);
  absl::Status DeleteHyperNode(const std::string& name);

  // Calls `page` with each answer of a list, until the list ends or `page` says false.
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

  // Follows changes, over broken connections too: the watch is opened again after the last revision
  // seen, and waits between failures as Retry does (without end while the server is away). `see`
  // gets every answer, also the empty one that tells that the watch has begun, and ends it by
  // saying false. OUT_OF_RANGE: list again and begin anew. DEADLINE_EXCEEDED after `timeout`.
  absl::Status Watch(v1::WatchRequest request,
                     absl::FunctionRef<bool(const v1::WatchResponse&)> see,
                     absl::Duration timeout = absl::InfiniteDuration());

  // Reads a task's log, over broken connections too: it is opened again behind what was seen, with
  // waits as Retry has them. `see` gets every answer, the first without data, and ends it by saying
  // false. Gives up when no answer came for ClientOptions::timeout; while following, once there was
  // a first answer, never. `stop`, if given, ends it with OK.
  absl::Status ReadLogs(v1::ReadLogsRequest request,
                        absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                        StreamStop* stop = nullptr);

  // Some answer may be taken back by a crash of the server: ClientOptions::unsynced.
  bool saw_unsynced() const { return saw_unsynced_; }

  // 128 random bits in hex.
  std::string NewRequestId();

 private:
  static constexpr int kPageSize = 1000;

  static void SetDeadline(grpc::ClientContext* context, absl::Duration left);
  void AllowUnsynced(grpc::ClientContext* context) const;
  void NoteUnsynced(const grpc::ClientContext& context);
  void AwaitConnection(absl::Duration left);
  // One connection of a watch: moves `request` on; sets `ended` when `see` had enough.
  absl::Status WatchOnce(v1::WatchRequest* request, absl::Duration left, Backoff* backoff,
                         absl::FunctionRef<bool(const v1::WatchResponse&)> see, bool* ended);
  absl::Status ReadLogsOnce(const v1::ReadLogsRequest& request,
                            absl::FunctionRef<bool(const v1::ReadLogsResponse&)> see,
                            StreamStop* stop);
  template <class Stub, class Request, class Response>
  absl::Status Delete(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                      const Request& request);

  ClientOptions options_;
  bool saw_unsynced_ = false;
  ClientEnvironment environment_;
  std::shared_ptr<grpc::Channel> channel_;
  std::tuple<std::unique_ptr<v1::JobService::StubInterface>,
             std::unique_ptr<v1::QueueService::StubInterface>,
             std::unique_ptr<v1::NodeService::StubInterface>,
             std::unique_ptr<v1::ClusterService::StubInterface>,
             std::unique_ptr<v1::WatchService::StubInterface>,
             std::unique_ptr<v1::ExplainService::StubInterface>,
             std::unique_ptr<v1::HyperNodeService::StubInterface>>
      stubs_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_CLIENT_H_
