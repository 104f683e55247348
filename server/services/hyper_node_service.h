// HyperNodeService over gRPC.
#ifndef BERTH_SERVER_SERVICES_HYPER_NODE_SERVICE_H_
#define BERTH_SERVER_SERVICES_HYPER_NODE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/hypernode.grpc.pb.h"
#include "server/services/context.h"

namespace berth {

class HyperNodeService final : public v1::HyperNodeService::CallbackService {
 public:
  explicit HyperNodeService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* CreateHyperNode(grpc::CallbackServerContext* context,
                                            const v1::CreateHyperNodeRequest* request,
                                            v1::HyperNode* response) override;
  grpc::ServerUnaryReactor* GetHyperNode(grpc::CallbackServerContext* context,
                                         const v1::GetHyperNodeRequest* request,
                                         v1::HyperNode* response) override;
  grpc::ServerUnaryReactor* ListHyperNodes(grpc::CallbackServerContext* context,
                                           const v1::ListHyperNodesRequest* request,
                                           v1::ListHyperNodesResponse* response) override;
  grpc::ServerUnaryReactor* UpdateHyperNode(grpc::CallbackServerContext* context,
                                            const v1::UpdateHyperNodeRequest* request,
                                            v1::HyperNode* response) override;
  grpc::ServerUnaryReactor* DeleteHyperNode(grpc::CallbackServerContext* context,
                                            const v1::DeleteHyperNodeRequest* request,
                                            v1::DeleteHyperNodeResponse* response) override;
  grpc::ServerUnaryReactor* ApplyHyperNodes(grpc::CallbackServerContext* context,
                                            const v1::ApplyHyperNodesRequest* request,
                                            v1::ApplyHyperNodesResponse* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_HYPER_NODE_SERVICE_H_
