// QueueService over gRPC.
#ifndef BERTH_SERVER_SERVICES_QUEUE_SERVICE_H_
#define BERTH_SERVER_SERVICES_QUEUE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/queue.grpc.pb.h"
#include "server/services/context.h"

namespace berth {

class QueueService final : public v1::QueueService::CallbackService {
 public:
  explicit QueueService(const ServiceContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* CreateQueue(grpc::CallbackServerContext* context,
                                        const v1::CreateQueueRequest* request,
                                        v1::Queue* response) override;
  grpc::ServerUnaryReactor* GetQueue(grpc::CallbackServerContext* context,
                                     const v1::GetQueueRequest* request,
                                     v1::Queue* response) override;
  grpc::ServerUnaryReactor* ListQueues(grpc::CallbackServerContext* context,
                                       const v1::ListQueuesRequest* request,
                                       v1::ListQueuesResponse* response) override;
  grpc::ServerUnaryReactor* UpdateQueue(grpc::CallbackServerContext* context,
                                        const v1::UpdateQueueRequest* request,
                                        v1::Queue* response) override;
  grpc::ServerUnaryReactor* DeleteQueue(grpc::CallbackServerContext* context,
                                        const v1::DeleteQueueRequest* request,
                                        v1::DeleteQueueResponse* response) override;
  grpc::ServerUnaryReactor* OpenQueue(grpc::CallbackServerContext* context,
                                      const v1::OpenQueueRequest* request,
                                      v1::Queue* response) override;
  grpc::ServerUnaryReactor* CloseQueue(grpc::CallbackServerContext* context,
                                       const v1::CloseQueueRequest* request,
                                       v1::Queue* response) override;
  grpc::ServerUnaryReactor* ListQueueShares(grpc::CallbackServerContext* context,
                                            const v1::ListQueueSharesRequest* request,
                                            v1::ListQueueSharesResponse* response) override;

 private:
  grpc::ServerUnaryReactor* SetOpen(Call call, Reply<v1::Queue> reply, const std::string& name,
                                    bool open);

  const ServiceContext& context_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_QUEUE_SERVICE_H_
