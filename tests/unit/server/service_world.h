// A berthd with real gRPC on a loopback port and a store in memory, and clients for it.
#ifndef BERTH_TESTS_UNIT_SERVER_SERVICE_WORLD_H_
#define BERTH_TESTS_UNIT_SERVER_SERVICE_WORLD_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/cluster.grpc.pb.h"
#include "berth/v1/explain.grpc.pb.h"
#include "berth/v1/hypernode.grpc.pb.h"
#include "berth/v1/job.grpc.pb.h"
#include "berth/v1/node.grpc.pb.h"
#include "berth/v1/priority_class.grpc.pb.h"
#include "berth/v1/queue.grpc.pb.h"
#include "berth/v1/watch.grpc.pb.h"
#include "server/app.h"
#include "storage/memory/memory_store.h"
#include "support/errors.h"

namespace berth::testing {

// Keeps the records over restarts: the App closes its store, but this one remains.
class BorrowedStore;

class ServiceWorld {
 public:
  // `change` may alter the configuration before the start.
  explicit ServiceWorld(const std::function<void(config::v1::Server&)>& change = {},
                        uint32_t store_format = kStoreFormat, uint64_t incarnation = 0);
  ~ServiceWorld();

  void Restart();
  App& app() { return *app_; }
  MemoryStore& store() { return *store_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }

  void CreateQueue(const std::string& name, const std::string& parent = "");
  absl::Status Submit(const v1::SubmitJobsRequest& request, v1::SubmitJobsResponse* response);
  // One call for all names, all or nothing.
  v1::SubmitJobsResponse MustSubmit(const std::vector<std::string>& names);
  v1::Job MustGetJob(const std::string& name);

  Reloader::Read reread;                // from the next Restart on
  std::shared_ptr<StoreHealth> health;  // likewise; with it, there is an audit in data_directory

  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::WatchService::Stub> watch;
  std::unique_ptr<v1::ClusterService::Stub> cluster;
  std::unique_ptr<v1::ExplainService::Stub> explain;
  std::unique_ptr<v1::HyperNodeService::Stub> hyper_nodes;
  std::unique_ptr<v1::PriorityClassService::Stub> priority_classes;

 private:
  void Start();

  config::v1::Server config_;
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<App> app_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Call(stub method, request, &response) with a deadline that suits a loaded machine.
template <class Stub, class Request, class Response>
absl::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  return FromGrpcStatus((stub.*method)(&context, request, response));
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_SERVICE_WORLD_H_
