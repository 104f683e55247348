// ClusterService over gRPC.
#ifndef BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
#define BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>
#include <utility>

#include "berth/v1/cluster.grpc.pb.h"
#include "server/controllers/executor.h"
#include "server/reload.h"
#include "server/services/context.h"

namespace berth {

class ClusterService final : public v1::ClusterService::CallbackService {
 public:
  struct Backups {
    Store* store = nullptr;
    Executor* executor = nullptr;  // which keeps the store's log, too
    std::string directory = {};    // empty: there are none
  };
  // All but the struct itself outlive the service.
  ClusterService(const ServiceContext* context, Time start, Reloader* reloader, Backups backups)
      : context_(*context), start_(start), reloader_(*reloader), backups_(std::move(backups)) {}

  grpc::ServerUnaryReactor* GetClusterInfo(grpc::CallbackServerContext* context,
                                           const v1::GetClusterInfoRequest* request,
                                           v1::ClusterInfo* response) override;
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext* context,
                                   const v1::BackupRequest* request,
                                   v1::BackupResponse* response) override;
  grpc::ServerUnaryReactor* ReloadConfig(grpc::CallbackServerContext* context,
                                         const v1::ReloadConfigRequest* request,
                                         v1::ReloadConfigResponse* response) override;
  grpc::ServerUnaryReactor* FinalizeUpgrade(grpc::CallbackServerContext* context,
                                            const v1::FinalizeUpgradeRequest* request,
                                            v1::FinalizeUpgradeResponse* response) override;

 private:
  absl::Status MakeBackup(const std::string& name, v1::BackupResponse& response);

  const ServiceContext& context_;
  const Time start_;
  Reloader& reloader_;
  const Backups backups_;
  std::atomic<bool> backing_up_ = false;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
