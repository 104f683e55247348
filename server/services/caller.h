// Who makes a call, for the log.
#ifndef BERTH_SERVER_SERVICES_CALLER_H_
#define BERTH_SERVER_SERVICES_CALLER_H_

#include <grpcpp/server_context.h>

#include <string>

namespace berth {

// `"alice" at 10.0.0.7:41234`: the common name of the client's certificate, if any, and its
// address. Safe to print.
std::string CallerOf(const grpc::ServerContextBase& context);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CALLER_H_
