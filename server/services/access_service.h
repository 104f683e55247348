// AccessService over gRPC: who the caller is, and who may do what.
#ifndef BERTH_SERVER_SERVICES_ACCESS_SERVICE_H_
#define BERTH_SERVER_SERVICES_ACCESS_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/access.grpc.pb.h"
#include "server/services/context.h"

namespace berth {

class AccessService final : public v1::AccessService::CallbackService {
 public:
  // The context outlives the service.
  explicit AccessService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* WhoAmI(grpc::CallbackServerContext* context,
                                   const v1::WhoAmIRequest* request,
                                   v1::WhoAmIResponse* response) override;
  grpc::ServerUnaryReactor* GetAccess(grpc::CallbackServerContext* context,
                                      const v1::GetAccessRequest* request,
                                      v1::AccessRules* response) override;
  grpc::ServerUnaryReactor* ChangeAccess(grpc::CallbackServerContext* context,
                                         const v1::ChangeAccessRequest* request,
                                         v1::ChangeAccessResponse* response) override;
  grpc::ServerUnaryReactor* CheckAccess(grpc::CallbackServerContext* context,
                                        const v1::CheckAccessRequest* request,
                                        v1::CheckAccessResponse* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_ACCESS_SERVICE_H_
