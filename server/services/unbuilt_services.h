// Services of the API that are not built yet. Every call answers UNIMPLEMENTED, naming the feature.
#ifndef BERTH_SERVER_SERVICES_UNBUILT_SERVICES_H_
#define BERTH_SERVER_SERVICES_UNBUILT_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/hypernode.grpc.pb.h"
#include "server/services/unbuilt.h"

namespace berth {

class HyperNodeService final : public v1::HyperNodeService::CallbackService {
 public:
  grpc::ServerUnaryReactor* CreateHyperNode(grpc::CallbackServerContext* context,
                                            const v1::CreateHyperNodeRequest*,
                                            v1::HyperNode*) override {
    return Unbuilt(context, "creating HyperNodes");
  }
  grpc::ServerUnaryReactor* GetHyperNode(grpc::CallbackServerContext* context,
                                         const v1::GetHyperNodeRequest*, v1::HyperNode*) override {
    return Unbuilt(context, "reading HyperNodes");
  }
  grpc::ServerUnaryReactor* ListHyperNodes(grpc::CallbackServerContext* context,
                                           const v1::ListHyperNodesRequest*,
                                           v1::ListHyperNodesResponse*) override {
    return Unbuilt(context, "listing HyperNodes");
  }
  grpc::ServerUnaryReactor* UpdateHyperNode(grpc::CallbackServerContext* context,
                                            const v1::UpdateHyperNodeRequest*,
                                            v1::HyperNode*) override {
    return Unbuilt(context, "updating HyperNodes");
  }
  grpc::ServerUnaryReactor* DeleteHyperNode(grpc::CallbackServerContext* context,
                                            const v1::DeleteHyperNodeRequest*,
                                            v1::DeleteHyperNodeResponse*) override {
    return Unbuilt(context, "deleting HyperNodes");
  }
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_UNBUILT_SERVICES_H_
