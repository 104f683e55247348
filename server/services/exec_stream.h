// JobService.Exec: a client's stream on one side; a command inside a task, its terminal, or one of
// its ports on the other.
//
// At most kExecWindow bytes of input are in flight to the agent: no more is read from the client
// until the command has consumed some. The same limit applies to output in flight to the client:
// the agent sends more when this side confirms what was written.
#ifndef BERTH_SERVER_SERVICES_EXEC_STREAM_H_
#define BERTH_SERVER_SERVICES_EXEC_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "berth/v1/job.pb.h"
#include "server/controllers/exec_relay.h"
#include "server/controllers/executor.h"
#include "server/services/context.h"
#include "server/services/run_as.h"

namespace berth {

inline constexpr size_t kExecWindow = size_t{256} << 10;

// Ends by itself. The relay and the executor must outlive all streams.
grpc::ServerBidiReactor<v1::ExecRequest, v1::ExecResponse>* StartExecStream(
    const ServiceContext& context, ExecRelay* relay, Executor* executor, Call call);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_EXEC_STREAM_H_
