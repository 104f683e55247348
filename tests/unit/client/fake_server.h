// An in-process gRPC server whose answers the test gives, over a real connection on a free port.
#ifndef BERTH_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
#define BERTH_TESTS_UNIT_CLIENT_FAKE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
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
#include "support/errors.h"
#include "support/standby.h"
#include "support/unsynced.h"

namespace berth {

// Records requests, and holds the answers that the test gives. Thread-safe.
class Script {
 public:
  // Answers to calls of `method`, in order; the last one is repeated.
  void Answer(const std::string& method, const absl::Status& status) {
    Push(method, {status, {}, {}});
  }
  template <class Message>
  void Answer(const std::string& method, const Message& message) {
    Push(method, {absl::OkStatus(), message.SerializeAsString(), {}});
  }
  // A stream: messages, then a status.
  template <class Message>
  void Stream(const std::string& method, const std::vector<Message>& messages,
              const absl::Status& end) {
    std::vector<std::string> parts;
    for (const Message& message : messages) parts.push_back(message.SerializeAsString());
    Push(method, {end, {}, parts});
  }

  // From now on like a standby that names this leader ("": none), and that answers stale reads at
  // this revision.
  void StandBy(const std::string& leader, const std::string& revision = "") {
    absl::MutexLock lock(&mutex_);
    standby_ = {leader, revision};
  }
  void Lead() {
    absl::MutexLock lock(&mutex_);
    standby_.reset();
  }
  // Calls that were refused as by a standby.
  int refused() {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  // Answers are sent before they are durable, to clients that opt in (support/unsynced.h).
  std::atomic<bool> slow_disk = false;

  template <class Request>
  std::vector<Request> Requests(const std::string& method) {
    absl::MutexLock lock(&mutex_);
    std::vector<Request> requests;
    for (const std::string& bytes : requests_[method])
      requests.emplace_back().ParseFromString(bytes);
    return requests;
  }

  template <class Request, class Response>
  grpc::Status Unary(const std::string& method, grpc::ServerContext* context,
                     const Request& request, Response* response) {
    if (slow_disk) NoteUnsynced(context);
    if (const auto status = AsStandby(context); status.has_value()) return *status;
    const Reply reply = Take(method, request.SerializeAsString());
    response->ParseFromString(reply.message);
    return ToGrpcStatus(reply.status);
  }
  template <class Request, class Response>
  grpc::Status Streamed(const std::string& method, grpc::ServerContext* context,
                        const Request& request, grpc::ServerWriter<Response>* writer) {
    if (const auto status = AsStandby(context); status.has_value()) return *status;
    const Reply reply = Take(method, request.SerializeAsString());
    for (const std::string& part : reply.parts) {
      Response response;
      response.ParseFromString(part);
      writer->Write(response);
    }
    return ToGrpcStatus(reply.status);
  }

 private:
  struct Reply {
    absl::Status status;
    std::string message;
    std::vector<std::string> parts;
  };
  void Push(const std::string& method, Reply reply) {
    absl::MutexLock lock(&mutex_);
    replies_[method].push_back(std::move(reply));
  }
  static void NoteUnsynced(grpc::ServerContext* context) {
    const auto found = context->client_metadata().find(kUnsyncedMetadata);
    if (found == context->client_metadata().end() || found->second != kUnsyncedAllowed) return;
    context->AddTrailingMetadata(kUnsyncedMetadata, kUnsyncedSeen);
  }
  std::optional<grpc::Status> AsStandby(grpc::ServerContext* context) {
    absl::MutexLock lock(&mutex_);
    if (!standby_.has_value()) return std::nullopt;
    const auto& [leader, revision] = *standby_;
    if (!leader.empty()) context->AddTrailingMetadata(kLeaderMetadata, leader);
    const auto found = context->client_metadata().find(kStaleMetadata);
    if (!revision.empty() && found != context->client_metadata().end()) {
      context->AddTrailingMetadata(kStaleRevisionMetadata, revision);
      return std::nullopt;
    }
    ++refused_;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(kStandbyMessage));
  }
  Reply Take(const std::string& method, const std::string& request) {
    absl::MutexLock lock(&mutex_);
    requests_[method].push_back(request);
    std::deque<Reply>& queue = replies_[method];
    if (queue.empty()) return {absl::UnimplementedError(method + " is not in the script"), {}, {}};
    Reply reply = queue.front();
    if (queue.size() > 1) queue.pop_front();
    return reply;
  }

  absl::Mutex mutex_;
  std::optional<std::pair<std::string, std::string>> standby_ ABSL_GUARDED_BY(mutex_);
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::deque<Reply>> replies_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> requests_ ABSL_GUARDED_BY(mutex_);
};

#define BERTH_FAKE_UNARY(METHOD, REQUEST, RESPONSE)                             \
  grpc::Status METHOD(grpc::ServerContext* context, const v1::REQUEST* request, \
                      v1::RESPONSE* response) override {                        \
    return script_.Unary(#METHOD, context, *request, response);                 \
  }                                                                             \
  static_assert(true, "takes the semicolon")

class FakeJobs : public v1::JobService::Service {
 public:
  explicit FakeJobs(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(SubmitJobs, SubmitJobsRequest, SubmitJobsResponse);
  BERTH_FAKE_UNARY(GetJob, GetJobRequest, Job);
  BERTH_FAKE_UNARY(ListJobs, ListJobsRequest, ListJobsResponse);
  BERTH_FAKE_UNARY(ListTasks, ListTasksRequest, ListTasksResponse);
  BERTH_FAKE_UNARY(UpdateJob, UpdateJobRequest, Job);
  BERTH_FAKE_UNARY(CancelJob, CancelJobRequest, Job);
  BERTH_FAKE_UNARY(SuspendJob, SuspendJobRequest, Job);
  BERTH_FAKE_UNARY(ResumeJob, ResumeJobRequest, Job);
  BERTH_FAKE_UNARY(RequeueJob, RequeueJobRequest, Job);
  BERTH_FAKE_UNARY(DeleteJob, DeleteJobRequest, DeleteJobResponse);
  grpc::Status ReadLogs(grpc::ServerContext* context, const v1::ReadLogsRequest* request,
                        grpc::ServerWriter<v1::ReadLogsResponse>* writer) override {
    return script_.Streamed("ReadLogs", context, *request, writer);
  }

 private:
  Script& script_;
};

class FakeQueues : public v1::QueueService::Service {
 public:
  explicit FakeQueues(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(CreateQueue, CreateQueueRequest, Queue);
  BERTH_FAKE_UNARY(GetQueue, GetQueueRequest, Queue);
  BERTH_FAKE_UNARY(ListQueues, ListQueuesRequest, ListQueuesResponse);
  BERTH_FAKE_UNARY(UpdateQueue, UpdateQueueRequest, Queue);
  BERTH_FAKE_UNARY(DeleteQueue, DeleteQueueRequest, DeleteQueueResponse);
  BERTH_FAKE_UNARY(OpenQueue, OpenQueueRequest, Queue);
  BERTH_FAKE_UNARY(CloseQueue, CloseQueueRequest, Queue);
  BERTH_FAKE_UNARY(ListQueueShares, ListQueueSharesRequest, ListQueueSharesResponse);

 private:
  Script& script_;
};

class FakeNodes : public v1::NodeService::Service {
 public:
  explicit FakeNodes(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(GetNode, GetNodeRequest, Node);
  BERTH_FAKE_UNARY(ListNodes, ListNodesRequest, ListNodesResponse);
  BERTH_FAKE_UNARY(CordonNode, CordonNodeRequest, Node);
  BERTH_FAKE_UNARY(UncordonNode, UncordonNodeRequest, Node);
  BERTH_FAKE_UNARY(DrainNode, DrainNodeRequest, Node);
  BERTH_FAKE_UNARY(DeleteNode, DeleteNodeRequest, DeleteNodeResponse);
  BERTH_FAKE_UNARY(CreateJoinToken, CreateJoinTokenRequest, CreateJoinTokenResponse);
  BERTH_FAKE_UNARY(ListJoinTokens, ListJoinTokensRequest, ListJoinTokensResponse);
  BERTH_FAKE_UNARY(RevokeJoinToken, RevokeJoinTokenRequest, RevokeJoinTokenResponse);

 private:
  Script& script_;
};

class FakeCluster : public v1::ClusterService::Service {
 public:
  explicit FakeCluster(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(GetClusterInfo, GetClusterInfoRequest, ClusterInfo);
  BERTH_FAKE_UNARY(ReloadConfig, ReloadConfigRequest, ReloadConfigResponse);
  BERTH_FAKE_UNARY(Backup, BackupRequest, BackupResponse);
  BERTH_FAKE_UNARY(PauseCluster, PauseClusterRequest, PauseClusterResponse);
  BERTH_FAKE_UNARY(ResumeCluster, ResumeClusterRequest, ResumeClusterResponse);
  BERTH_FAKE_UNARY(FinalizeUpgrade, FinalizeUpgradeRequest, FinalizeUpgradeResponse);
  BERTH_FAKE_UNARY(ListMembers, ListMembersRequest, ListMembersResponse);
  BERTH_FAKE_UNARY(HandOver, HandOverRequest, HandOverResponse);
  BERTH_FAKE_UNARY(RepairEtcd, RepairEtcdRequest, RepairEtcdResponse);

 private:
  Script& script_;
};

class FakeWatch : public v1::WatchService::Service {
 public:
  explicit FakeWatch(Script& script) : script_(script) {}
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    return script_.Streamed("Watch", context, *request, writer);
  }

 private:
  Script& script_;
};

class FakeExplain : public v1::ExplainService::Service {
 public:
  explicit FakeExplain(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(ExplainJob, ExplainJobRequest, ExplainJobResponse);
  BERTH_FAKE_UNARY(PlanJob, PlanJobRequest, PlanJobResponse);
  BERTH_FAKE_UNARY(EstimateJob, EstimateJobRequest, EstimateJobResponse);

 private:
  Script& script_;
};

class FakeHyperNodes : public v1::HyperNodeService::Service {
 public:
  explicit FakeHyperNodes(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(CreateHyperNode, CreateHyperNodeRequest, HyperNode);
  BERTH_FAKE_UNARY(GetHyperNode, GetHyperNodeRequest, HyperNode);
  BERTH_FAKE_UNARY(ListHyperNodes, ListHyperNodesRequest, ListHyperNodesResponse);
  BERTH_FAKE_UNARY(UpdateHyperNode, UpdateHyperNodeRequest, HyperNode);
  BERTH_FAKE_UNARY(DeleteHyperNode, DeleteHyperNodeRequest, DeleteHyperNodeResponse);
  BERTH_FAKE_UNARY(ApplyHyperNodes, ApplyHyperNodesRequest, ApplyHyperNodesResponse);

 private:
  Script& script_;
};

class FakeAccess : public v1::AccessService::Service {
 public:
  explicit FakeAccess(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(WhoAmI, WhoAmIRequest, WhoAmIResponse);
  BERTH_FAKE_UNARY(GetAccess, GetAccessRequest, AccessRules);
  BERTH_FAKE_UNARY(ChangeAccess, ChangeAccessRequest, ChangeAccessResponse);
  BERTH_FAKE_UNARY(CheckAccess, CheckAccessRequest, CheckAccessResponse);

 private:
  Script& script_;
};

class FakeAudit : public v1::AuditService::Service {
 public:
  explicit FakeAudit(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(ListAudit, ListAuditRequest, ListAuditResponse);
  BERTH_FAKE_UNARY(VerifyAudit, VerifyAuditRequest, VerifyAuditResponse);

 private:
  Script& script_;
};

class FakeHistory : public v1::HistoryService::Service {
 public:
  explicit FakeHistory(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(GetUsage, GetUsageRequest, GetUsageResponse);
  BERTH_FAKE_UNARY(GetCapacity, GetCapacityRequest, GetCapacityResponse);
  BERTH_FAKE_UNARY(ListEndedJobs, ListEndedJobsRequest, ListEndedJobsResponse);

 private:
  Script& script_;
};

class FakePriorityClasses : public v1::PriorityClassService::Service {
 public:
  explicit FakePriorityClasses(Script& script) : script_(script) {}
  BERTH_FAKE_UNARY(CreatePriorityClass, CreatePriorityClassRequest, PriorityClass);
  BERTH_FAKE_UNARY(GetPriorityClass, GetPriorityClassRequest, PriorityClass);
  BERTH_FAKE_UNARY(ListPriorityClasses, ListPriorityClassesRequest, ListPriorityClassesResponse);
  BERTH_FAKE_UNARY(UpdatePriorityClass, UpdatePriorityClassRequest, PriorityClass);
  BERTH_FAKE_UNARY(DeletePriorityClass, DeletePriorityClassRequest, DeletePriorityClassResponse);

 private:
  Script& script_;
};

class FakeServer {
 public:
  // On a free port, or on the port of an earlier server.
  explicit FakeServer(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &jobs_, &queues_, &nodes_, &cluster_, &watch_, &explain_, &hyper_nodes_, &access_,
             &audit_, &priority_classes_, &history_}) {
      builder.RegisterService(service);
    }
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() { server_->Shutdown(); }

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  Script script;

 private:
  FakeJobs jobs_{script};
  FakeQueues queues_{script};
  FakeNodes nodes_{script};
  FakeCluster cluster_{script};
  FakeAccess access_{script};
  FakeWatch watch_{script};
  FakeExplain explain_{script};
  FakeHyperNodes hyper_nodes_{script};
  FakeAudit audit_{script};
  FakePriorityClasses priority_classes_{script};
  FakeHistory history_{script};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
