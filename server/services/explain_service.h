// ExplainService over gRPC. Queries run in the engine on the loop thread, between the commands of a
// turn and its cycle (Turn::Trial). They leave no trace, and the response waits until what it saw
// is durable.
#ifndef BERTH_SERVER_SERVICES_EXPLAIN_SERVICE_H_
#define BERTH_SERVER_SERVICES_EXPLAIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/explain.grpc.pb.h"
#include "server/services/context.h"
#include "server/services/unbuilt.h"

namespace berth {

class ExplainService final : public v1::ExplainService::CallbackService {
 public:
  explicit ExplainService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* ExplainJob(grpc::CallbackServerContext* context,
                                       const v1::ExplainJobRequest* request,
                                       v1::ExplainJobResponse* response) override;
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* context,
                                    const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override;
  grpc::ServerUnaryReactor* EstimateJob(grpc::CallbackServerContext* context,
                                        const v1::EstimateJobRequest* request,
                                        v1::EstimateJobResponse* response) override;
  grpc::ServerUnaryReactor* WhatIf(grpc::CallbackServerContext* context, const v1::WhatIfRequest*,
                                   v1::WhatIfResponse*) override {
    return Unbuilt(context, "answering what-if questions");
  }

 private:
  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_EXPLAIN_SERVICE_H_
