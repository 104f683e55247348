// PriorityClassService over gRPC.
#ifndef BERTH_SERVER_SERVICES_PRIORITY_CLASS_SERVICE_H_
#define BERTH_SERVER_SERVICES_PRIORITY_CLASS_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/priority_class.grpc.pb.h"
#include "server/services/context.h"

namespace berth {

class PriorityClassService final : public v1::PriorityClassService::CallbackService {
 public:
  explicit PriorityClassService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* CreatePriorityClass(grpc::CallbackServerContext* context,
                                                const v1::CreatePriorityClassRequest* request,
                                                v1::PriorityClass* response) override;
  grpc::ServerUnaryReactor* GetPriorityClass(grpc::CallbackServerContext* context,
                                             const v1::GetPriorityClassRequest* request,
                                             v1::PriorityClass* response) override;
  grpc::ServerUnaryReactor* ListPriorityClasses(grpc::CallbackServerContext* context,
                                                const v1::ListPriorityClassesRequest* request,
                                                v1::ListPriorityClassesResponse* response) override;
  grpc::ServerUnaryReactor* UpdatePriorityClass(grpc::CallbackServerContext* context,
                                                const v1::UpdatePriorityClassRequest* request,
                                                v1::PriorityClass* response) override;
  grpc::ServerUnaryReactor* DeletePriorityClass(grpc::CallbackServerContext* context,
                                                const v1::DeletePriorityClassRequest* request,
                                                v1::DeletePriorityClassResponse* response) override;

 private:
  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_PRIORITY_CLASS_SERVICE_H_
