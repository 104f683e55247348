// ClusterService over gRPC.
#ifndef BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
#define BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/cluster.grpc.pb.h"
#include "server/services/context.h"
#include "server/services/unbuilt.h"

namespace berth {

class ClusterService final : public v1::ClusterService::CallbackService {
 public:
  ClusterService(const ServiceContext* context, Time start) : context_(*context), start_(start) {}

  grpc::ServerUnaryReactor* GetClusterInfo(grpc::CallbackServerContext* context,
                                           const v1::GetClusterInfoRequest* request,
                                           v1::ClusterInfo* response) override;
  grpc::ServerUnaryReactor* Backup(grpc::CallbackServerContext* context, const v1::BackupRequest*,
                                   v1::BackupResponse*) override {
    return Unbuilt(context, "backup of a running server");
  }
  grpc::ServerUnaryReactor* ReloadConfig(grpc::CallbackServerContext* context,
                                         const v1::ReloadConfigRequest*,
                                         v1::ReloadConfigResponse*) override {
    return Unbuilt(context, "reload of the configuration");
  }

 private:
  const ServiceContext& context_;
  const Time start_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CLUSTER_SERVICE_H_
