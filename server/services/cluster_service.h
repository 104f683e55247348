// ClusterService over gRPC.
#ifndef BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
#define BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/cluster.grpc.pb.h"
#include "server/reload.h"
#include "server/services/context.h"
#include "server/services/unbuilt.h"

namespace berth {

class ClusterService final : public v1::ClusterService::CallbackService {
 public:
  // `reloader` outlives the service.
  ClusterService(const ServiceContext* context, Time start, Reloader* reloader)
      : context_(*context), start_(start), reloader_(*reloader) {}

  grpc::ServerUnaryReactor* GetClusterInfo(grpc::CallbackServerContext* context,
                                           const v1::GetClusterInfoRequest* request,
                                           v1::ClusterInfo* response) override;
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext* context, const v1::BackupRequest*,
                                   v1::BackupResponse*) override {
    return Unbuilt(context, "backup of a running server");
  }
  grpc::ServerUnaryReactor* ReloadConfig(grpc::CallbackServerContext* context,
                                         const v1::ReloadConfigRequest* request,
                                         v1::ReloadConfigResponse* response) override;
  grpc::ServerUnaryReactor* FinalizeUpgrade(grpc::CallbackServerContext* context,
                                            const v1::FinalizeUpgradeRequest* request,
                                            v1::FinalizeUpgradeResponse* response) override;

 private:
  const ServiceContext& context_;
  const Time start_;
  Reloader& reloader_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
