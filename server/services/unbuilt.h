// Calls of the API that are not implemented: UNIMPLEMENTED, naming the feature.
#ifndef BERTH_SERVER_SERVICES_UNBUILT_H_
#define BERTH_SERVER_SERVICES_UNBUILT_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <string>

namespace berth {

inline grpc::Status UnbuiltStatus(const std::string& feature) {
  return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, feature + " is not built yet");
}

inline grpc::ServerUnaryReactor* Unbuilt(grpc::CallbackServerContext* context,
                                         const std::string& feature) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(UnbuiltStatus(feature));
  return reactor;
}

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_UNBUILT_H_
