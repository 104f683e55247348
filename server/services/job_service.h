// JobService over gRPC. Handlers check and convert on gRPC's threads; writes run on the loop thread
// and are answered once durable; reads page through the state in steps.
#ifndef BERTH_SERVER_SERVICES_JOB_SERVICE_H_
#define BERTH_SERVER_SERVICES_JOB_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "berth/v1/job.grpc.pb.h"
#include "server/controllers/exec_relay.h"
#include "server/controllers/executor.h"
#include "server/controllers/log_relay.h"
#include "server/services/arena_messages.h"
#include "server/services/context.h"

namespace berth {

class JobService final : public v1::JobService::CallbackService {
 public:
  // `executor` reads cold parts that were not durable when the call came. All outlive the service.
  JobService(const ServiceContext* context, LogRelay* logs, ExecRelay* execs, Executor* executor)
      : context_(*context), logs_(logs), execs_(execs), executor_(executor) {
    SetMessageAllocatorFor_SubmitJobs(&submit_messages_);
  }

  grpc::ServerUnaryReactor* SubmitJobs(grpc::CallbackServerContext* context,
                                       const v1::SubmitJobsRequest* request,
                                       v1::SubmitJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* ListTasks(grpc::CallbackServerContext* context,
                                      const v1::ListTasksRequest* request,
                                      v1::ListTasksResponse* response) override;
  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* context,
                                      const v1::UpdateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* SuspendJob(grpc::CallbackServerContext* context,
                                       const v1::SuspendJobRequest* request,
                                       v1::Job* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* RequeueJob(grpc::CallbackServerContext* context,
                                       const v1::RequeueJobRequest* request,
                                       v1::Job* response) override;
  grpc::ServerUnaryReactor* DeleteJob(grpc::CallbackServerContext* context,
                                      const v1::DeleteJobRequest* request,
                                      v1::DeleteJobResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(
      grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) override;
  grpc::ServerBidiReactor<v1::ExecRequest, v1::ExecResponse>* Exec(
      grpc::CallbackServerContext* context) override;

 private:
  ArenaMessages<v1::SubmitJobsRequest, v1::SubmitJobsResponse> submit_messages_;
  const ServiceContext& context_;
  LogRelay* const logs_;
  ExecRelay* const execs_;
  Executor* const executor_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_JOB_SERVICE_H_
