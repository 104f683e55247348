// ClusterService over gRPC.
#ifndef BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
#define BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "berth/v1/cluster.grpc.pb.h"
#include "server/config/reload.h"
#include "server/controllers/executor.h"
#include "server/controllers/maintenance.h"
#include "server/ha/high_availability.h"
#include "server/services/context.h"
#include "storage/store_health.h"

namespace berth {

class ClusterService final : public v1::ClusterService::CallbackService {
 public:
  struct Backups {
    Store* store = nullptr;
    Executor* executor = nullptr;         // also runs the upkeep of the store's log
    std::string directory = {};           // empty: backups are disabled
    const StoreHealth* health = nullptr;  // null: the store has none
  };
  struct Members {
    HighAvailability* ha = nullptr;  // null: this server is alone
    std::function<absl::Status(const std::string& to)> hand_over = {};
    std::function<void()> leave = {};  // after hand_over, in any case: the process stops
    std::string copies = {};  // directory for copies of the store while they are sent
  };
  // Everything except the structs themselves outlives the service.
  ClusterService(const ServiceContext* context, Time start, Reloader* reloader,
                 Maintenance* maintenance, Backups backups, Members members)
      : context_(*context),
        start_(start),
        reloader_(*reloader),
        maintenance_(*maintenance),
        backups_(std::move(backups)),
        members_(std::move(members)) {}

  grpc::ServerUnaryReactor* GetClusterInfo(grpc::CallbackServerContext* context,
                                           const v1::GetClusterInfoRequest* request,
                                           v1::ClusterInfo* response) override;
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext* context,
                                   const v1::BackupRequest* request,
                                   v1::BackupResponse* response) override;
  grpc::ServerUnaryReactor* PauseCluster(grpc::CallbackServerContext* context,
                                         const v1::PauseClusterRequest* request,
                                         v1::PauseClusterResponse* response) override;
  grpc::ServerUnaryReactor* ResumeCluster(grpc::CallbackServerContext* context,
                                          const v1::ResumeClusterRequest* request,
                                          v1::ResumeClusterResponse* response) override;
  grpc::ServerUnaryReactor* ReloadConfig(grpc::CallbackServerContext* context,
                                         const v1::ReloadConfigRequest* request,
                                         v1::ReloadConfigResponse* response) override;
  grpc::ServerUnaryReactor* FinalizeUpgrade(grpc::CallbackServerContext* context,
                                            const v1::FinalizeUpgradeRequest* request,
                                            v1::FinalizeUpgradeResponse* response) override;

  // cluster_service_ha.cc
  grpc::ServerUnaryReactor* ListMembers(grpc::CallbackServerContext* context,
                                        const v1::ListMembersRequest* request,
                                        v1::ListMembersResponse* response) override;
  grpc::ServerUnaryReactor* HandOver(grpc::CallbackServerContext* context,
                                     const v1::HandOverRequest* request,
                                     v1::HandOverResponse* response) override;
  grpc::ServerUnaryReactor* RepairEtcd(grpc::CallbackServerContext* context,
                                       const v1::RepairEtcdRequest* request,
                                       v1::RepairEtcdResponse* response) override;
  grpc::ServerWriteReactor<v1::CopyStoreResponse>* CopyStore(
      grpc::CallbackServerContext* context, const v1::CopyStoreRequest* request) override;

 private:
  // Whether every server of the cluster can write the newest format.
  absl::Status CheckFormats() const;
  void FillProblems(v1::ClusterInfo& info) const;
  absl::Status MakeBackup(const std::string& name, v1::BackupResponse& response);

  const ServiceContext& context_;
  const Time start_;
  Reloader& reloader_;
  Maintenance& maintenance_;
  const Backups backups_;
  const Members members_;
  std::atomic<bool> copying_ = false;
  std::atomic<bool> backing_up_ = false;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
