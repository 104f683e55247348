// NodeService over gRPC: what operators see of nodes, and how they control them.
#ifndef BERTH_SERVER_SERVICES_NODE_SERVICE_H_
#define BERTH_SERVER_SERVICES_NODE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/node.grpc.pb.h"
#include "core/model/event.h"
#include "server/services/context.h"

namespace berth {

class NodeService final : public v1::NodeService::CallbackService {
 public:
  explicit NodeService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context,
                                    const v1::GetNodeRequest* request, v1::Node* response) override;
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* CordonNode(grpc::CallbackServerContext* context,
                                       const v1::CordonNodeRequest* request,
                                       v1::Node* response) override;
  grpc::ServerUnaryReactor* UncordonNode(grpc::CallbackServerContext* context,
                                         const v1::UncordonNodeRequest* request,
                                         v1::Node* response) override;
  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                      const v1::DrainNodeRequest* request,
                                      v1::Node* response) override;
  grpc::ServerUnaryReactor* DeleteNode(grpc::CallbackServerContext* context,
                                       const v1::DeleteNodeRequest* request,
                                       v1::DeleteNodeResponse* response) override;
  // node_service_join.cc
  grpc::ServerUnaryReactor* CreateJoinToken(grpc::CallbackServerContext* context,
                                            const v1::CreateJoinTokenRequest* request,
                                            v1::CreateJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListJoinTokens(grpc::CallbackServerContext* context,
                                           const v1::ListJoinTokensRequest* request,
                                           v1::ListJoinTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeJoinToken(grpc::CallbackServerContext* context,
                                            const v1::RevokeJoinTokenRequest* request,
                                            v1::RevokeJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* AdmitNode(grpc::CallbackServerContext* context,
                                      const v1::AdmitNodeRequest* request,
                                      v1::AdmitNodeResponse* response) override;

 private:
  // What the operator wants for the node as it is.
  using Wish = std::function<absl::StatusOr<NodeSteered>(const Node& node, Time now)>;
  grpc::ServerUnaryReactor* Steer(Rpc rpc, grpc::CallbackServerContext* context, v1::Node* response,
                                  const std::string& name, const std::string& reason, Wish wish);

  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_NODE_SERVICE_H_
