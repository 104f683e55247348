// JobService.ReadLogs: passes on the relay's chunks, no faster than the client reads them.
#ifndef BERTH_SERVER_SERVICES_LOG_STREAM_H_
#define BERTH_SERVER_SERVICES_LOG_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include "berth/v1/job.pb.h"
#include "server/controllers/log_relay.h"
#include "server/services/context.h"

namespace berth {

// Whether the caller may do what the method does with the job: under the reader lock. NOT_FOUND.
absl::Status MayUseJob(const ClusterState& state, Rights& rights, Rpc rpc, const std::string& job,
                       Time now);

// Locates the requested log. INVALID_ARGUMENT, NOT_FOUND, or FAILED_PRECONDITION if the task has
// not started or its node is silent.
absl::StatusOr<LogRequest> FindLog(const ClusterState& state, const v1::ReadLogsRequest& request);

// Ends by itself. The relay must outlive all streams.
grpc::ServerWriteReactor<v1::ReadLogsResponse>* StartLogStream(const ServiceContext& context,
                                                               LogRelay* relay, const Call& call,
                                                               const v1::ReadLogsRequest& request);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_LOG_STREAM_H_
