// HistoryService over gRPC.
#ifndef BERTH_SERVER_SERVICES_HISTORY_SERVICE_H_
#define BERTH_SERVER_SERVICES_HISTORY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/history.grpc.pb.h"
#include "server/history/history.h"
#include "server/services/context.h"

namespace berth {

class HistoryService final : public v1::HistoryService::CallbackService {
 public:
  // Both outlive the service.
  HistoryService(const ServiceContext* context, History* history)
      : context_(*context), history_(history) {}

  grpc::ServerUnaryReactor* GetUsage(grpc::CallbackServerContext* context,
                                     const v1::GetUsageRequest* request,
                                     v1::GetUsageResponse* response) override;
  grpc::ServerUnaryReactor* GetCapacity(grpc::CallbackServerContext* context,
                                        const v1::GetCapacityRequest* request,
                                        v1::GetCapacityResponse* response) override;
  grpc::ServerUnaryReactor* ListEndedJobs(grpc::CallbackServerContext* context,
                                          const v1::ListEndedJobsRequest* request,
                                          v1::ListEndedJobsResponse* response) override;

 private:
  const ServiceContext& context_;
  History* const history_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_HISTORY_SERVICE_H_
