// WatchService over gRPC: each stream is a sink of the hub.
#ifndef BERTH_SERVER_SERVICES_WATCH_SERVICE_H_
#define BERTH_SERVER_SERVICES_WATCH_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/watch.grpc.pb.h"
#include "server/listeners/watch_hub.h"
#include "server/services/context.h"
#include "server/services/open_streams.h"

namespace berth {

class WatchService final : public v1::WatchService::CallbackService {
 public:
  // The hub outlives the service and its streams. Call WatchHub::Stop before the gRPC server is
  // shut down.
  WatchService(const ServiceContext* context, WatchHub* hub, OpenStreams* streams)
      : context_(*context), hub_(hub), streams_(streams) {}

  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) override;

 private:
  const ServiceContext& context_;
  WatchHub* const hub_;
  OpenStreams* const streams_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_WATCH_SERVICE_H_
