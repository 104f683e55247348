// AuditService over gRPC.
#ifndef BERTH_SERVER_SERVICES_AUDIT_SERVICE_H_
#define BERTH_SERVER_SERVICES_AUDIT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/audit.grpc.pb.h"
#include "server/audit/audit.h"
#include "server/services/context.h"

namespace berth {

class AuditService final : public v1::AuditService::CallbackService {
 public:
  // Both outlive the service.
  AuditService(const ServiceContext* context, Audit* audit) : context_(*context), audit_(audit) {}

  grpc::ServerUnaryReactor* ListAudit(grpc::CallbackServerContext* context,
                                      const v1::ListAuditRequest* request,
                                      v1::ListAuditResponse* response) override;
  grpc::ServerUnaryReactor* VerifyAudit(grpc::CallbackServerContext* context,
                                        const v1::VerifyAuditRequest* request,
                                        v1::VerifyAuditResponse* response) override;

 private:
  const ServiceContext& context_;
  Audit* const audit_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_AUDIT_SERVICE_H_
